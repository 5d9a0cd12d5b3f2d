"""Persisted formats beside a wire version that goes up and down, on a real client (KIP-384)."""

import json
import time

import pytest
from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.stores import StoreError
from system_tests.broker import BrokerConfig, running_broker

pytestmark = [pytest.mark.loop, pytest.mark.slow, pytest.mark.timeout(900)]

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


def live_until_written(broker, state_dir, version, **settings):
    """Run a member until it remembers this wire version; its process id and file afterwards."""
    assignor = StreamsAssignor(COUNTED, application_id="app", state_dir=state_dir, **settings)
    consumer = KafkaConsumer(
        "lines",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="app",
        partition_assignment_strategy=[assignor],
        session_timeout_ms=60_000,
        heartbeat_interval_ms=200,
    )
    try:
        assignor.attach(consumer)
        end = time.monotonic() + LIMIT_S
        while assignor.directory.remembered_version != version:
            assert time.monotonic() < end, (assignor.levels, assignor.failures)
            consumer.poll(timeout_ms=100)
            if assignor.directory.remembered_version != version:
                # Nobody rejoins only for a version: the next rebalance has it.
                consumer._coordinator.request_rejoin()
        process_id = assignor.directory.process_id
    finally:
        consumer.close(autocommit=False)
        assignor.close()
    return process_id, (state_dir / PROCESS_FILE).read_bytes()


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
            said = json.loads(file)
            assert (said["processId"], said["rememberedVersion"]) == (str(process_id), version)
        else:
            assert file.startswith(b"SRPROC01")
    assert len(set(seen)) == 1
    with pytest.raises(StoreError, match=r"would go back: version 2 was first written here at"):
        StreamsAssignor(
            COUNTED, application_id="app", state_dir=tmp_path, persistent_metadata_version=1
        )
    # Nothing is lost by the attempt: the same process goes on as before.
    again, _ = live_until_written(
        broker, tmp_path, 101, hold_back=False, persistent_metadata_version=2
    )
    assert again == seen[0]
