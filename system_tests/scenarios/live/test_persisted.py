"""Persisted formats while the wire version is raised and lowered, on a real client (KIP-384)."""

import json
import time

import pytest
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.stores import StoreError
from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.slow, pytest.mark.timeout(900)]

LIMIT_S = 180
COUNTED = (
    Topology()
    .add_source("lines", topics=["lines"])
    .add_processor("count", parents=["lines"])
    .add_state_store("counts", processors=["count"])
)
PROCESS_FILE = "kafka-streams-process-metadata"


@pytest.fixture
def broker():
    with running_broker(BrokerConfig(topics={"lines": 2})) as running:
        yield running


def started(broker, state_dir, **settings):
    """An assignor and its consumer."""
    assignor = StreamsAssignor(COUNTED, application_id="app", state_dir=state_dir, **settings)
    consumer = KafkaConsumer(
        "lines",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="app",
        partition_assignment_strategy=[assignor],
        session_timeout_ms=60_000,
        heartbeat_interval_ms=100,
    )
    assignor.attach(consumer)
    return assignor, consumer


def ended(member):
    assignor, consumer = member
    consumer.close(autocommit=False)
    assignor.close()


def live_until_written(broker, state_dir, version, **settings):
    """Run a member until it remembers this wire version; return its process id and file."""
    assignor, consumer = started(broker, state_dir, **settings)
    try:
        end = time.monotonic() + LIMIT_S
        while assignor.directory.remembered_version != version:
            assert time.monotonic() < end, (assignor.levels, assignor.failures)
            consumer.poll(timeout_ms=100)
            if assignor.directory.remembered_version != version:
                # No member rejoins only for a version: the next rebalance has it.
                consumer._coordinator.request_rejoin()
        process_id = assignor.directory.process_id
    finally:
        ended((assignor, consumer))
    return process_id, (state_dir / PROCESS_FILE).read_bytes()


@pytest.mark.kip("384-6", "loop")
def test_a_follower_writes_the_format_of_the_leader_and_may_keep_its_own_setting(broker, tmp_path):
    """Two processes, no finalized level: the leader is set to version 2, the other is not."""

    def written(name):
        return (tmp_path / name / PROCESS_FILE).read_bytes()[:8] == b"SRPROC01"

    def until(holds, *members):
        end = time.monotonic() + LIMIT_S
        while not holds():
            assert time.monotonic() < end, [assignor.failures for assignor, _ in members]
            for _, consumer in members:
                consumer.poll(timeout_ms=100)

    def both():
        return all(len(assignor.tasks.active) == 1 for assignor, _ in (leader, follower))

    leader = started(broker, tmp_path / "leader", persistent_metadata_version=2)
    until(lambda: len(leader[0].tasks.active) == 2, leader)
    follower = started(broker, tmp_path / "follower", persistent_metadata_version=1)
    assert not written("follower")
    until(lambda: both() and written("follower"), leader, follower)
    assert written("leader")
    ended(leader)
    # The leader has stopped; the written file keeps its format, whatever the setting.
    ended(follower)
    again = started(broker, tmp_path / "follower", persistent_metadata_version=1)
    until(lambda: len(again[0].tasks.active) == 2, again)
    ended(again)
    assert written("follower")


@pytest.mark.kip("384-2", "loop")
@pytest.mark.kip("384-5", "loop")
def test_the_wire_goes_up_and_down_and_what_is_persisted_only_up(broker, tmp_path):
    seen = []
    for version, hold_back, persistent in (
        (101, False, 1),
        (11, True, 1),
        (101, False, 2),
        (11, True, 2),
    ):
        process_id, file = live_until_written(
            broker,
            tmp_path,
            version,
            hold_back=hold_back,
            persistent_metadata_version=persistent,
        )
        seen.append(process_id)
        if persistent == 1:
            content = json.loads(file)
            assert (content["processId"], content["rememberedVersion"]) == (
                str(process_id),
                version,
            )
        else:
            assert file.startswith(b"SRPROC01")
    assert len(set(seen)) == 1
    with pytest.raises(StoreError, match=r"cannot be lowered: version 2 was first written here at"):
        StreamsAssignor(
            COUNTED, application_id="app", state_dir=tmp_path, persistent_metadata_version=1
        )
    # The attempt changes nothing: the process id is the same.
    again, _ = live_until_written(
        broker, tmp_path, 101, hold_back=False, persistent_metadata_version=2
    )
    assert again == seen[0]
