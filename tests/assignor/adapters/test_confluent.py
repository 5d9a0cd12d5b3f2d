"""librdkafka fetches records: which count as processed, and when offsets are committed."""

import queue
import threading
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, Message
from kafka import TopicPartition

from assignor.adapters import confluent
from assignor.adapters.confluent import ConfluentReader
from assignor.embedding import MemberStopped
from tests.assignor.embedding.clusters import until

LIMIT_S = 120
A, B = TopicPartition("words", 0), TopicPartition("words", 1)


class Librdkafka:
    """A fake of confluent-kafka's consumer: returns batches that the test provides."""

    def __init__(self, settings):
        self.settings = settings
        self.batches = queue.Queue()
        self.reads, self.closed = set(), False

    def consume(self, batch, timeout):
        try:
            return self.batches.get(timeout=0.01)
        except queue.Empty:
            return []

    def incremental_assign(self, where):
        self.reads |= {TopicPartition(partition.topic, partition.partition) for partition in where}

    def incremental_unassign(self, where):
        self.reads -= {TopicPartition(partition.topic, partition.partition) for partition in where}

    def close(self):
        self.closed = True


class Member:
    """A fake of kafka-python's consumer."""

    def __init__(self, servers=("a:1", "b:2")):
        self.config = {
            "bootstrap_servers": servers,
            "group_id": "g",
            "auto_offset_reset": "earliest",
        }
        self.paused, self.commits = set(), []

    def pause(self, *where):
        self.paused |= set(where)

    def commit_async(self, offsets):
        self.commits.append({where: committed.offset for where, committed in offsets.items()})


def record(where, offset):
    return Message(topic=where.topic, partition=where.partition, offset=offset, value=b"x")


@pytest.fixture
def reading(monkeypatch):
    monkeypatch.setattr(confluent, "Consumer", Librdkafka)
    made = []

    def make(process=lambda _: None, **options):
        member = Member()
        batches = queue.Queue()

        def processed(records):
            process(records)
            batches.put(
                [(message.topic(), message.partition(), message.offset()) for message in records]
            )

        reader = ConfluentReader(member, processed, **options)
        made.append(reader)
        return SimpleNamespace(
            member=member, reader=reader, client=reader._client, processed=batches
        )

    yield make
    for setup in made:
        setup.close()
        assert setup._client.closed


def settled(reading):
    """Wait until the reading thread has consumed all batches."""
    reading.reader._thread.submit(lambda: None).result(LIMIT_S)


def test_it_reaches_the_cluster_as_the_member_does_and_never_commits_by_itself(reading):
    setup = reading(settings={"security.protocol": "SSL", "enable.auto.commit": True})
    assert setup.client.settings == {
        "bootstrap.servers": "a:1,b:2",
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "security.protocol": "SSL",
        "enable.auto.commit": False,
    }


def test_what_is_assigned_is_read_here_and_not_by_the_member(reading):
    setup = reading()
    setup.reader.on_partitions_assigned({B, A})
    assert setup.client.reads == setup.member.paused == {A, B}
    setup.client.batches.put([record(A, 4), record(B, 7), record(A, 5)])
    assert len(setup.processed.get(timeout=LIMIT_S)) == 3
    settled(setup)
    setup.reader.commit()
    assert setup.member.commits == [{A: 6, B: 8}]


def test_a_partition_is_given_up_after_the_batch_under_way_and_with_its_commit(reading):
    begun, goes_on = threading.Event(), threading.Event()

    def process(_):
        begun.set()
        assert goes_on.wait(LIMIT_S)

    setup = reading(process)
    setup.reader.on_partitions_assigned({A, B})
    setup.client.batches.put([record(A, 0), record(B, 0)])
    assert begun.wait(LIMIT_S)
    giving_up = threading.Thread(target=setup.reader.on_partitions_revoked, args=({A},))
    giving_up.start()
    assert setup.member.commits == []
    goes_on.set()
    giving_up.join(LIMIT_S)
    assert setup.client.reads == {B}
    assert setup.member.commits == [{A: 1}]
    setup.reader.commit()
    assert setup.member.commits[1:] == [{B: 1}]


def test_of_a_partition_that_was_lost_nothing_is_committed(reading):
    setup = reading()
    setup.reader.on_partitions_assigned({A})
    setup.client.batches.put([record(A, 0)])
    setup.processed.get(timeout=LIMIT_S)
    setup.reader.on_partitions_lost({A})
    setup.reader.commit()
    assert setup.client.reads == set()
    assert setup.member.commits == []


def test_a_batch_that_fails_is_not_committed_and_ends_the_member(reading):
    def process(records):
        if records[0].offset():
            raise ValueError("no word")

    setup = reading(process)
    setup.reader.on_partitions_assigned({A})
    setup.client.batches.put([record(A, 0)])
    setup.client.batches.put([record(A, 1)])
    setup.processed.get(timeout=LIMIT_S)
    until(lambda: setup.reader._failure is not None)
    with pytest.raises(MemberStopped, match="ValueError: no word"):
        setup.reader.commit()
    setup.reader.on_partitions_revoked({A})
    assert setup.member.commits == [{A: 1}]


def test_errors_that_pass_are_passed_over_and_fatal_ones_end_the_member(reading, caplog):
    setup = reading()
    setup.reader.on_partitions_assigned({A})
    passing = Message(topic="words", error=KafkaError(KafkaError._ALL_BROKERS_DOWN, "all down"))
    setup.client.batches.put([passing, record(A, 0)])
    assert setup.processed.get(timeout=LIMIT_S) == [("words", 0, 0)]
    assert "all down" in caplog.text
    fatal = KafkaError(KafkaError._FATAL, "fenced", fatal=True)
    setup.client.batches.put([Message(topic="words", error=fatal)])
    until(lambda: setup.reader._failure is not None)
    with pytest.raises(MemberStopped, match="fenced"):
        setup.reader.commit()
