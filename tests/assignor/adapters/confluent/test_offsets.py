"""What is committed, when, and how it is reported: librdkafka's stored offsets and commits."""

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from assignor.adapters.confluent.errors import error_message
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.adapters.confluent.harness import (
    GROUP,
    Calls,
    committed,
    fill,
    poll_until,
    read,
    servers_of,
)
from tests.assignor.embedding.clusters import until

MANUAL = {"enable.auto.commit": False}
STORED = {"enable.auto.offset.store": False}
ALL = dict.fromkeys(range(4), 10)


def joined(member):
    calls = Calls()
    member.subscribe(["words"], **calls.callbacks)
    poll_until(lambda: calls.owned == [0, 1, 2, 3], member)
    return member


def test_auto_commit_commits_what_poll_has_returned_at_intervals(broker, consumer):
    fill(broker)
    member = consumer({"auto.commit.interval.ms": 50})
    member.subscribe(["words"])
    read(member, 40)
    poll_until(lambda: committed(broker) == ALL, member)


def test_auto_commit_waits_for_the_poll_that_follows_the_records(broker, consumer):
    """An application that dies in its work gets the records again."""
    member = joined(consumer({"auto.commit.interval.ms": 50}))
    fill(broker, 1)
    read(member, 1)
    until(lambda: member._mailbox.events)
    assert committed(broker) == {}
    poll_until(lambda: committed(broker) == {0: 1}, member)


def test_what_is_read_again_does_not_set_the_group_back(broker, consumer):
    fill(broker)
    first = consumer()
    first.subscribe(["words"])
    read(first, 40)
    first.close()

    def from_the_beginning(member, partitions):
        member.incremental_assign([TopicPartition(p.topic, p.partition, 0) for p in partitions])

    again = consumer(MANUAL)
    again.subscribe(["words"], on_assign=from_the_beginning)
    read(again, 20)
    with pytest.raises(KafkaException) as raised:
        again.commit(asynchronous=False)
    assert raised.value.args[0].code() == KafkaError._NO_OFFSET
    read(again, 20)
    fill(broker, 4)
    read(again, 4)
    again.commit(asynchronous=False)
    assert committed(broker) == dict.fromkeys(range(4), 11)


@pytest.mark.parametrize(("auto", "expected"), [(True, ALL), (False, {})])
def test_close_commits_if_that_is_automatic(broker, consumer, auto, expected):
    fill(broker)
    member = consumer({"enable.auto.commit": auto, "auto.commit.interval.ms": 600_000})
    member.subscribe(["words"])
    read(member, 40)
    member.close()
    assert committed(broker) == expected


def test_partitions_that_move_are_committed_before_another_member_reads_them(broker, consumer):
    fill(broker)
    settings = {"auto.commit.interval.ms": 600_000}
    first, second = Calls(), Calls()
    consumer_a = consumer(settings)
    consumer_a.subscribe(["words"], **first.callbacks)
    read(consumer_a, 40)
    consumer_b = consumer(settings)
    consumer_b.subscribe(["words"], **second.callbacks)
    poll_until(lambda: len(second.owned) == 2, consumer_a, consumer_b)
    fill(broker, 4)
    moved = dict.fromkeys(second.owned, 10)
    assert committed(broker) == moved
    assert {record.offset() for record in read(consumer_b, 2)} == {10}


def test_offsets_that_the_application_stores_are_committed_in_the_background(broker, consumer):
    fill(broker)
    member = consumer(STORED | {"auto.commit.interval.ms": 50})
    member.subscribe(["words"])
    records = read(member, 40)
    member.store_offsets(message=next(r for r in records if (r.partition(), r.offset()) == (1, 5)))
    member.store_offsets(offsets=[TopicPartition("words", 2, 3)])
    # Without a poll: the member's thread commits.
    poll_until(lambda: committed(broker) == {1: 6, 2: 3})


def test_commit_without_arguments_takes_what_is_stored_and_newer(broker, consumer):
    fill(broker)
    member = consumer(MANUAL)
    member.subscribe(["words"])
    read(member, 40)
    result = member.commit(asynchronous=False)
    assert {each.partition: each.offset for each in result} == ALL
    assert [each.error for each in result] == [None] * 4
    assert committed(broker) == ALL
    with pytest.raises(KafkaException) as raised:
        member.commit(asynchronous=False)
    assert raised.value.args[0].code() == KafkaError._NO_OFFSET
    # As in librdkafka, going back does not set the group back by itself.
    member.seek(TopicPartition("words", 0, 2))
    read(member, 3)
    with pytest.raises(KafkaException):
        member.commit(asynchronous=False)
    member.commit(offsets=[TopicPartition("words", 0, 2)], asynchronous=False)
    assert committed(broker) == ALL | {0: 2}


