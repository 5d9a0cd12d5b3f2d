"""A foreign member: it joins as `stream` with user data that is not Kafka Streams'.

A misconfigured program with the same group id does this to a real group. It must get no task, and
all other members must go on.
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.errors import KafkaError
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from system_tests.json_lines import read_line
from system_tests.live import events
from system_tests.live.members.config import MemberConfig
from system_tests.live.members.process import Reporter, end_with_parent

# Claims version 7 and then breaks off in the middle of the process id.
_GARBAGE = b"\x00\x00\x00\x07\x00\x00\x00\x0b" + b"garbage"


class _GarbageAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # the client is untyped
    name = "stream"

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(version=1, topics=sorted(topics), user_data=_GARBAGE)

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:  # noqa: ARG002 the client's signature
        raise RuntimeError("the foreign member became leader; it has no assignment for the others")

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Ignore the assignment."""


def main() -> int:
    """Join, stay until SIGTERM, leave; return the exit status."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    config = read_line(MemberConfig, sys.stdin.readline())
    end_with_parent(stopping)
    report = Reporter()
    report(events.MemberStarted(pid=os.getpid(), release="foreign", upgrade_from=None))
    consumer = KafkaConsumer(
        config.group.topic,
        bootstrap_servers=config.group.bootstrap_servers,
        group_id=config.group.group_id,
        client_id=config.name,
        partition_assignment_strategy=[_GarbageAssignor()],
        enable_auto_commit=False,
        session_timeout_ms=config.group.session_timeout_ms,
        heartbeat_interval_ms=config.group.heartbeat_ms,
        metrics_enabled=False,
    )
    report(events.MemberReady(protocol="stream"))
    try:
        while not stopping.is_set():
            consumer.poll(timeout_ms=1000)
    except KafkaError as error:
        sys.stderr.write(f"foreign member: {type(error).__name__}: {error}\n")
        return 3
    finally:
        consumer.close()
    report(events.MemberStopped(records=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
