"""StreamsPartitionAssignorTest: its cases about tasks, threads and standbys, by Kafka's names.

Kafka's class also tests internal topics, requests to brokers and the bytes; those are not here.
Each case of a whole group runs with the port of Kafka's assignor and with `high_availability`.
"""

from uuid import UUID

import pytest

from assignor import (
    AssignmentConfig,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    Topology,
    assign_group,
)
from assignor.placement import find_strategy
from assignor.rebalance.threads import assign_threads
from encoding import Subscription, TaskId, TaskOffsetSums, TopicPartition, encode_subscription
from probing import find_release

LOGGED, NOT_LOGGED = "logged", "not logged"
# As in Kafka's tests, no standby has made progress.
RUNNING, STARTED, END = -2, 0, 10**9
STRATEGIES = ("high_availability", "kafka_high_availability")

# Eight tasks as three consumers of one client ran them.
HELD = {"c1": ["0_0", "1_1", "1_3"], "c2": ["0_3", "1_0"], "c3": ["0_1", "0_2", "1_2"]}
EIGHT = [f"{subtopology}_{partition}" for subtopology in (0, 1) for partition in range(4)]


def ids(names):
    return tuple(TaskId(*map(int, name.split("_"))) for name in names)


def dealt(tasks, threads, held):
    owners = {task: name for name, names in held.items() for task in ids(names)}
    found = assign_threads(ids(tasks), threads=threads, owner_by_task=owners)
    return {name: list(map(str, own)) for name, own in found.items()}


def test_should_produce_sticky_and_balanced_assignment_when_nothing_changes():
    assert dealt(EIGHT, ["c1", "c2", "c3"], HELD) == HELD


def test_should_produce_sticky_and_balanced_assignment_when_new_tasks_are_added():
    grown = HELD | {"c2": [*HELD["c2"], "2_0"]}
    assert dealt([*EIGHT, "2_0"], ["c1", "c2", "c3"], HELD) == grown


def test_should_produce_maximally_sticky_assignment_when_member_leaves():
    found = dealt(EIGHT, ["c1", "c2"], HELD)
    assert all(set(HELD[name]) <= set(found[name]) for name in ("c1", "c2"))
    assert [len(found[name]) for name in ("c1", "c2")] == [4, 4]


def test_should_produce_sticky_enough_assignment_when_new_member_joins():
    found = dealt(EIGHT, ["c1", "c2", "c3", "c4"], HELD)
    assert set(found["c1"]) <= set(HELD["c1"])
    assert set(found["c3"]) <= set(HELD["c3"])
    assert found["c2"] == HELD["c2"]
    assert [len(own) for own in found.values()] == [2, 2, 2, 2]


def test_should_interleave_tasks_by_group_id_during_new_assignment():
    tasks = ["2_1", "0_3", "1_0", "0_0", "1_2", "2_0", "0_1", "1_1", "0_2"]
    assert dealt(tasks, ["c1", "c2", "c3"], {}) == {
        "c1": ["0_0", "0_3", "1_2"],
        "c2": ["0_1", "1_0", "2_0"],
        "c3": ["0_2", "1_1", "2_1"],
    }


def topology(*parts):
    """Subtopologies of (topics, store: None, LOGGED or NOT_LOGGED)."""
    built = Topology()
    for number, (topics, store) in enumerate(parts):
        name = f"processor-{number}"
        for topic in topics:
            built = built.add_source(topic, topics=[topic])
        built = built.add_processor(name, parents=list(topics))
        if store is not None:
            logged = store is LOGGED
            built = built.add_state_store(f"store-{number}", processors=[name], logged=logged)
    return built


def member(process, name, *, runs=(), standbys=(), owned=()):
    sums = dict.fromkeys(ids(runs), RUNNING) | dict.fromkeys(ids(standbys), STARTED)
    subscription = Subscription(
        version=11,
        latest_supported_version=11,
        process_id=UUID(int=process),
        user_endpoint=f"h{process}:80",
        task_offset_sums=TaskOffsetSums.from_mapping(sums),
    )
    return GroupMember(
        member_id=name,
        user_data=encode_subscription(subscription),
        owned_partitions=tuple(TopicPartition(*partition) for partition in owned),
    )


def answers(strategy, parts, partitions, members, *, standbys=0):
    """Member -> its answer."""
    settings = LeaderSettings(
        release=find_release("3.9.1"),
        subtopologies=topology(*parts).subtopologies("app"),
        config=AssignmentConfig(num_standby_replicas=standbys),
        strategy=find_strategy(strategy),
    )
    ends = {
        TaskId(number, partition): END
        for number, (topics, store) in enumerate(parts)
        for partition in range(max(partitions[topic] for topic in topics))
        if store is LOGGED
    }
    knowledge = LeaderKnowledge(end_offset_sums=ends)
    found = assign_group(settings, members, partitions, knowledge=knowledge)
    assert found.faults == ()
    return found.answers


def actives(answer):
    """Its active tasks, each once; on the wire they have an entry a partition."""
    return list(map(str, dict.fromkeys(answer.assignment.active_tasks)))


def standbys_of(answer):
    return sorted(map(str, answer.assignment.standby_tasks))


def work(answer):
    return len(actives(answer)) + len(standbys_of(answer))


BOTH = ("topic1", "topic2")
THREE = {"topic1": 3, "topic2": 3}
per_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