def test_commit_takes_a_record_or_offsets_with_metadata_and_epoch(broker, consumer):
    fill(broker)
    member = consumer(MANUAL)
    member.subscribe(["words"])
    record = next(r for r in read(member, 40) if r.partition() == 3)
    [position] = member.commit(message=record, asynchronous=False)
    assert (position.partition, position.offset) == (3, record.offset() + 1)
    member.commit(offsets=[TopicPartition("words", 1, 4, "note")], asynchronous=False)
    [found] = member.committed([TopicPartition("words", 1)])
    assert (found.offset, found.metadata) == (4, "note")
    key = next(key for key in broker.committed(GROUP) if key.partition == 3)
    assert broker.committed(GROUP)[key].leader_epoch == record.leader_epoch()


def test_the_end_of_asynchronous_commits_is_passed_to_on_commit_by_poll(broker, consumer):
    fill(broker)
    ends = []
    member = consumer(
        MANUAL | {"on_commit": lambda error, offsets: ends.append((error, offsets[0].offset))}
    )
    joined(member)
    assert member.commit(offsets=[TopicPartition("words", 0, 1)]) is None
    assert member.commit(offsets=[TopicPartition("words", 0, 2)], **{"async": True}) is None
    poll_until(lambda: len(ends) == 2, member)
    assert ends == [(None, 1), (None, 2)]
    assert committed(broker) == {0: 2}


def test_many_commits_become_few_requests(broker, consumer):
    fill(broker, 4)
    member = joined(consumer(MANUAL))
    broker.inject(Fault(api="OffsetCommit", delay_ms=600_000))
    for offset in range(1, 1001):
        member.commit(offsets=[TopicPartition("words", 0, offset)])
    until(lambda: broker.requests("OffsetCommit"))
    broker.clear_faults()
    member.commit(offsets=[TopicPartition("words", 1, 1)], asynchronous=False)
    assert committed(broker) == {0: 1000, 1: 1}
    # The first of them, all that waited for its answer, and the last one.
    assert len(broker.requests("OffsetCommit")) <= 3


@pytest.mark.parametrize("code", [14, 15, 16, 27])
def test_a_commit_is_tried_again_while_the_coordinator_cannot_take_it(broker, consumer, code):
    member = joined(consumer(MANUAL))
    broker.inject(Fault(api="OffsetCommit", error=code, times=3))
    member.commit(offsets=[TopicPartition("words", 0, 5)], asynchronous=False)
    assert committed(broker) == {0: 5}
    assert len(broker.requests("OffsetCommit")) == 4


