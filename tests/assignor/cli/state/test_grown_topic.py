"""A source topic that has grown: what docs/change-topology.md advises gives right results."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic

from assignor import JSON, TEXT, SqliteStore, Topology
from assignor.adapters.kafka_python import StreamsApplication
from assignor.cli import main
from system_tests.broker import BrokerConfig, running_broker
from tests.docs.pages import ROOT, blocks

pytestmark = pytest.mark.usefixtures("clock")
GROUP, COUNTS = "growth", SqliteStore("counts", key=TEXT, value=JSON)
KEYS, EACH = [f"key-{number}" for number in range(12)], 3


def reads(topic):
    return (
        Topology()
        .add_source("s", topics=[topic])
        .add_processor("p", parents=["s"])
        .add_state_store("counts", processors=["p"])
    )


grown_topology = reads("grown")


def write(servers, topic):
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for _ in range(EACH):
            for key in KEYS:
                producer.send(topic, b"x", key.encode())


def counted(broker, state_dir, topic, records):
    """Run the application until it has processed so many records; return its last counts."""
    counts, seen, stop = {}, [], threading.Event()

    def handle(record, state):
        key = record.key.decode()
        counts[key] = (state[COUNTS].get(key) or 0) + 1
        state[COUNTS].put(key, counts[key])
        seen.append(record)
        if len(seen) == records:
            stop.set()

    with StreamsApplication(
        reads(topic),
        handle,
        stores=[COUNTS],
        group_id=GROUP,
        bootstrap_servers=broker.bootstrap_servers,
        state_dir=state_dir,
        session_timeout_ms=60_000,
        heartbeat_interval_ms=200,
    ) as app:
        app.run(stop)
    return counts


def test_records_copied_to_a_new_topic_and_a_reset_count_each_key_once(tmp_path):
    page = blocks(ROOT / "docs/change-topology.md")
    [script] = [block.body for block in page if block.marked("file") == "copy_topic.py"]
    Path(tmp_path / "copy_topic.py").write_text(script, encoding="utf-8")
    with running_broker(BrokerConfig(topics={"old": 1})) as broker:
        servers = ",".join(broker.bootstrap_servers)
        write(servers, "old")
        once = counted(broker, tmp_path / "state", "old", len(KEYS) * EACH)
        assert once == dict.fromkeys(KEYS, EACH)
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_partitions({"old": NewPartitions(2)})
            write(servers, "old")  # a key's records are in two partitions now
            admin.create_topics([NewTopic("grown", 4, 1)])
        copy = [sys.executable, str(tmp_path / "copy_topic.py"), servers, "old", "grown"]
        subprocess.run(copy, check=True, timeout=120)
        options = [f"--bootstrap-server={servers}", f"--group={GROUP}", "--execute"]
        named = [f"--topology={__name__}:grown_topology", f"--state-dir={tmp_path}/state"]
        done = CliRunner().invoke(main, ["reset", *options, *named])
        assert done.exit_code == 0, done.output
        twice = counted(broker, tmp_path / "state", "grown", 2 * len(KEYS) * EACH)
        assert twice == dict.fromkeys(KEYS, 2 * EACH)
