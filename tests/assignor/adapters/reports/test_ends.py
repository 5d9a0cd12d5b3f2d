"""Topics that are deleted, positions that are lost, and loops that end, as in public reports."""

import asyncio
import threading

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.structs import OffsetAndMetadata

from assignor import MemberStopped, Topology
from assignor.adapters import aiokafka, confluent, kafka_python
from assignor.embedding import LostPosition
from tests.assignor.adapters.reports.logs import (
    COUNTING,
    COUNTS,
    GROUP,
    LIMIT_S,
    LOOPS,
    SESSION,
    Seen,
    committed,
    confluent_member,
    filled,
    until,
)

pytestmark = pytest.mark.usefixtures("clock")
BOTH = Topology().add_source("k", topics=["in"]).add_source("g", topics=["gone"])


def delete_gone(broker):
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.delete_topics(["gone"])
    admin.close()


def commits_kafka_python(broker):
    with kafka_python.streams_consumer(
        BOTH, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
    ) as consumer:
        seen = Seen()
        for batch in kafka_python.polled(consumer, timeout_ms=200):
            seen.take(batch)
            if len(seen.records) == 6:
                break
        delete_gone(broker)
        return [kafka_python.commit_next(consumer) for _ in range(3)]


def commits_aiokafka(broker):
    async def run():
        async with aiokafka.streams_consumer(
            BOTH, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
        ) as consumer:
            seen = Seen()
            async for batch in aiokafka.polled(consumer, timeout_ms=200):
                seen.take(batch)
                if len(seen.records) == 6:
                    break
            await asyncio.to_thread(delete_gone, broker)
            return [await aiokafka.commit_next(consumer) for _ in range(3)]

    return asyncio.run(run())


@pytest.mark.parametrize("commits", [commits_kafka_python, commits_aiokafka])
def test_kafka_10355_and_aiokafka_1095_offsets_beside_those_of_a_deleted_topic_are_committed(
    commits, caplog
):
    """It returns False if that takes until `request_timeout_ms` is over."""
    with filled(3, topics=("in", "gone")) as broker:
        # Later ones may be refused: the group rebalances for the topic.
        assert commits(broker)[0]
        assert committed(broker) == {0: 3}
    [line] = [line for line in caplog.messages if line.startswith("topic gone, or a partition")]
    assert "its offsets are not committed; those of other topics are" in line


def set_committed(broker, **offsets):
    consumer = KafkaConsumer(group_id=GROUP, bootstrap_servers=broker.bootstrap_servers)
    given = {TopicPartition("in", int(name[1:])): at for name, at in offsets.items()}
    consumer.assign(list(given))
    consumer.commit({where: OffsetAndMetadata(at, "", -1) for where, at in given.items()})
    consumer.close(autocommit=False)


def delete_records(broker, before):
    def go(embedded):
        log = embedded.cluster.catalog.log("in", 0)
        del log._batches[:before]
        del log._last_offsets[:before]
        log.start_offset = before

    broker.call(go)


NO_RESET = {
    "kafka_python": {"auto_offset_reset": "none"},
    "aiokafka": {"auto_offset_reset": "none"},
    "confluent": {"auto.offset.reset": "error"},
}


@pytest.mark.parametrize("client", sorted(NO_RESET))
def test_kafka_python_860_and_988_a_lost_offset_without_a_reset_policy_ends_the_member(client):
    with filled(5, 2) as broker:
        set_committed(broker, p0=1, p1=5)
        delete_records(broker, 3)
        with pytest.raises(LostPosition, match="offset 1 does not exist") as raised:
            LOOPS[client](broker, Seen(), **NO_RESET[client])
        lost = raised.value
        assert (lost.topic, lost.partition, lost.offset) == ("in", 0, 1)
        assert committed(broker) == {0: 1, 1: 5}


@pytest.mark.parametrize("client", sorted(NO_RESET))
def test_a_partition_of_which_nothing_is_committed_ends_the_member_without_a_reset_policy(client):
    with filled(5, 2) as broker:
        set_committed(broker, p0=0)
        with pytest.raises(LostPosition, match=r"in \[1\]: no offset is committed") as raised:
            LOOPS[client](broker, Seen(until=100), **NO_RESET[client])
        assert (raised.value.partition, raised.value.offset) == (1, None)


def test_a_loop_over_a_member_that_has_left_says_so_and_does_not_wait():
    with (
        filled(5) as broker,
        kafka_python.streams_consumer(
            COUNTING,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            auto_offset_reset="none",
        ) as consumer,
    ):
        with pytest.raises(LostPosition):
            list(kafka_python.polled(consumer, timeout_ms=200))
        with pytest.raises(MemberStopped, match="an earlier loop has ended with the cause"):
            list(kafka_python.polled(consumer, timeout_ms=200))


def test_close_on_another_thread_ends_the_run_of_an_application():
    handled, outcomes = threading.Event(), []
    with filled(5) as broker:
        application = kafka_python.StreamsApplication(
            COUNTING,
            lambda *_: handled.set(),
            stores=[COUNTS],
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            **SESSION,
        )
        thread = threading.Thread(target=lambda: outcomes.append(application.run()))
        thread.start()
        assert handled.wait(LIMIT_S)
        application.close()
        thread.join(LIMIT_S)
        assert outcomes == [None]
        until(lambda: not broker.groups()[GROUP].members)
        with pytest.raises(MemberStopped, match="this consumer is closed"):
            application.run()
        application.close()


def test_close_on_another_thread_waits_for_the_record_that_is_processed():
    working, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def handle(record, state):
        working.set()
        assert goes_on.wait(LIMIT_S)
        state[COUNTS].put("n", record.offset)

    with filled(5) as broker:
        application = kafka_python.StreamsApplication(
            COUNTING,
            handle,
            stores=[COUNTS],
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            **SESSION,
        )
        run = threading.Thread(target=lambda: (application.run(), ended.set()))
        run.start()
        assert working.wait(LIMIT_S)
        close = threading.Thread(target=application.close)
        close.start()
        until(application._closing.is_set)
        assert not ended.is_set()
        goes_on.set()
        close.join(LIMIT_S)
        run.join(LIMIT_S)
        assert ended.is_set()
        assert committed(broker) == {0: 1}


@pytest.mark.parametrize("is_asked", [True, False])
def test_kafka_python_2059_a_loop_over_a_consumer_that_is_closed_elsewhere_ends(is_asked):
    polling, stop, outcomes = threading.Event(), threading.Event(), []
    with filled(5) as broker:
        consumer = kafka_python.streams_consumer(
            COUNTING, group_id=GROUP, bootstrap_servers=broker.bootstrap_servers, **SESSION
        )

        def run():
            try:
                for batch in kafka_python.polled(consumer, timeout_ms=200, stop=stop):
                    polling.set()
                    del batch
                outcomes.append("ended")
            except MemberStopped as error:
                outcomes.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        assert polling.wait(LIMIT_S)
        if is_asked:
            stop.set()
        consumer.close()
        thread.join(LIMIT_S)
    assert outcomes == ["ended" if is_asked else "this consumer is closed; make another to go on"]


def test_a_closed_consumer_of_confluent_kafka_ends_run_tasks():
    handled, outcomes = threading.Event(), []
    with filled(5) as broker, confluent_member(broker) as (consumer, stores):

        def run():
            try:
                confluent.run_tasks(consumer, stores, lambda *_: handled.set(), timeout=0.2)
            except MemberStopped as error:
                outcomes.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        assert handled.wait(LIMIT_S)
        consumer.close()
        thread.join(LIMIT_S)
    assert outcomes == ["this consumer is closed; make another to go on"]
