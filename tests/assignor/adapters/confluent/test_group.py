"""The facade in a group: assignments, callbacks, partitions beside the group's own."""

import threading
import time

import confluent_kafka
import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from assignor import TasksListener, Topology
from system_tests.broker import Fault
from tests.assignor.adapters.confluent.harness import (
    GROUP,
    LIMIT_S,
    SHORT,
    Calls,
    committed,
    fill,
    numbers,
    poll_until,
    read,
    servers_of,
)


def test_records_of_all_partitions_are_read_and_the_callback_runs_on_this_thread(broker, consumer):
    fill(broker)
    calls = Calls()
    member = consumer()
    assert member.memberid() is None
    member.subscribe(["words"], **calls.callbacks)
    records = read(member, 40)
    assert sorted(int(record.value()) for record in records) == list(range(40))
    assert calls.calls == [("assign", [0, 1, 2, 3])]
    assert calls.threads == {threading.get_ident()}
    assert numbers(member.assignment()) == [0, 1, 2, 3]
    assert member.memberid().startswith("rdkafka-")
    assert len(member.assignor.tasks.active) == 4
    member.close()
    assert calls.calls[1:] == [("revoke", [0, 1, 2, 3])]


@pytest.mark.parametrize("protocol", ["cooperative", "eager"])
def test_partitions_move_when_members_come_and_go(broker, consumer, protocol):
    fill(broker)
    first, second = Calls(), Calls()
    consumer_a = consumer(rebalance_protocol=protocol)
    consumer_a.subscribe(["words"], **first.callbacks)
    poll_until(lambda: first.owned == [0, 1, 2, 3], consumer_a)
    consumer_b = consumer(rebalance_protocol=protocol)
    consumer_b.subscribe(["words"], **second.callbacks)
    poll_until(lambda: len(first.owned) == len(second.owned) == 2, consumer_a, consumer_b)
    assert sorted(first.owned + second.owned) == [0, 1, 2, 3]
    assert numbers(consumer_a.assignment()) == first.owned
    assert numbers(consumer_b.assignment()) == second.owned
    # A cooperative member gives up what moves, an eager one everything.
    moved = sorted({0, 1, 2, 3} - {*first.owned})
    assert first.of("revoke")[-1] == (moved if protocol == "cooperative" else [0, 1, 2, 3])
    consumer_b.close()
    poll_until(lambda: first.owned == [0, 1, 2, 3], consumer_a)
    assert second.owned == []
    assert first.of("lost") == second.of("lost") == []


def test_records_of_kept_partitions_go_on_while_the_group_rebalances(broker, consumer):
    first, second = Calls(), Calls()
    consumer_a, consumer_b = consumer(), consumer()
    consumer_a.subscribe(["words"], **first.callbacks)
    consumer_b.subscribe(["words"], **second.callbacks)
    poll_until(lambda: len(first.owned) == len(second.owned) == 2, consumer_a, consumer_b)
    broker.inject(Fault(api="SyncGroup", delay_ms=600_000, times=3))
    consumer_c = consumer()
    consumer_c.subscribe(["words"])
    poll_until(lambda: state(broker) == "CompletingRebalance", consumer_a, consumer_b, consumer_c)
    fill(broker, 400)
    poll_until(
        lambda: position(consumer_a, first.owned) + position(consumer_b, second.owned) == 400,
        consumer_a,
        consumer_b,
    )
    consumer_a.commit(asynchronous=True)
    assert state(broker) == "CompletingRebalance"
    broker.clear_faults()


def state(broker):
    return broker.groups()[GROUP].state.value


def position(consumer, partitions):
    found = consumer.position([TopicPartition("words", each) for each in partitions])
    return sum(max(0, each.offset) for each in found)


def test_an_eager_on_assign_may_call_assign(broker, consumer):
    fill(broker)

    def assign(member, partitions):
        member.assign([TopicPartition(p.topic, p.partition, 5) for p in partitions])

    member = consumer(rebalance_protocol="eager")
    member.subscribe(["words"], on_assign=assign)
    assert {record.offset() for record in read(member, 20)} == {5, 6, 7, 8, 9}


