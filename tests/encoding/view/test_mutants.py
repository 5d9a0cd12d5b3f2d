"""Bytes of views as first released, and cases that mutation testing found untested."""

import numpy as np
import pytest

from encoding import (
    HostInfo,
    ViewForm,
    ViewReference,
    apply_delta,
    build_view,
    decode_view,
    encode_delta,
    encode_view,
    encode_view_forms,
)
from encoding.view.codec import CELLS_PER_BYTE

FULL = "01030202010200000d6170702d302e6578616d706c65a07e040801310201640088fd05cc6e"
DELTA = (
    "0203fd05cc6e04010303010201000200000d6170702d322e6578616d706c"
    "65a47e040801330202ec030000016403000001980100c03cc77c99"
)
HOSTS = [HostInfo(f"app-{n}.example", 8080 + n) for n in range(4)]


def first():
    active = {HOSTS[0]: [0, 2], HOSTS[1]: [1]}
    return build_view(epoch=3, sizes=(2, 1), active=active, standby={HOSTS[1]: [0, 2]})


def second():
    """A subtopology grew, one was added, a host left, a host joined, an owner changed."""
    active = {HOSTS[1]: [0, 3], HOSTS[2]: [1, 4], HOSTS[3]: [2, 5]}
    standby = {HOSTS[1]: [1], HOSTS[2]: [0, 3], HOSTS[3]: [0]}
    return build_view(epoch=4, sizes=(3, 1, 2), active=active, standby=standby)


def test_a_full_view_is_written_as_ever():
    assert encode_view(first()).hex() == FULL
    assert decode_view(bytes.fromhex(FULL)) == first()


def test_a_delta_is_written_as_ever():
    assert encode_delta(first(), second()).hex() == DELTA
    assert apply_delta(first(), bytes.fromhex(DELTA)) == second()


def test_a_delta_that_nobody_encoded_is_asked_for_by_name():
    forms = encode_view_forms(second())
    missing = ViewReference(1, 2)
    with pytest.raises(KeyError, match=r"epoch=1, checksum=2"):
        forms.bytes_of(ViewForm.DELTA, missing)
    with pytest.raises(KeyError, match="None"):
        forms.bytes_of(ViewForm.DELTA, None)


def test_columns_of_a_view_are_32_bits_wide():
    for view in (first(), decode_view(encode_view(first())), second()):
        assert view.active.dtype == view.standbys.dtype == np.int32


def test_the_first_host_shares_nothing_with_none_before_it():
    for name in ("XXXX", "X", "\0", " "):
        view = build_view(epoch=0, sizes=(1,), active={HostInfo(name, 0): [0]}, standby={})
        assert decode_view(encode_view(view)) == view


def test_a_view_at_the_limit_of_owners_per_byte_is_read():
    active = {HOSTS[0]: range(1999)}
    view = build_view(epoch=1, sizes=(2000,), active=active, standby={HOSTS[0]: [1999]})
    data = encode_view(view)
    assert 3 * view.tasks > CELLS_PER_BYTE * len(data) >= 2 * view.tasks
    assert decode_view(data) == view
