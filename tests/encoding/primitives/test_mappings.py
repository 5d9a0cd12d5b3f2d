"""Sorted immutable mappings."""

import copy

import pytest

from encoding import (
    HostInfo,
    PartitionsByHost,
    PartitionsByTask,
    TaskId,
    TopicPartition,
)
from encoding.primitives import ByName


def test_tags_are_sorted_hashable_and_equal_to_an_equal_dict():
    tags = ByName({"zone": "b", "rack": "a"})
    assert list(tags) == ["rack", "zone"]
    assert tags == {"zone": "b", "rack": "a"}
    assert hash(tags) == hash(ByName({"rack": "a", "zone": "b"}))
    assert (tags["zone"], tags.get("none"), len(tags)) == ("b", None, 2)
    assert repr(tags) == "ByName({'rack': 'a', 'zone': 'b'})"
    assert len(ByName()) == 0
    with pytest.raises(TypeError):
        tags["zone"] = "c"


def test_partitions_are_sorted_and_unique_and_the_last_host_wins():
    hosts = PartitionsByHost([(("b", 1), [("t", 9)]), (("a", 2), []), (("b", 1), [("u", 1)] * 2)])
    assert list(hosts) == [HostInfo("a", 2), HostInfo("b", 1)]
    assert hosts[HostInfo("b", 1)] == (TopicPartition("u", 1),)
    assert hosts == {HostInfo("a", 2): (), HostInfo("b", 1): (TopicPartition("u", 1),)}
    assert hosts == PartitionsByHost(hosts)
    assert hash(hosts) == hash(PartitionsByHost(hosts))
    assert hosts != PartitionsByHost()
    assert len({hash(PartitionsByHost([(("a", port), [("t", 0)])])) for port in range(20)}) == 20
    assert copy.deepcopy(hosts) == hosts
    assert "PartitionsByHost({HostInfo" in repr(hosts)


def test_standby_tasks_are_sorted_with_the_nameless_first():
    tasks = PartitionsByTask({(1, 0, "n"): [], (1, 0, ""): [("t", 1)], (0, 5): []})
    assert list(tasks) == [TaskId(0, 5), TaskId(1, 0), TaskId(1, 0, "n")]
    assert len(tasks) == 3