def test_assign_is_refused_while_a_cooperative_group_assigns(broker, consumer):
    member = consumer()
    member.assign([TopicPartition("other", 0)])
    member.unassign()
    member.subscribe(["words"])
    for change in (lambda: member.assign([TopicPartition("other", 0)]), member.unassign):
        with pytest.raises(KafkaException, match="COOPERATIVE") as raised:
            change()
        assert raised.value.args[0].code() == KafkaError._STATE


def test_partitions_beside_the_groups_own_stay_through_rebalances(broker, consumer):
    fill(broker)
    fill(broker, 6, topic="other", partitions=2)
    calls, others = Calls(), Calls()
    member = consumer()
    member.subscribe(["words"], **calls.callbacks)
    seen = poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    read(member, 40 - len(seen))
    member.incremental_assign([TopicPartition("other", 1, OFFSET_BEGINNING)])
    assert {record.topic() for record in read(member, 3)} == {"other"}
    second = consumer()
    second.subscribe(["words"], **others.callbacks)
    poll_until(lambda: len(calls.owned) == len(others.owned) == 2, member, second)
    fill(broker, 6, topic="other", partitions=2)
    assert {(record.topic(), record.partition()) for record in read(member, 3)} == {("other", 1)}
    member.incremental_unassign([TopicPartition("other", 1)])
    assert numbers(member.assignment()) == calls.owned


def test_a_refused_unassignment_changes_nothing(broker, consumer):
    first, second = Calls(), Calls()
    member = consumer()
    member.subscribe(["words"], **first.callbacks)
    poll_until(lambda: first.owned == [0, 1, 2, 3], member)
    known = [TopicPartition("words", number) for number in range(4)]
    with pytest.raises(KafkaException, match="assignment"):
        member.incremental_unassign([*known, TopicPartition("other", 1)])
    fill(broker)
    read(member, 40)
    member.commit(asynchronous=False)
    assert committed(broker) == dict.fromkeys(range(4), 10)
    other = consumer()
    other.subscribe(["words"], **second.callbacks)
    poll_until(lambda: len(first.owned) == len(second.owned) == 2, member, other)
    assert numbers(member.assignment()) == first.owned


def test_on_revoke_keeps_the_partition_until_it_returns_and_may_commit(broker, consumer):
    fill(broker)
    events = []

    def on_revoke(member, partitions):
        offsets = [TopicPartition(p.topic, p.partition, 3) for p in partitions]
        result = member.commit(offsets=offsets, asynchronous=False)
        events.append([each.error for each in result])

    first, second = Calls(), Calls()
    consumer_a = consumer({"enable.auto.commit": False})
    consumer_a.subscribe(["words"], on_assign=first.callbacks["on_assign"], on_revoke=on_revoke)
    poll_until(lambda: first.owned == [0, 1, 2, 3], consumer_a)
    consumer_b = consumer({"enable.auto.commit": False})
    consumer_b.subscribe(["words"], **second.callbacks)
    poll_until(lambda: events, consumer_a)
    read_by_two = []
    while len(read_by_two) < 14:
        consumer_a.poll(0.02)
        message = consumer_b.poll(0.02)
        read_by_two += [] if message is None else [message.offset()]
    assert events == [[None, None]]
    assert dict.fromkeys(second.owned, 3) == committed(broker)
    assert sorted(read_by_two) == sorted(2 * [*range(3, 10)])


def test_unsubscribe_leaves_the_group_and_poll_calls_on_revoke(broker, consumer):
    calls = Calls()
    member = consumer()
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    member.unsubscribe()
    poll_until(lambda: calls.owned == [], member)
    poll_until(lambda: not broker.groups()[GROUP].members, member)
    assert member.assignment() == []
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    assert calls.of("revoke") == [[0, 1, 2, 3]]


def test_a_second_subscribe_replaces_the_callbacks(broker, consumer):
    calls, later = Calls(), Calls()
    member = consumer()
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    member.subscribe(["words"], **later.callbacks)
    member.close()
    assert calls.of("revoke") == []
    assert later.of("revoke") == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("topics", "why"),
    [
        (["words", "other"], "topic 'other' is not a source topic of the topology"),
        (["^w.*"], "'^w.*' is a pattern, and the group assigns tasks of the topology's source"),
        ([], "topic 'words' of the topology is missing"),
        (["words", "words"], "topic 'words' is given twice; remove one"),
    ],
)
def test_topics_are_those_of_the_topology(broker, consumer, topics, why):
    with pytest.raises(KafkaException, match=why.replace("^", r"\^")) as raised:
        consumer().subscribe(topics)
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG


