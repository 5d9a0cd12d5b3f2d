"""Full views: read back, small; invalid bytes are refused."""

import contextlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from encoding import (
    DecodeError,
    HostInfo,
    View,
    ViewReference,
    decode_reference,
    decode_view,
    encode_reference,
    encode_view,
    view_checksum,
)
from tests.encoding.view.views import steady, views


def empty(**changes):
    fields = {
        "epoch": 0,
        "sizes": (),
        "hosts": (),
        "active": np.empty(0, np.int32),
        "standbys": np.empty((0, 0), np.int32),
    }
    return View(**fields | changes)


@given(views())
@example(empty())
@example(empty(sizes=(0, 0), hosts=(HostInfo("h", 1),)))
@example(empty(sizes=(3,), active=np.full(3, -1), standbys=np.empty((0, 3), np.int32)))
def test_a_view_is_read_back(view):
    data = encode_view(view)
    assert decode_view(data) == view
    assert encode_view(decode_view(data)) == data


def test_the_bytes_of_a_known_view_never_change():
    view = empty(
        epoch=300,
        sizes=(2, 1),
        hosts=(HostInfo("app-1.x", 80), HostInfo("app-2.x", 81)),
        active=np.array([0, 1, -1]),
        standbys=np.array([[1, -1, 0]]),
    )
    expected = (
        "01 ac02"  # full, epoch
        "02 02 01"  # two subtopologies
        "02 00 00 07 6170702d312e78 a001"  # two hosts: app-1.x, port 80
        "04 02 01 32 02"  # shares app- and .x with it; port one more
        "01 60 00 84"  # one rank; 1 2 0 in two bits each; dense: 2 0 1
    )
    data = encode_view(view)
    assert data[:-4] == bytes.fromhex(expected)
    assert data[-4:] == view_checksum(view).to_bytes(4)


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_are_refused(data):
    for decode in (decode_view, decode_reference):
        with contextlib.suppress(DecodeError):
            assert decode(data) is not None


