"""Routing views of a hostile leader: their cost, and the checks of their content."""

import msgpack
import numpy as np
import pytest

from assignor.rebalance import ServedByHost
from encoding import (
    Assignment,
    DecodeError,
    HostInfo,
    NativeAssignment,
    TaskId,
    TopicPartition,
    View,
    apply_delta,
    decode_view,
    encode_assignment,
    encode_view,
    view_reference,
)
from encoding.primitives import encode_varint
from encoding.view import columns
from tests.assignor.rebalance.groups import start
from tests.costs import cost_of

BYTES = 2_000_000
UNITS = 25
HOSTS = tuple(HostInfo(f"h{number:06}", 1) for number in range(120_000))


def view_of(sizes, hosts, ranks=0):
    tasks = sum(sizes)
    owners = np.arange(tasks, dtype=np.int32) % max(1, len(hosts)) if hosts else np.full(tasks, -1)
    standbys = [np.full(tasks, rank + 1, np.int32) for rank in range(ranks)]
    return encode_view(
        View(
            epoch=1,
            sizes=sizes,
            hosts=hosts,
            active=owners,
            standbys=np.array(standbys, np.int32).reshape(ranks, tasks),
        )
    )


def hostile_views(monkeypatch):
    """Yield views of about `BYTES`, with the counts in the answer around them."""
    monkeypatch.setattr(columns, "HOSTS_MAX", 10**6)
    bits = 8 * BYTES - 400
    views = {
        "sizes differ": (view_of((bits,), HOSTS[:1]), 4),
        "sizes claim what the leader claims": (view_of((bits,), HOSTS[:1]), bits),
        "a million subtopologies": (view_of((1,) * (BYTES // 2), ()), 4),
        "many hosts": (view_of((4,), HOSTS), 4),
        "many ranks": (view_of((80_000,), HOSTS[:33], ranks=32), 80_000),
        "many ranks of one host": (view_of((400_000,), HOSTS[:33], ranks=5), 400_000),
    }
    monkeypatch.undo()
    return views


def answer(view, count):
    native = NativeAssignment(sizes=(4,), partition_counts={"lines": count}, view_full=view)
    return encode_assignment(Assignment(version=101, commonly_supported_version=101, native=native))


def cost_of_answer(data):
    return cost_of(lambda: start(endpoint="h:1").receive((), data, now_ms=0), limit=UNITS)


@pytest.mark.slow
def test_no_view_costs_a_member_more_than_its_bytes_are_worth(monkeypatch):
    for name, (view, count) in hostile_views(monkeypatch).items():
        data = answer(view, count)
        units = cost_of_answer(data)
        assert units <= UNITS, (name, len(data), units)


@pytest.mark.parametrize("key", [2, 3])
def test_no_bitmap_of_tasks_costs_more_than_its_bytes_are_worth(key):
    bitmap = b"\x09" + b"\xff" * BYTES
    sizes = encode_varint(8 * BYTES) + encode_varint(0)
    body = {0: 101, 1: sizes, key: encode_varint(len(bitmap)) + bitmap}
    data = (101).to_bytes(4) * 2 + msgpack.packb(body)
    assert "at most 262144" in start().receive((), data, now_ms=0).failure
    assert cost_of_answer(data) <= UNITS


def served(ranks=1):
    hosts = (HostInfo("a", 1), HostInfo("b", 2), HostInfo("idle", 3))
    view = View(
        epoch=3,
        sizes=(4,),
        hosts=hosts,
        active=np.array([0, 1, 0, -1], np.int32),
        standbys=np.array([[1, 0, 1, 1]] * ranks, np.int32),
    )
    return encode_view(view)


def test_a_view_of_this_topology_is_the_two_host_maps():
    member = start(endpoint="a:1")
    received = member.receive((), answer(served(ranks=2), 4), now_ms=0)
    assert received.failure == ""
    a, b, idle = HostInfo("a", 1), HostInfo("b", 2), HostInfo("idle", 3)
    lines = [TopicPartition("lines", number) for number in range(4)]
    assert dict(member.routing.active) == {a: (lines[0], lines[2]), b: (lines[1],), idle: ()}
    assert dict(member.routing.standby) == {a: (lines[1],), b: (*lines[::2], lines[3]), idle: ()}
    assert isinstance(member.routing.active, ServedByHost)
    assert [member.routing.active.hosts_of(line) for line in lines] == [(a,), (b,), (a,), ()]
    assert member.routing.standby.hosts_of(lines[3]) == (b,)
    for strange in (
        TopicPartition("lines", 4),
        TopicPartition("lines", -1),
        TopicPartition("x", 0),
    ):
        assert member.routing.active.hosts_of(strange) == ()
    assert member.view is not None


def test_a_view_of_another_topology_is_not_kept():
    member = start(endpoint="a:1")
    received = member.receive((), answer(served(), 5), now_ms=0)
    assert received.failure == ""
    assert (len(member.routing.active), member.view) == (0, None)


def test_deltas_do_not_pile_up_owners():
    # Each small delta can add a few owners for each task.
    old = decode_view(view_of((2**20,), HOSTS[:33]))
    new = View(
        epoch=2,
        sizes=old.sizes,
        hosts=old.hosts,
        active=old.active,
        standbys=np.full((32, 2**20), -1, np.int32),
    )
    name = view_reference(old)
    delta = b"\x02" + encode_varint(1) + name.checksum.to_bytes(4) + encode_varint(2)
    delta += b"\0\0\0" + encode_varint(32) + b"\0\0" * 33
    delta += view_reference(new).checksum.to_bytes(4)
    with pytest.raises(DecodeError, match="too many"):
        apply_delta(old, delta)


def test_the_numbering_of_another_topology_is_not_taken_over():
    member = start()
    native = NativeAssignment(sizes=(1,) * 9_000, partition_counts={"lines": 4})
    value = Assignment(version=101, commonly_supported_version=101, native=native)
    member.receive((), encode_assignment(value), now_ms=0)
    assert len(member.subscription({TaskId(0, 0): 1})[1]) < 500