@per_strategy
def test_assign_basic(strategy):
    members = [
        member(1, "consumer10", runs=["0_0"]),
        member(1, "consumer11", runs=["0_1"], standbys=["0_2"]),
        member(2, "consumer20", runs=["0_2"], standbys=["0_0"]),
    ]
    found = answers(strategy, [(BOTH, LOGGED)], THREE, members)
    assert sorted(actives(found["consumer10"]) + actives(found["consumer11"])) == ["0_0", "0_1"]
    assert actives(found["consumer20"]) == ["0_2"]
    for answer in found.values():
        (task,) = set(answer.assignment.active_tasks)
        assert set(answer.partitions) == {TopicPartition(topic, task.partition) for topic in BOTH}


@per_strategy
def test_should_assign_evenly_across_consumers_one_client_multiple_threads(strategy):
    members = [member(1, "consumer10"), member(1, "consumer11")]
    parts = [(["topic1"], None), (["topic2"], None)]
    found = answers(strategy, parts, {"topic1": 4, "topic2": 4}, members)
    assert actives(found["consumer10"]) == ["0_0", "0_2", "1_0", "1_2"]
    assert actives(found["consumer11"]) == ["0_1", "0_3", "1_1", "1_3"]


@per_strategy
def test_should_not_assign_temporary_standby_task(strategy):
    members = [
        member(1, "consumer10", runs=["0_0", "0_2"], owned=[("topic1", 0), ("topic1", 2)]),
        member(1, "consumer11", runs=["0_1", "0_3"], owned=[("topic1", 1), ("topic1", 3)]),
        member(2, "consumer20"),
    ]
    found = answers(strategy, [(["topic1"], None)], {"topic1": 4}, members)
    assert work(found["consumer20"]) == 0


@per_strategy
def test_assign_with_new_tasks(strategy):
    topics = ("topic1", "topic2", "topic3")
    members = [
        member(1, "consumer10", runs=["0_0"]),
        member(1, "consumer11", runs=["0_1"]),
        member(2, "consumer20", runs=["0_2"]),
    ]
    partitions = {"topic1": 3, "topic2": 3, "topic3": 4}
    found = answers(strategy, [(topics, None)], partitions, members)
    tasks = sorted(task for answer in found.values() for task in actives(answer))
    assert tasks == ["0_0", "0_1", "0_2", "0_3"]
    given = {partition for answer in found.values() for partition in answer.partitions}
    assert given == {TopicPartition(t, p) for t, count in partitions.items() for p in range(count)}


@per_strategy
@pytest.mark.parametrize(
    "store", [None, NOT_LOGGED], ids=["and_stateless_tasks", "and_logging_disabled"]
)
def test_assign_with_standby_replicas_without_changelogs(strategy, store):
    members = [member(1, "consumer10", runs=["0_0"]), member(2, "consumer20", runs=["0_2"])]
    found = answers(strategy, [(BOTH, store)], THREE, members, standbys=1)
    assert [standbys_of(answer) for answer in found.values()] == [[], []]


@per_strategy
def test_assign_with_standby_replicas(strategy):
    members = [
        member(1, "consumer10", runs=["0_0"]),
        member(1, "consumer11", runs=["0_1"], standbys=["0_2"]),
        member(2, "consumer20", runs=["0_2"], standbys=["0_0"]),
    ]
    found = answers(strategy, [(BOTH, LOGGED)], THREE, members, standbys=1)
    first, second, third = (found[f"consumer{number}"] for number in (10, 11, 20))
    assert standbys_of(first) != standbys_of(second)
    assert sorted(actives(first) + actives(second)) == ["0_0", "0_1"]
    assert standbys_of(first) + standbys_of(second) == ["0_2"]
    assert actives(third) == ["0_2"]
    assert standbys_of(third) == ["0_0", "0_1"]
    everything = {TopicPartition(topic, p) for topic in BOTH for p in range(3)}
    runs, stands = (
        {host: set(own) for host, own in hosts.items()}
        for hosts in (
            first.assignment.partitions_by_host,
            first.assignment.standby_partitions_by_host,
        )
    )
    assert len(runs) == len(stands) == 2
    assert set().union(*runs.values()) == set().union(*stands.values()) == everything
    assert all(runs[host].isdisjoint(stands[host]) for host in runs)
    for other in (second, third):
        assert other.assignment.partitions_by_host == first.assignment.partitions_by_host
        assert (
            other.assignment.standby_partitions_by_host
            == first.assignment.standby_partitions_by_host
        )


@per_strategy
def test_assign_with_standby_replicas_balance_sparse(strategy):
    members = [
        *(member(1, f"consumer1{number}") for number in range(4)),
        *(member(2, f"consumer2{number}") for number in range(3)),
    ]
    found = answers(strategy, [(["topic1"], LOGGED)], {"topic1": 3}, members, standbys=1)
    assert max(map(work, found.values())) == 1


@per_strategy
def test_assign_with_standby_replicas_balance_dense(strategy):
    members = [member(1, "consumer10"), member(2, "consumer20")]
    found = answers(strategy, [(["topic1"], LOGGED)], {"topic1": 3}, members, standbys=1)
    assert [work(answer) for answer in found.values()] == [3, 3]
    assert max(len(actives(answer)) for answer in found.values()) < 3


@per_strategy
def test_assign_with_standby_replicas_balance_with_stateless_tasks(strategy):
    members = [member(n, f"consumer{n}{k}") for n in (1, 2) for k in (0, 1)]
    parts = [(["topic1"], LOGGED), (["topic2"], None)]
    found = answers(strategy, parts, THREE, members, standbys=1)
    assert max(map(work, found.values())) <= 3
    assert max(len(standbys_of(answer)) for answer in found.values()) <= 1
