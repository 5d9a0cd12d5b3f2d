"""Deltas between views: exact, small, and refused if they do not fit."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from encoding import (
    DecodeError,
    HostInfo,
    View,
    ViewForm,
    ViewMismatch,
    apply_delta,
    build_view,
    choose_view_form,
    decode_reference,
    decode_view,
    encode_delta,
    encode_view,
    encode_view_forms,
    view_reference,
)
from tests.encoding.view.views import pairs_of_views, steady, views


def after_join(old, host, share):
    """The view after a client joined and took its share of each column."""
    hosts = tuple(sorted((*old.hosts, host)))
    moved = np.array([hosts.index(known) for known in old.hosts])
    joined = hosts.index(host)
    active, standbys = moved[old.active], moved[old.standbys]
    step = old.tasks // share
    active[::step] = joined
    standbys[:, 1::step] = joined
    return View(epoch=old.epoch + 1, sizes=old.sizes, hosts=hosts, active=active, standbys=standbys)


@given(pairs_of_views())
def test_a_delta_leads_from_any_view_to_any_other(pair):
    old, new = pair
    delta = encode_delta(old, new)
    assert apply_delta(old, delta) == new
    assert apply_delta(new, encode_delta(new, old)) == old


@given(views(), views())
def test_a_delta_applies_to_no_other_view(view, other):
    delta = encode_delta(view, view)
    if view == other:
        return
    with pytest.raises(ViewMismatch, match="made against another view") as caught:
        apply_delta(other, delta)
    assert caught.value.held == view_reference(other)
    assert caught.value.named == view_reference(view)


def test_a_delta_of_a_view_with_all_standby_ranks_costs_nothing_per_task():
    old = steady(33, 1_000, ranks=32)
    new = steady(33, 1_000, ranks=32, epoch=2)
    delta = encode_delta(old, new)
    assert len(delta) < 200
    assert apply_delta(old, delta) == new


def test_a_delta_is_refused_if_the_reader_has_other_tasks_even_if_no_size_changes():
    old, new = steady(5, 20), steady(5, 20, epoch=2)
    assert apply_delta(old, encode_delta(old, new), [20, 4]) == new
    with pytest.raises(DecodeError, match="other tasks than the reader's topology"):
        apply_delta(old, encode_delta(old, new), [21])


def test_views_of_one_epoch_with_different_content_are_distinguished():
    old = steady(5, 20, seed=1)
    twin = steady(5, 20, seed=2)
    assert old.epoch == twin.epoch
    with pytest.raises(ViewMismatch):
        apply_delta(twin, encode_delta(old, steady(5, 20, epoch=2)))


@given(pairs_of_views(), st.data())
def test_a_delta_with_a_bit_turned_over_is_never_taken(pair, data):
    old, new = pair
    raw = bytearray(encode_delta(old, new))
    place = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[place // 8] ^= 1 << place % 8
    with pytest.raises(DecodeError):
        apply_delta(old, bytes(raw))


def test_a_delta_whose_result_differs_is_refused_with_both_names():
    old, new = steady(5, 20), steady(5, 20, epoch=2, seed=9)
    raw = bytearray(encode_delta(old, new))
    raw[-1] ^= 1
    with pytest.raises(ViewMismatch, match="is not the view it names") as caught:
        apply_delta(old, bytes(raw))
    assert caught.value.held == view_reference(new)


@given(pairs_of_views())
def test_a_delta_cut_off_anywhere_is_refused(pair):
    old, new = pair
    data = encode_delta(old, new)
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            apply_delta(old, data[:end])
    with pytest.raises(DecodeError):
        apply_delta(old, data + b"\0")


@given(views(), st.binary(max_size=50))
def test_any_bytes_apply_or_are_refused(view, data):
    name = view_reference(view)
    base = encode_delta(view, view)[: 1 + len(_varint(name.epoch)) + 4]
    for raw in (data, base + data):
        with pytest.raises(DecodeError):
            apply_delta(view, raw)


def _varint(value):
    out = []
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def test_one_join_costs_a_few_bytes_per_task_that_moved():
    """Goal: 0.005 of version 11's 241,785 bytes."""
    old = steady(1_000, 10_000)
    new = after_join(old, HostInfo("streams-00500b.prod.example.net", 8080), share=10)
    delta = encode_delta(old, new)
    assert apply_delta(old, delta) == new
    assert len(delta) < 150 < 0.005 * 241_785


