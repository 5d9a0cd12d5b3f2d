"""Exact messages of every refusal of a view, with the reader's offset."""

import json
from pathlib import Path

import numpy as np
import pytest

from encoding import (
    HostInfo,
    RebalanceError,
    View,
    apply_delta,
    build_view,
    decode_reference,
    decode_view,
    encode_delta,
    encode_reference,
    encode_view,
    partitions_by_host,
)


def view_of(**fields):
    given = {
        "epoch": 1,
        "sizes": (2,),
        "hosts": (HostInfo("h", 1),),
        "active": np.array([0, -1]),
        "standbys": np.empty((0, 2), np.int32),
    }
    return View(**(given | fields))


VIEW = view_of()
FULL = encode_view(VIEW)
REFERENCE = encode_reference(5, 6)
DELTA = encode_delta(VIEW, view_of(epoch=2))
VIEWS = {
    "view: active shape": lambda: view_of(active=np.array([0])),
    "view: active float": lambda: view_of(active=np.array([0.0, 1.0])),
    "view: standbys shape": lambda: view_of(standbys=np.empty((0, 3), np.int32)),
    "view: active hi": lambda: view_of(active=np.array([0, 1])),
    "view: active lo": lambda: view_of(active=np.array([0, -2])),
    "view: stand hi": lambda: view_of(standbys=np.array([[1, 0]])),
    "view: ranks": lambda: view_of(standbys=np.array([[-1, 0]] * 2)),
    "view: epoch": lambda: view_of(epoch=-1),
    "view: epoch hi": lambda: view_of(epoch=2**63),
    "view: sizes": lambda: view_of(sizes=(3, -1)),
    "view: hosts": lambda: view_of(hosts=(HostInfo("h", 1), HostInfo("h", 1))),
    "view: hosts2": lambda: view_of(hosts=(HostInfo("", 1),)),
    "view: hosts3": lambda: view_of(hosts=(HostInfo("h", 65536),)),
    "build: twice": lambda: build_view(
        epoch=1, sizes=(2,), active={HostInfo("a", 1): [1], HostInfo("b", 1): [1]}, standby={}
    ),
    "build: no": lambda: build_view(
        epoch=1, sizes=(2,), active={HostInfo("a", 1): [2]}, standby={}
    ),
    "build: neg": lambda: build_view(
        epoch=1, sizes=(2,), active={}, standby={HostInfo("a", 1): [-1, 0]}
    ),
    "pbh": lambda: partitions_by_host(VIEW, [()]),
    "full: empty": lambda: decode_view(b""),
    "full: form": lambda: decode_view(REFERENCE),
    "full: form9": lambda: decode_view(b"\t"),
    "reference: form": lambda: decode_reference(FULL),
    "delta: form": lambda: apply_delta(VIEW, FULL),
    "full: cut": lambda: decode_view(FULL[:-1]),
    "full: more": lambda: decode_view(FULL + b"x"),
    "full: sum": lambda: decode_view(FULL[:-1] + b"x"),
    "reference: more": lambda: decode_reference(REFERENCE + b"12"),
    "full: noend": lambda: decode_view(b"\x01" + b"\xff" * 12),
    "full: sizes": lambda: decode_view(b"\x01\x01\x05"),
    "full: hosts": lambda: decode_view(b"\x01\x01\x00\t"),
    "full: hosthead": lambda: decode_view(b"\x01\x01\x00\x01\x01\x00\x00\x00"),
    "full: hosttail": lambda: decode_view(b"\x01\x01\x00\x01\x00\x01\x00\x00"),
    "full: hostlen": lambda: decode_view(b"\x01\x01\x00\x01\x00\x00\x80\x02"),
    "full: hostcut": lambda: decode_view(b"\x01\x01\x00\x01\x00\x00\x07ab"),
    "full: port": lambda: decode_view(b"\x01\x01\x00\x01\x00\x00\x01h" + b"\xff\xff\x08"),
    "full: utf": lambda: decode_view(b"\x01\x01\x00\x01\x00\x00\x01\xff\x02"),
    "full: hosts bad": lambda: decode_view(b"\x01\x01\x00\x01\x00\x00\x01h\x01\x00" + bytes(9)),
    "full: ranks": lambda: decode_view(b"\x01\x01\x00\x00\x01"),
    "full: packed": lambda: decode_view(b"\x01\x01\x01\t\x00\x00"),
    "full: many": lambda: decode_view(b"\x01\x01\x01\x82\x01\x01\x00\x00\x01h\x02\x01" + bytes(12)),
    "full: padded": lambda: decode_view(b"\x01\x01\x01\x01\x00\x00\x01" + bytes(9)),
    "full: holds": lambda: decode_view(
        b"\x01\x01\x01\x01\x02\x00\x00\x01h\x02\x00\x00\x01i\x00\x00\xc0" + bytes(4)
    ),
    "full: form2": lambda: decode_view(b"\x01\x01\x01\x01\x01\x00\x00\x01h\x02\x01\x00\x02"),
    "full: sparse": lambda: decode_view(
        b"\x01\x01\x01\x01\x01\x00\x00\x01h\x02\x01\x00\x01\x01\x05"
    ),
    "full: sparsecut": lambda: decode_view(
        b"\x01\x01\x01\x01\x01\x00\x00\x01h\x02\x01\x00\x01\x01\x85"
    ),
    "full: ck": lambda: decode_view(b"\x01\x01\x00\x00\x00"),
    "delta: other": lambda: apply_delta(view_of(epoch=9), DELTA),
    "delta: promise": lambda: apply_delta(VIEW, DELTA[:-1] + b"x"),
    "delta: flag": lambda: apply_delta(VIEW, DELTA[:7] + b"\x05"),
    "delta: hosts": lambda: apply_delta(VIEW, DELTA[:8] + b"\x01\x01"),
    "delta: new": lambda: apply_delta(VIEW, DELTA[:7] + b"\x01\x01\x07\x00\x00\x00"),
    "delta: changed": lambda: apply_delta(VIEW, DELTA[:8] + b"\x00\x00\x00" + b"\x01\t"),
    "reference: no epoch": lambda: decode_reference(b"\x03"),
    "delta: no old epoch": lambda: apply_delta(VIEW, b"\x02"),
    "delta: no epoch": lambda: apply_delta(VIEW, DELTA[:6]),
    "delta: no flag": lambda: apply_delta(VIEW, DELTA[:7]),
    "delta: gone": lambda: apply_delta(VIEW, DELTA[:8]),
    "delta: ranks": lambda: apply_delta(VIEW, DELTA[:8] + b"\x00\x00\x09"),
    "delta: no ranks": lambda: apply_delta(VIEW, DELTA[:8] + b"\x00\x00"),
    "delta: owners": lambda: apply_delta(VIEW, DELTA[:8] + b"\x00\x00\x00\x02\x00\x00"),
    "full: no hosts": lambda: decode_view(b"\x01\x01\x00"),
    "full: no ranks": lambda: decode_view(b"\x01\x01\x00\x00"),
    "full: no form": lambda: decode_view(FULL[:10] + b"\x01" + FULL[11:12]),
    "full: no sizes": lambda: decode_view(b"\x01\x01"),
    "full: size": lambda: decode_view(b"\x01\x01\x01\xff\xff\xff\xff\x08\x00\x00\x00"),
    "full: no port": lambda: decode_view(b"\x01\x01\x00\x01\x00\x00\x01h"),
    "full: hosts unsorted": lambda: decode_view(
        b"\x01\x01\x00\x02\x00\x00\x01h\x02\x00\x00\x01g\x00\x00" + bytes(4)
    ),
    "full: standby owners": lambda: decode_view(
        b"\x01\x01\x01\x01\x01\x00\x00\x01h\x02\x01\x00\x01\x01\x00"
    ),
    "full: standby column": lambda: decode_view(
        b"\x01\x01\x01\x01\x01\x00\x00\x01h\x02\x01\x00\x00"
    ),
    "full: no size": lambda: decode_view(b"\x01\x01\x01"),
    "full: sparse cut": lambda: decode_view(
        b"\x01\x01\x01\x01\x01\x00\x00\x01h\x02\x01\x00\x01\x09"
    ),
}


def sentences(kind):
    path = Path(__file__).parents[1] / "golden" / "errors.json"
    return json.loads(path.read_text(encoding="utf-8"))[kind]


@pytest.mark.parametrize(
    ("call", "sentence"), [pytest.param(VIEWS[i], s, id=i) for i, s in sentences("view").items()]
)
def test_what_is_wrong_about_a_view_is_reported_in_full(call, sentence):
    with pytest.raises(RebalanceError) as caught:
        call()
    assert str(caught.value) == sentence
