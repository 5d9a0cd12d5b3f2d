"""Where the facade begins to read, and seeks."""

import pytest
from confluent_kafka import KafkaException, TopicPartition

from assignor.adapters.confluent.offsets import partition_of
from assignor.adapters.confluent.processing import ConsumerLoop
from encoding import TopicPartition as Partition
from system_tests.broker import Fault
from tests.assignor.adapters.confluent.harness import fill, poll_until, read


def test_offsets_of_on_assign_are_where_reading_begins(broker, consumer):
    fill(broker)

    def from_the_seventh(member, partitions):
        for partition in partitions:
            partition.offset = 7
        member.incremental_assign(partitions)

    member = consumer()
    member.subscribe(["words"], on_assign=from_the_seventh)
    records = read(member, 12)
    assert {record.offset() for record in records} == {7, 8, 9}


@pytest.mark.parametrize("resets", ["earliest", "latest"])
@pytest.mark.parametrize("assigns", [True, False])
def test_a_seek_in_on_assign_counts(broker, consumer, assigns, resets):
    fill(broker)

    def seek(member, partitions):
        if assigns:
            member.incremental_assign(partitions)
        for partition in partitions:
            member.seek(TopicPartition(partition.topic, partition.partition, 8))

    member = consumer({"auto.offset.reset": resets})
    member.subscribe(["words"], on_assign=seek)
    assert {record.offset() for record in read(member, 8)} == {8, 9}
    assert member.poll(0.6) is None  # librdkafka asks again after half a second
    member.seek(TopicPartition("words", 2, 4))
    assert [record.offset() for record in read(member, 6)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(KafkaException, match="Failed to seek"):
        member.seek(TopicPartition("other", 0, 0))


def test_a_seek_is_the_position_until_the_next_record(broker, consumer):
    fill(broker)
    member = consumer()
    member.subscribe(["words"])
    read(member, 40)
    where = TopicPartition("words", 2, 4)
    member.seek(where)
    assert [each.offset for each in member.position([where])] == [4]
    assert [record.offset() for record in read(member, 1)] == [4]
    assert [each.offset for each in member.position([where])] == [5]


@pytest.mark.parametrize("resets", ["earliest", "latest"])
@pytest.mark.parametrize("offset", [8, None])
def test_a_seek_counts_while_no_broker_has_told_where_a_partition_begins(
    broker, consumer, monkeypatch, offset, resets
):
    """Half a second later librdkafka itself would ask again, and go on from there."""
    monkeypatch.setattr("assignor.adapters.confluent.checked_reader._LOOK_UP_S", 0.05)
    fill(broker)
    broker.inject(Fault(api="ListOffsets", times=2, delay_ms=1_000))

    def seek(member, partitions):
        member.incremental_assign(partitions)
        if offset is not None:
            ConsumerLoop(member).seek({partition_of(each): offset for each in partitions})

    member = consumer({"auto.offset.reset": resets})
    member.subscribe(["words"], on_assign=seek)
    begin = offset or {"earliest": 0, "latest": 10}[resets]
    read(member, 4 * (10 - begin))
    if begin == 10:
        stored, partitions = member._commits.stored, [Partition("words", n) for n in range(4)]
        poll_until(lambda: {stored.begun(each) for each in partitions} == {10}, member)
    assert member.poll(0.6) is None
    fill(broker, 4)
    assert {record.offset() for record in read(member, 4)} == {10}


def test_the_id_of_a_topic_is_asked_for_when_a_position_is_lost(broker, consumer, caplog):
    """The member would find it with its next metadata; records were processed twice till then."""
    fill(broker, 4)
    member = consumer()
    member.subscribe(["words"])
    read(member, 4)
    assert member.poll(0.2) is None  # its id is known

    def make_anew(embedded):
        embedded.cluster.delete_topic("words")
        for log in embedded.cluster.create_topic("words", 4).partitions:
            log.start_offset = log.end_offset = 5

    broker.call(make_anew)
    poll_until(
        lambda: "continues at offset 5" in caplog.text or "offset 5 of 5" in caplog.text, member
    )
    assert "words [0]: the topic was made anew, and its former one was read" in caplog.text
    assert "were deleted before they were read" not in caplog.text