def test_errors_of_brokers_keep_their_codes(broker, consumer):
    ends = []
    member = joined(consumer(MANUAL | {"on_commit": lambda error, _: ends.append(error)}))
    broker.inject(Fault(api="OffsetCommit", error=KafkaError.TOPIC_AUTHORIZATION_FAILED, times=2))
    with pytest.raises(KafkaException, match="Commit failed") as raised:
        member.commit(offsets=[TopicPartition("words", 0, 5)], asynchronous=False)
    assert raised.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert raised.value.args[0].str().count("Commit failed") == 1
    member.commit(offsets=[TopicPartition("words", 0, 5)])
    poll_until(lambda: ends, member)
    assert ends[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_consumer_in_no_group_commits_as_well(broker, consumer):
    member = consumer()
    [position] = member.commit(offsets=[TopicPartition("words", 0, 3)], asynchronous=False)
    assert position.error is None
    assert committed(broker) == {0: 3}
    assert broker.groups()[GROUP].members == ()


def test_offsets_of_a_partition_that_another_member_has_are_refused(broker, consumer):
    fill(broker)
    first, second = Calls(), Calls()
    consumer_a, consumer_b = consumer(MANUAL), consumer(MANUAL)
    consumer_a.subscribe(["words"], **first.callbacks)
    consumer_b.subscribe(["words"], **second.callbacks)
    poll_until(lambda: len(first.owned) == len(second.owned) == 2, consumer_a, consumer_b)
    foreign, own = second.owned[0], first.owned[0]
    with pytest.raises(KafkaException, match="is not assigned to this consumer") as raised:
        consumer_a.commit(offsets=[TopicPartition("words", foreign, 1)], asynchronous=False)
    assert raised.value.args[0].code() == KafkaError._ASSIGNMENT_LOST
    consumer_a.commit(offsets=[TopicPartition("words", own, 1)], asynchronous=False)
    consumer_a.commit(offsets=[TopicPartition("other", 0, 1)], asynchronous=False)
    assert committed(broker) == {own: 1}


def test_store_offsets_needs_that_they_are_not_stored_by_themselves(broker, consumer):
    member = joined(consumer())
    with pytest.raises(KafkaException) as raised:
        member.store_offsets(offsets=[TopicPartition("words", 0, 1)])
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG


def test_offsets_that_are_not_read_cannot_be_stored(broker, consumer):
    member = joined(consumer(STORED))
    with pytest.raises(KafkaException):
        member.store_offsets(offsets=[TopicPartition("other", 0, 1)])
    with pytest.raises(KafkaException) as raised:
        member.commit(asynchronous=False)
    assert raised.value.args[0].code() == KafkaError._NO_OFFSET


def test_errors_are_not_committed(broker, consumer):
    member = joined(consumer(MANUAL))
    error = error_message(KafkaError(KafkaError._PARTITION_EOF))
    with pytest.raises(KafkaException, match="message with error") as raised:
        member.commit(message=error)
    assert raised.value.args[0].code() == KafkaError._INVALID_ARG
    with pytest.raises(TypeError, match="expected"):
        member.commit(message="a record")
    with pytest.raises(TypeError, match="'asynchonous' is an invalid keyword argument"):
        member.commit(asynchonous=False)
    with pytest.raises(ValueError, match="mutually exclusive"):
        member.commit(message=error, offsets=[])


def test_logical_offsets_are_passed_over(broker, consumer):
    member = joined(consumer(MANUAL))
    offsets = [TopicPartition("words", 0), TopicPartition("words", 1, 2)]
    result = member.commit(offsets=offsets, asynchronous=False)
    assert [each.error for each in result] == [None, None]
    assert committed(broker) == {1: 2}
    with pytest.raises(KafkaException) as raised:
        member.commit(offsets=offsets[:1], asynchronous=False)
    assert raised.value.args[0].code() == KafkaError._NO_OFFSET


@pytest.mark.parametrize("protocol", ["cooperative", "eager"])
def test_new_partitions_are_read_after_another_broker_has_become_coordinator(consumer, protocol):
    """librdkafka itself would wait for their committed offsets for ever."""
    with running_broker(BrokerConfig(topics={"words": 4}, nodes=2)) as broker:
        fill(broker)
        servers = {"bootstrap.servers": servers_of(broker)}
        with consumer(servers, rebalance_protocol=protocol) as first:
            first.subscribe(["words"])
            read(first, 40)
            first.commit(asynchronous=False)
            broker.move_coordinator(GROUP, 3 - broker.coordinator_of(GROUP))
            with consumer(servers, rebalance_protocol=protocol) as second:
                second.subscribe(["words"])
                both = (first, second)
                poll_until(lambda: [len(each.assignment()) for each in both] == [2, 2], *both)
            poll_until(lambda: len(first.assignment()) == 4, first)
            fill(broker, 8)
            records = read(first, 8)
            assert {record.offset() for record in records} == {10, 11}


@pytest.mark.parametrize(("reset", "offsets"), [("earliest", {0, 1}), ("latest", {1})])
def test_partitions_without_commits_begin_where_the_reset_says(broker, consumer, reset, offsets):
    fill(broker, 4)
    member = consumer({"auto.offset.reset": reset})
    member.subscribe(["words"])
    records = poll_until(lambda: len(member.assignment()) == 4, member)
    if reset == "earliest":
        records += read(member, 4 - len(records))
    until(lambda: all(end_known(member, each) for each in member.assignment()))
    fill(broker, 4)
    records += read(member, 4)
    assert {record.offset() for record in records} == offsets


def end_known(member, partition):
    """Whether librdkafka reads the partition: it then knows its end."""
    assert member.poll(0) is None
    return member.get_watermark_offsets(partition, cached=True)[1] == 1
