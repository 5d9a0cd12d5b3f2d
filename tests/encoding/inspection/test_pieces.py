"""The explanation of a blob covers every byte exactly once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import (
    DecodeError,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    explain,
)
from tests.encoding.golden_files import lines
from tests.encoding.strategies import assignments, subscriptions
from tests.versions import LATER

_blobs = subscriptions().map(lambda value: ("subscription", encode_subscription(value)))
_blobs |= assignments().map(lambda value: ("assignment", encode_assignment(value)))


@given(_blobs, st.binary(max_size=4))
def test_pieces_lie_side_by_side_and_cover_the_blob(blob, trailer):
    kind, data = blob
    offset = 0
    for piece in explain(kind, data + trailer):
        assert piece.offset == offset
        assert piece.size > 0
        assert piece.meaning
        offset += piece.size
    assert offset == len(data + trailer)
    assert (piece.path == "trailing bytes") is bool(trailer)


@given(_blobs)
def test_a_cut_blob_is_explained_up_to_the_cut(blob):
    kind, data = blob
    with pytest.raises(DecodeError):
        list(explain(kind, data[:-1]))


def test_odd_blobs_that_are_read_are_explained():
    for line in lines("edge"):
        if line["op"] != "decode":
            continue
        data = bytes.fromhex(line["hex"])
        try:
            (decode_subscription if line["kind"] == "subscription" else decode_assignment)(data)
        except DecodeError:
            continue
        assert sum(piece.size for piece in explain(line["kind"], data)) == len(data)


def test_numbers_with_a_name_are_named():
    data = bytes.fromhex("0000000b0000000b" + "00" * 20 + "00000004" + "7fffffffffffffff")
    meanings = {piece.path: piece.meaning for piece in explain("assignment", data)}
    assert meanings["error_code"].startswith("SHUTDOWN_REQUESTED: ")
    assert meanings["next_rebalance_ms"].startswith("never: ")


def test_of_future_blobs_only_the_readable_numbers_are_explained():
    pieces = list(explain("subscription", bytes.fromhex(f"{LATER:08x}{LATER + 1:08x}beef")))
    assert [(p.path, p.value) for p in pieces] == [
        ("version", LATER),
        ("latest_supported_version", LATER + 1),
        ("trailing bytes", b"\xbe\xef"),
    ]
    assert "future version" in pieces[-1].meaning
    with pytest.raises(DecodeError, match=f"version {LATER}, which this reader does not know"):
        list(explain("assignment", bytes.fromhex(f"{LATER:08x}{LATER + 1:08x}")))


def test_impossible_counts_are_refused():
    with pytest.raises(DecodeError, match="prev_tasks claims 2147483647 entries"):
        list(explain("subscription", b"\0\0\0\1" + bytes(16) + b"\x7f\xff\xff\xff"))
