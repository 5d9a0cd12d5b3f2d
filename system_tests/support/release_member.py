"""A member of whichever release of this project is on the import path; run as a file, by its path.

It reads the topics of its topology, commits what it has read, and writes its tasks and errors as
lines of JSON. It uses only what every release has, so that two releases can run it in one group.
"""

import json
import signal
import sys
import threading
from typing import Any

from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.kafka_python import StreamsAssignor, commit_next, polled
from assignor.embedding import RunningTasks


class _Tasks(RunningTasks):
    def on_error(self, why: str) -> None:
        emit("error", why=why)


def emit(event: str, **fields: Any) -> None:
    """Write an event as a line of JSON."""
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


def topology_of(topics: list[str], version: int | None) -> Topology:
    """Return a topology that reads each topic in a subtopology of its own.

    Args:
        topics: the subtopologies are numbered in this order.
        version: of the topology; None for a release that knows no versions.
    """
    topology = Topology() if version is None else Topology(version=version)
    for place, topic in enumerate(topics):
        topology.add_source(f"{place}-{topic}", topics=[topic])
        topology.add_processor(f"read-{topic}", parents=[f"{place}-{topic}"])
    return topology


def main(config: dict[str, Any]) -> None:
    """Run until SIGTERM."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    topology = topology_of(config["topics"], config["version"])
    listener = _Tasks(tell=lambda line: emit("tasks", line=line))
    assignor = StreamsAssignor(
        topology, application_id=config["group"], internal_topics=None, listener=listener
    )
    consumer = KafkaConsumer(
        *config["topics"],
        bootstrap_servers=config["servers"],
        client_id=config["name"],
        group_id=config["group"],
        partition_assignment_strategy=[assignor],
        session_timeout_ms=60_000,
        heartbeat_interval_ms=300,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    assignor.attach(consumer)
    for batch in polled(consumer, assignor, timeout_ms=200, stop=stop):
        done = {}
        fresh, _ = listener.tasks()
        with listener.working(fresh) as active:
            for partition, records in batch.items():
                number = config["topics"].index(partition.topic)
                if (number, partition.partition) in {tuple(task)[:2] for task in active}:
                    done[partition] = records[-1].offset + 1
        commit_next(consumer, done)
    consumer.close(autocommit=False)
    assignor.close()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
