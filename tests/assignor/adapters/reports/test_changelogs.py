"""Changelogs that are deleted under a group, as in public reports: no state is lost."""

import json
import threading
from contextlib import closing, redirect_stdout
from io import StringIO

import pytest
from kafka import KafkaConsumer, OffsetAndMetadata
from kafka import TopicPartition as ClientPartition

from assignor import JSON, TEXT, SqliteStore
from assignor.adapters.kafka_python import KafkaChangelogs, StreamsApplication
from assignor.cli.toolkit import AnswerIsNo
from assignor.cli.write_back import write_back
from assignor.embedding import ClusterUnavailable, MemberStopped, NewRecord
from encoding import TaskId, TopicPartition
from system_tests.broker import BrokerConfig, running_broker
from tests.assignor.adapters.reports.logs import COUNTING, GROUP, SESSION, filled, write

pytestmark = pytest.mark.usefixtures("clock")
COUNTS = SqliteStore("counts", key=TEXT, value=JSON)
CHANGELOG = "app-counts-changelog"


def write_state_back(broker, tmp_path, *more):
    """Run the command; return what it writes, and the offsets of copies and what they become."""
    output = StringIO()
    with redirect_stdout(output):
        write_back.main(
            [
                f"--state-dir={tmp_path}/one",
                f"--bootstrap-server={','.join(broker.bootstrap_servers)}",
                "--format=json",
                *more,
            ],
            standalone_mode=False,
        )
    tasks = json.loads(output.getvalue())["tasks"]
    moves = [(move["copy"], move["to"]) for task in tasks for move in task["inputs"]]
    return [(task["entries"], move) for task, move in zip(tasks, moves, strict=True)]


def make_anew(embedded):
    embedded.cluster.delete_topic(CHANGELOG)
    embedded.cluster.create_topic(CHANGELOG, 1, configs={"cleanup.policy": "compact"})


def test_kafka_10357_the_copy_of_a_running_owner_outlives_its_changelog(tmp_path):
    """KIP-698: Kafka Streams makes the topic anew in silence, and wipes the store."""
    stop, losses = threading.Event(), [2]

    def handle(record, state):
        state[COUNTS].put(str(record.offset), record.offset)
        if [record.offset] == losses:
            losses.clear()
            broker.call(make_anew)
        if record.offset == 3:
            stop.set()

    def application(name="one"):
        return StreamsApplication(
            COUNTING,
            handle,
            stores=[COUNTS],
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            state_dir=tmp_path / name,
            max_poll_records=1,
            **SESSION,
        )

    def entries(app):
        return dict(app.stores[TaskId(0, 0)][COUNTS].items())

    with filled(3) as broker:
        with application() as app:
            with pytest.raises(MemberStopped) as raised:
                app.run(stop)
            assert entries(app) == {"0": 0, "1": 1}
        found = str(raised.value)
        assert found.startswith(f"{CHANGELOG}-0: the changelog was deleted and made anew (its id w")
        with pytest.raises(MemberStopped) as raised:
            application()
        assert str(raised.value) == found
        with application("two") as app:
            app.consumer.poll(timeout_ms=5000)
            with pytest.raises(AnswerIsNo, match="group app has 1 members, such as "):
                write_state_back(broker, tmp_path, "--execute")
        assert write_state_back(broker, tmp_path) == [({"counts": 2}, (2, 2))]
        [(entry, moved)] = write_state_back(broker, tmp_path, "--execute")
        assert (entry, moved) == ({"counts": 2}, (2, 2))
        assert not list(tmp_path.glob("one/0_0/*.kept"))
        write(broker, range(1))
        wanted = {str(offset): offset for offset in range(4)}
        with application() as app:
            app.run(stop)
            assert entries(app) == wanted
        stop.clear()
        write(broker, range(1))

        def ended(record, state):
            stop.set()

        handle = ended
        with application("two") as app:
            app.run(stop)
            assert entries(app) == wanted


def test_committed_offsets_are_those_of_the_group_that_is_asked_for():
    groups, partition = {"app": 1, "other": 2}, TopicPartition("in", 0)
    asked = ClientPartition(*partition)
    with filled(3) as broker:
        servers = {"bootstrap_servers": broker.bootstrap_servers}
        for group_id, offset in groups.items():
            with closing(KafkaConsumer(group_id=group_id, **servers)) as consumer:
                consumer.assign([asked])
                consumer.commit({asked: OffsetAndMetadata(offset, "", -1)})
        with closing(KafkaChangelogs(**servers)) as access:
            for group_id, offset in [*groups.items(), *groups.items()]:
                assert access.input_state(group_id, [partition])[partition].committed == offset


def test_no_client_of_changelogs_makes_a_broker_create_a_topic():
    """A changelog that came back with the broker's default number of partitions is of no use."""
    config = BrokerConfig(topics={"in": 2}, auto_create_topics=True)
    changelog = TopicPartition(CHANGELOG, 0)
    with running_broker(config) as broker:
        access = KafkaChangelogs(
            bootstrap_servers=broker.bootstrap_servers, max_block_ms=300, request_timeout_ms=2000
        )
        with closing(access):
            with pytest.raises(ClusterUnavailable):
                access.append([NewRecord(partition=changelog, key=b"key", value=b"")])
            with pytest.raises(ClusterUnavailable):
                access.end_offsets([changelog])
            with pytest.raises(ClusterUnavailable, match="does not exist, so no record can be wri"):
                access.send("out", b"key", b"", None)
        assert {partition.topic for partition in broker.end_offsets()} == {"in"}
