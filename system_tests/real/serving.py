"""A real broker that runs until this process is told to end."""

import signal
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import Any

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from assignor.adapters.connecting import network_client
from assignor.interrupts import handle_interrupts
from system_tests.errors import EnvironmentFailureError
from system_tests.real.broker import RealBroker, running_real_broker

_LOOK_S = 1.0
_ADMIN_MS = 120_000


def serve_real_broker(
    release: str,
    *,
    topics: Mapping[str, int],
    announce: Callable[[RealBroker], object],
    **options: Any,
) -> None:
    """Run a broker until SIGTERM or SIGINT, and leave nothing of it behind.

    A signal before it is announced raises KeyboardInterrupt.

    Args:
        release: exact name of a Kafka release.
        topics: partitions by name, created before it is announced.
        announce: called with the broker, once it answers.
        options: as of `RealBroker`.

    Raises:
        EnvironmentFailureError: it does not start, refuses a topic, or ends by itself.
    """
    handle_interrupts(signal.SIGTERM, signal.SIGINT)
    stops: SimpleQueue[None] = SimpleQueue()  # its put is safe in a handler of signals
    with running_real_broker(release, **options) as broker:
        _create_topics(broker, topics)
        handle_interrupts(signal.SIGTERM, signal.SIGINT, first=lambda: stops.put(None))
        announce(broker)
        while not _is_stopped(stops):
            if not broker.is_running:
                last = broker.last_lines(1)
                raise EnvironmentFailureError(
                    f"Kafka {release} at {broker.bootstrap_servers} ended by itself: "
                    f"{last[0] if last else 'its log is empty'}; start it again"
                )


def _is_stopped(stops: SimpleQueue[None]) -> bool:
    """Wait for a signal, up to a second."""
    try:
        stops.get(timeout=_LOOK_S)
    except Empty:
        return False
    return True


def _create_topics(broker: RealBroker, topics: Mapping[str, int]) -> None:
    if not topics:
        return
    with network_client() as kafka_client:
        admin = KafkaAdminClient(
            bootstrap_servers=broker.bootstrap_servers,
            request_timeout_ms=_ADMIN_MS,
            bootstrap_timeout_ms=_ADMIN_MS,
            kafka_client=kafka_client,
        )
    try:
        admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()])
    except KafkaError as error:
        raise EnvironmentFailureError(
            f"Kafka {broker.release} refuses to create {', '.join(topics)}: {error}"
        ) from error
    finally:
        admin.close()