def test_one_leave_costs_a_few_bytes_per_task_that_moved():
    new = steady(1_000, 10_000)
    old = after_join(new, HostInfo("streams-00500b.prod.example.net", 8080), share=10)
    assert len(encode_delta(old, new)) < 150


def test_a_delta_between_equal_views_is_tiny():
    old = steady(100, 1_000)
    new = View(epoch=2, sizes=old.sizes, hosts=old.hosts, active=old.active, standbys=old.standbys)
    assert len(encode_delta(old, new)) < 24


@pytest.mark.parametrize("sizes", [(510, 500), (500, 510)])
def test_a_subtopology_that_grows_costs_only_its_new_tasks(sizes):
    old = steady(100, 1_000, subtopologies=2)
    place = 500 if sizes[0] > 500 else 1_000
    new = View(
        epoch=2,
        sizes=sizes,
        hosts=old.hosts,
        active=np.insert(old.active, place, np.arange(10)),
        standbys=np.insert(old.standbys, [place] * 10, np.arange(20, 30)[None, :], axis=1),
    )
    delta = encode_delta(old, new)
    assert apply_delta(old, delta) == new
    # 7 bits for an active owner, 7 and a gap for a standby, and 23 for names and sizes.
    assert len(delta) <= 9 + 9 + 11 + 23


def test_warm_ups_cost_their_own_bytes_and_not_a_whole_rank():
    old = steady(100, 5_000)
    warm = np.full((1, 5_000), -1)
    warm[0, [3, 4_999]] = (7, 8)
    new = View(
        epoch=2,
        sizes=old.sizes,
        hosts=old.hosts,
        active=old.active,
        standbys=np.vstack((old.standbys, warm)),
    )
    delta = encode_delta(old, new)
    assert apply_delta(old, delta) == new
    assert apply_delta(new, encode_delta(new, old)) == old
    assert len(delta) < 32


@pytest.mark.parametrize(
    "body",
    [
        "01 01 ffffffff07 00 00 00",  # 2**31 - 1 tasks in no bytes
        "01 ffffffff07",  # as many subtopologies
        "00 00 ffffffff07",  # as many new hosts
        "00 00 00 20",  # more ranks than hosts
    ],
)
def test_a_delta_gets_no_memory_that_its_bytes_do_not_pay_for(body):
    old = build_view(epoch=0, sizes=[1], active={}, standby={})
    base = encode_delta(old, old)[:6]
    data = base + b"\x01" + bytes.fromhex(body)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            apply_delta(old, data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30_000


def test_forms_are_encoded_once_for_every_older_view_that_a_delta_helps():
    old, new, far = steady(50, 500), steady(50, 500, epoch=2), steady(50, 500, epoch=3, seed=5)
    forms = encode_view_forms(new, older=[old, far, new])
    assert decode_view(forms.full) == new
    assert decode_reference(forms.reference) == forms.name == view_reference(new)
    # Against a view that has nothing in common a delta is larger than the view itself.
    assert set(forms.delta_by_held) == {view_reference(old)}
    assert apply_delta(old, forms.delta_by_held[view_reference(old)]) == new


def test_a_member_gets_the_smallest_form_that_leaves_it_with_the_whole_view():
    old, new = steady(50, 500), steady(50, 500, epoch=2)
    forms = encode_view_forms(new, older=[old])
    named = view_reference(new)
    assert choose_view_form(forms, named) is ViewForm.REFERENCE
    assert choose_view_form(forms, view_reference(old)) is ViewForm.DELTA
    assert choose_view_form(forms, None) is ViewForm.FULL
    # The right epoch with another checksum is another leader's view.
    assert choose_view_form(forms, named._replace(checksum=named.checksum ^ 1)) is ViewForm.FULL


def test_bytes_of_a_form_are_those_of_the_view_that_a_member_holds():
    old, new = steady(50, 500), steady(50, 500, epoch=2)
    forms = encode_view_forms(new, older=[old])
    held = view_reference(old)
    assert forms.bytes_of(ViewForm.FULL, None) == encode_view(new)
    assert forms.bytes_of(ViewForm.DELTA, held) == encode_delta(old, new)
    assert forms.bytes_of(ViewForm.REFERENCE, None) == forms.reference
    assert forms.bytes_of(ViewForm.NONE, held) == b""
    with pytest.raises(KeyError):
        forms.bytes_of(ViewForm.DELTA, None)
