"""The host of a key: Kafka's partitioner, with gaps in the host map."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as reference

from assignor.embedding import key_hosts, murmur2, partition_for_key
from assignor.errors import MissingSourceTopic
from assignor.rebalance.routing_view import Routing
from encoding import HostInfo, PartitionsByHost, TopicPartition

HOST_1, HOST_2 = HostInfo("one", 1), HostInfo("two", 2)


def hosts(**partitions):
    by_name = {"one": HOST_1, "two": HOST_2}
    return PartitionsByHost(
        {by_name[n]: [TopicPartition("words", p) for p in found] for n, found in partitions.items()}
    )


@given(st.binary(max_size=70))
def test_the_hash_is_the_one_of_kafkas_clients(key):
    assert murmur2(key) == reference(key)
    assert 0 <= partition_for_key(key, 7) < 7


# From the tests of Kafka's Utils.murmur2.
@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_known_hashes(key, signed):
    assert murmur2(key) == signed % 2**32


def test_a_key_is_where_its_partition_is_served_and_copied():
    key = next(k for k in (b"a", b"b", b"c", b"d", b"e") if partition_for_key(k, 2) == 1)
    routing = Routing(active=hosts(one=[0], two=[1]), standby=hosts(one=[1], two=[0]))
    found = key_hosts(routing, ["words"], {"words": 2}, key)
    assert (found.partition, found.active, found.standby) == (1, HOST_2, (HOST_1,))


def test_partitions_without_a_host_do_not_shift_the_others():
    routing = Routing(active=hosts(one=[0]))
    key = next(k for k in (b"a", b"b", b"c", b"d", b"e") if partition_for_key(k, 2) == 1)
    found = key_hosts(routing, ["words"], {"words": 2}, key)
    assert found.active is None
    assert found.partition == 1


def test_the_widest_topic_of_the_subtopology_decides():
    found = key_hosts(Routing(), ["a", "b"], {"a": 1, "b": 3}, b"k", partitioner=lambda _, n: n - 1)
    assert found.partition == 2


def test_without_a_partition_count_there_is_no_answer():
    with pytest.raises(MissingSourceTopic, match="words"):
        key_hosts(Routing(), ["words"], {}, b"k")


def test_a_key_that_is_not_serialised_is_refused():
    with pytest.raises(TypeError, match=r"key='x' is of type str; give it serialised, as bytes"):
        key_hosts(Routing(), ["words"], {"words": 4}, "x")


def test_a_topic_without_partitions_is_refused():
    with pytest.raises(ValueError, match="partitions=0: a topic has one"):
        partition_for_key(b"k", 0)
