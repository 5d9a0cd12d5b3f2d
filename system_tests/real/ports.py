"""Ports of this machine, and whether a broker answers on them."""

import socket

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from assignor.adapters.connecting import network_client
from system_tests.errors import EnvironmentFailureError

HOST = "127.0.0.1"
_ATTEMPT_MS = 1000


def listens(port: int) -> bool:
    """Return whether the port accepts connections."""
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def answers(bootstrap_servers: str) -> bool:
    """Return whether a broker answers; it accepts connections before it is ready."""
    try:
        with network_client() as kafka_client:
            admin = KafkaAdminClient(
                bootstrap_servers=bootstrap_servers,
                request_timeout_ms=_ATTEMPT_MS,
                bootstrap_timeout_ms=_ATTEMPT_MS,
                kafka_client=kafka_client,
            )
    except (KafkaError, ValueError):
        return False
    try:
        return bool(admin.describe_cluster().get("brokers"))
    except KafkaError:
        return False
    finally:
        admin.close()


def check_free(port: int) -> None:
    """Check that no other process listens on the port.

    Raises:
        EnvironmentFailureError: one does.
    """
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise EnvironmentFailureError(
            f"port {port} cannot be listened on: {error.strerror}; choose another, or 0"
        ) from error


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server((HOST, 0)) as server:
        return int(server.getsockname()[1])