@pytest.mark.parametrize("topics", ["words", b"words", [b"words"], [1], None])
def test_topics_are_a_sequence_of_names(broker, consumer, topics):
    with pytest.raises(TypeError, match="expected list of"):
        consumer().subscribe(topics)


def test_repartition_topics_are_subscribed_to_without_being_named(broker, consumer):
    topology = (
        Topology()
        .add_source("words", topics=["words"])
        .add_sink("by-letter", topic="letters", parents=["words"])
        .add_repartition_topic("letters", partitions=3)
        .add_source("letters", topics=["letters"])
    )
    calls = Calls()
    member = consumer(topology=topology)
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: len(member.assignment()) == 7, member)
    assert {p.topic for p in member.assignment()} == {"words", "words-group-letters-repartition"}


def test_listener_calls_come_before_those_of_partitions_on_the_same_thread(broker, consumer):
    order, threads = [], set()

    class Tasks(TasksListener):
        def on_tasks_assigned(self, active, standby):
            order.append(("tasks", len(active)))
            threads.add(threading.get_ident())

        def on_tasks_revoked(self, active, standby):
            order.append(("tasks revoked", len(active)))

    member = consumer(listener=Tasks())
    member.subscribe(["words"], on_assign=lambda _, ps: order.append(("partitions", len(ps))))
    poll_until(lambda: ("partitions", 4) in order, member)
    assert order[-2:] == [("tasks", 4), ("partitions", 4)]
    assert threads == {threading.get_ident()}


def test_a_static_member_that_returns_keeps_its_partitions_without_a_rebalance(broker, consumer):
    first, second = Calls(), Calls()
    static = {"group.instance.id": "one"}
    member = consumer(static)
    member.subscribe(["words"], **first.callbacks)
    poll_until(lambda: first.owned == [0, 1, 2, 3], member)
    generation = broker.groups()[GROUP].generation
    member.close()
    member = consumer(static)
    member.subscribe(["words"], **second.callbacks)
    poll_until(lambda: second.owned == [0, 1, 2, 3], member)
    assert broker.groups()[GROUP].generation == generation


def test_a_poll_without_timeout_waits_for_the_first_record(broker, consumer):
    member = consumer()
    member.subscribe(["words"])
    found = []
    thread = threading.Thread(target=lambda: found.append(member.poll()))
    thread.start()
    fill(broker, 1)
    thread.join(LIMIT_S)
    assert found[0].value() == b"0"
    assert member.poll(0) is None
    started = time.monotonic()
    assert member.consume(10, 0.3) == []
    assert time.monotonic() - started > 0.2


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_of_plain_consumers_is_bounced_to_tasks(broker, consumer, strategy):
    """The coordinator selects the assignor of tasks once every member lists it."""
    old = confluent_kafka.Consumer(
        {
            **SHORT,
            "bootstrap.servers": servers_of(broker),
            "partition.assignment.strategy": strategy,
        }
    )
    old.subscribe(["words"])
    poll_until(lambda: len(old.assignment()) == 4, old)
    first, second = Calls(), Calls()
    consumer_a = consumer({"partition.assignment.strategy": strategy})
    consumer_a.subscribe(["words"], **first.callbacks)
    poll_until(lambda: len(first.owned) == 2 and len(old.assignment()) == 2, old, consumer_a)
    assert broker.groups()[GROUP].protocol_name == strategy
    assert not consumer_a.assignor.tasks.active
    old.close()
    poll_until(lambda: first.owned == [0, 1, 2, 3] and consumer_a.assignor.tasks.active, consumer_a)
    assert broker.groups()[GROUP].protocol_name == "stream"
    consumer_b = consumer({"partition.assignment.strategy": strategy})
    consumer_b.subscribe(["words"], **second.callbacks)
    poll_until(lambda: len(first.owned) == len(second.owned) == 2, consumer_a, consumer_b)
    assert len(consumer_a.assignor.tasks.active) == len(consumer_b.assignor.tasks.active) == 2
