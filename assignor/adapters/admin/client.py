"""A kafka-python admin client with a deadline and readable error messages.

The bootstrap servers are checked first (`probe.py`). Requests are coroutines that run on the
client's own thread. After a retriable error (a coordinator that moves, a node that starts) they are
repeated until the deadline.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kafka.admin import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
)

from assignor.adapters.admin.probe import spelled, try_servers
from assignor.adapters.connecting import network_client

_Answer = TypeVar("_Answer")
Ask = Callable[[KafkaAdminClient], Awaitable[_Answer]]

_RETRY_S: Final = 0.1


class BrokerError(Exception):
    """A request to the cluster failed or timed out; the message names servers and request."""


class Refused(BrokerError):
    """The brokers answer, and do not do what was asked; the message says why."""


class NotAuthorized(Refused):
    """The user is not authorized, or its login is rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster, and how to connect to it.

    Attributes:
        servers: bootstrap servers, `host:port`.
        settings: keyword arguments for a kafka-python client, from `client_settings`.
        timeout_ms: time limit for all requests together.
    """

    servers: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout_ms: int = 15_000

    @property
    def spelled(self) -> str:
        """The servers as comma-separated text, for messages."""
        return ",".join(self.servers)


class Admin:
    """A connected admin client; make it with `open_admin`.

    Attributes:
        client: the kafka-python client.
        target: the cluster.
    """

    def __init__(self, client: KafkaAdminClient, target: Target) -> None:
        self.client = client
        self.target = target
        self._deadline = time.monotonic() + target.timeout_ms / 1000

    def again(self) -> None:
        """Restart the time limit, for the next of several inspections."""
        self._deadline = time.monotonic() + self.target.timeout_ms / 1000

    def ask(self, doing: str, question: Ask[_Answer]) -> _Answer:
        """Run a request on the client's thread and return its result.

        Args:
            doing: verb phrase for messages, such as "describe the group".
            question: a coroutine function that takes the kafka-python client.

        Raises:
            NotAuthorized: the user is not authorized.
            BrokerError: the request failed or timed out.
        """
        while True:
            left = self._deadline - time.monotonic()
            try:
                return self._once(question, max(left, 0.001))
            except (KafkaError, OSError) as error:
                if not getattr(error, "retriable", False) or left <= _RETRY_S:
                    raise as_broker_error(error, doing, self.target) from error
            time.sleep(_RETRY_S)

    def _once(self, question: Ask[_Answer], left_s: float) -> _Answer:
        manager = self.client._manager  # noqa: SLF001 the client's own methods have no deadline

        async def bounded() -> _Answer:
            future = manager.call_soon(question, self.client)
            answer: _Answer = await manager.wait_for(future, left_s * 1000)
            return answer

        found: _Answer = manager.run(bounded)
        return found


@contextmanager
def open_admin(target: Target) -> Iterator[Admin]:
    """Yield a connected client; close it at the end of the `with` block.

    Raises:
        BrokerError: no server answers; the message names each server and its error.
        NotAuthorized: the login is rejected.
    """
    started = time.monotonic()
    _probe(target)
    left_ms = target.timeout_ms - int((time.monotonic() - started) * 1000)
    try:
        with network_client() as kafka_client:
            client = KafkaAdminClient(
                bootstrap_servers=list(target.servers),
                bootstrap_timeout_ms=max(1, left_ms),
                kafka_client=kafka_client,
                **({"client_id": "assignor"} | dict(target.settings)),
            )
    except (KafkaError, ValueError, OSError) as error:
        raise as_broker_error(error, "connect", target) from error
    try:
        yield Admin(client, target)
    finally:
        with suppress(KafkaError, OSError):
            client.close()


def _probe(target: Target) -> None:
    """Check the servers; raise if none can be used."""
    tried = try_servers(target.servers, target.settings, target.timeout_ms / 1000)
    if not tried:
        return
    refusals = {server: why for server, why in tried.items() if why.is_refusal}
    if refusals:
        raise NotAuthorized(f"every broker rejects the login: {spelled(refusals)}")
    raise BrokerError(f"no broker can be reached: {spelled(tried)}")


def as_broker_error(error: Exception, doing: str, target: Target) -> BrokerError:
    """Return the error for an exception of the client; the first condition that holds decides."""
    seconds = f"{target.timeout_ms / 1000:g} s"
    protocol = target.settings.get("security_protocol", "PLAINTEXT")
    if isinstance(error, SaslAuthenticationFailedError):
        mechanism = target.settings.get("sasl_mechanism", "SASL")
        return NotAuthorized(
            f"{target.spelled} rejects the user name or password ({mechanism}); "
            "check sasl.jaas.config"
        )
    if isinstance(error, AuthorizationError):
        name = getattr(error, "message", "") or type(error).__name__
        return NotAuthorized(f"not authorized to {doing} ({name}); ask for the permission")
    if isinstance(error, KafkaTimeoutError) and doing == "connect":
        return BrokerError(
            f"{target.spelled} accepts connections, but no broker answered within {seconds}; "
            f"check that its listener uses security.protocol {protocol}"
        )
    if isinstance(error, KafkaTimeoutError | asyncio.TimeoutError):
        return BrokerError(f"{target.spelled} did not {doing} within {seconds}; raise --timeout")
    reason = str(error).strip() or type(error).__name__
    return BrokerError(f"{target.spelled} could not {doing}: {reason}")