@given(views(), st.data())
def test_a_view_with_a_bit_turned_over_is_never_taken(view, data):
    raw = bytearray(encode_view(view))
    place = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[place // 8] ^= 1 << place % 8
    with pytest.raises(DecodeError):
        decode_view(bytes(raw))


@given(views())
def test_a_view_cut_off_anywhere_is_refused(view):
    data = encode_view(view)
    for end in range(len(data)):
        with pytest.raises(DecodeError):
            decode_view(data[:end])


def test_bytes_behind_a_view_are_refused():
    with pytest.raises(DecodeError, match="1 bytes are left behind"):
        decode_view(encode_view(empty()) + b"\0")


@pytest.mark.parametrize(
    ("hosts", "reason"),
    [
        ("02 000001 62 02 000001 61 00", "sort the hosts"),
        ("02 000001 62 02 010000 00", "sort the hosts"),
        ("01 000001 ff 02", "not UTF-8"),
        ("01 000001 62 01", "port"),
        ("01 000001 62 ffff07", "125951|131071"),
        ("01 010001 62 02", "shared start of a host is 1"),
        ("01 000101 62 02", "shared end of a host is 1"),
        ("02 000002 6161 02 020100 00", "shared end of a host is 1, but at most 0"),
        ("02 0000ff01" + "61" * 255 + "02 ff010001 61 00", "length of a host is 1, but at most 0"),
        ("02 0000ff01" + "61" * 255 + "02 00ff0101 61 00", "length of a host is 1, but at most 0"),
        ("01 00008002 62", "length of a host is 256"),
        ("01 000000 02", "1 to 255 bytes"),
        ("05 000000 02", "number of hosts is 5"),
    ],
)
def test_an_invalid_host_table_is_refused(hosts, reason):
    data = bytes.fromhex("01 00 00" + hosts + "00 00000000")
    with pytest.raises(DecodeError, match=reason):
        decode_view(data)


def test_a_host_may_be_as_long_as_dns_allows_and_share_all_of_it():
    names = ["a" * 255, "a" * 254, "a" * 128 + "b" * 127]
    hosts = tuple(sorted(HostInfo(name, port) for name in names for port in (0, 1, 65_535)))
    view = empty(hosts=hosts)
    assert decode_view(encode_view(view)) == view


def test_a_rank_of_few_copies_is_listed_instead_of_packed():
    full = steady(100, 5_000)
    sparse = np.full((1, 5_000), -1)
    sparse[0, [17, 4_000]] = (3, 99)
    few = View(epoch=1, sizes=full.sizes, hosts=full.hosts, active=full.active, standbys=sparse)
    assert decode_view(encode_view(few)) == few
    none = View(
        epoch=1, sizes=full.sizes, hosts=full.hosts, active=full.active, standbys=sparse[:0]
    )
    assert len(encode_view(few)) - len(encode_view(none)) < 12


def test_the_limit_of_owners_per_byte_counts_the_active_column():
    tasks, hosts = 20_000, tuple(HostInfo(f"h{number}", 1) for number in range(6))
    empty = np.full((6, tasks), -1)
    view = View(epoch=1, sizes=(tasks,), hosts=hosts, active=empty[0], standbys=empty)
    assert decode_view(encode_view(view)) == view


def test_ranks_that_nobody_paid_for_are_packed_and_a_reader_insists():
    hosts = tuple(HostInfo(f"h{n:02}", 1) for n in range(32))
    view = empty(
        sizes=(5_000,),
        hosts=hosts,
        active=np.full(5_000, -1),
        standbys=np.full((32, 5_000), -1),
    )
    data = encode_view(view)
    assert decode_view(data) == view
    assert len(data) > 32 * 5_000 // 16
    without_standbys = empty(
        sizes=view.sizes, hosts=hosts, active=view.active, standbys=np.empty((0, 5_000), np.int32)
    )
    head = encode_view(without_standbys)[:-4]
    place = len(head) - (5_000 * 6 + 7) // 8 - 1
    forged = head[:place] + b"\x20" + head[place + 1 :] + b"\x01\x00" * 32 + b"\0" * 4
    with pytest.raises(DecodeError, match="too many for these bytes"):
        decode_view(forged)


@pytest.mark.parametrize(
    "data",
    [
        bytes.fromhex("01 00 01 ffffffff07 00 00"),  # 2**31 - 1 tasks in no bytes
        bytes.fromhex("01 00 ffffffff07"),  # as many subtopologies
        bytes.fromhex("01 00 00 ffffffff07"),  # as many hosts
        b"\x01\x00\x01\x80\x80\x40" + b"\x00\x00" + b"\x00" * 60_000,
    ],
)
def test_no_memory_is_taken_that_the_bytes_do_not_pay_for(data):
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode_view(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(data) + 20_000


def test_memory_for_a_real_view_is_a_small_multiple_of_its_bytes():
    data = encode_view(steady(1_000, 10_000))
    tracemalloc.start()
    try:
        decode_view(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(data)


def test_a_thousand_clients_and_ten_thousand_tasks_take_30_kilobytes():
    """Kafka's version 11 takes 241,785 bytes for the same."""
    assert len(encode_view(steady(1_000, 10_000))) < 0.13 * 241_785


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**32 - 1))
def test_a_reference_is_read_back(epoch, checksum):
    assert decode_reference(encode_reference(epoch, checksum)) == ViewReference(epoch, checksum)


def test_each_form_is_distinguished_from_the_others():
    with pytest.raises(DecodeError, match="a full view was expected, this is a reference"):
        decode_view(encode_reference(1, 2))
    with pytest.raises(DecodeError, match="a reference was expected, this is a full view"):
        decode_reference(encode_view(empty()))
    with pytest.raises(DecodeError, match="form 9, which this reader does not know") as caught:
        decode_view(b"\x09")
    assert (caught.value.offset, caught.value.available) == (0, 1)
