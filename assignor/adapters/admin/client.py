"""An admin client of kafka-python with a deadline, whose failures are sentences.

Before the client is made the bootstrap servers are tried (`probe.py`). Questions are coroutines
that run on the client's own thread; what passes by itself (a coordinator that moves, a node that
comes up) is asked again until the deadline.
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
from kafka.net.compat import KafkaNetClient

from assignor.adapters.admin.probe import spelled, try_servers

_Answer = TypeVar("_Answer")
Ask = Callable[[KafkaAdminClient], Awaitable[_Answer]]

_RETRY_S: Final = 0.1


class BrokerError(Exception):
    """The cluster cannot be asked, or does not answer; one sentence with what was tried."""


class NotAuthorized(BrokerError):
    """The cluster answers, and its answer is that this user may not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A cluster to ask.

    Attributes:
        servers: bootstrap servers, `host:port`.
        settings: keyword arguments for a kafka-python client, as `client_settings` makes them.
        timeout_ms: for all that is asked together.
    """

    servers: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout_ms: int = 15_000

    @property
    def spelled(self) -> str:
        """The servers in one word for messages."""
        return ",".join(self.servers)


class Admin:
    """A connected admin client; make it with `open_admin`.

    Attributes:
        client: kafka-python's.
        target: whom it asks.
    """

    def __init__(self, client: KafkaAdminClient, target: Target) -> None:
        self.client = client
        self.target = target
        self._deadline = time.monotonic() + target.timeout_ms / 1000

    def again(self) -> None:
        """Start the clock anew, for the next look of a series."""
        self._deadline = time.monotonic() + self.target.timeout_ms / 1000

    def ask(self, doing: str, question: Ask[_Answer]) -> _Answer:
        """Run one question on the client's thread and return its answer.

        Args:
            doing: for the message, as in "describe the group".
            question: a coroutine function that takes kafka-python's client.

        Raises:
            NotAuthorized: the cluster refuses this user.
            BrokerError: it does not answer in time, or not with an answer.
        """
        while True:
            left = self._deadline - time.monotonic()
            try:
                return self._once(question, max(left, 0.001))
            except (KafkaError, OSError) as error:
                if not getattr(error, "retriable", False) or left <= _RETRY_S:
                    raise _as_broker_error(error, doing, self.target) from error
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
    """Connect, and close at the end of the `with` block.

    Raises:
        BrokerError: no server answers; each is named with what happened there.
        NotAuthorized: user name and password are refused.
    """
    started = time.monotonic()
    _probe(target)
    made: list[KafkaNetClient] = []

    def keep(**configs: Any) -> KafkaNetClient:
        made.append(KafkaNetClient(**configs))
        return made[-1]

    left_ms = target.timeout_ms - int((time.monotonic() - started) * 1000)
    try:
        client = KafkaAdminClient(
            bootstrap_servers=list(target.servers),
            bootstrap_timeout_ms=max(1, left_ms),
            kafka_client=keep,
            **({"client_id": "assignor"} | dict(target.settings)),
        )
    except (KafkaError, ValueError, OSError) as error:
        # The client that could not bootstrap has a thread already, and nobody else to end it.
        for one in made:
            one.close()
            one._manager._net.stop()  # noqa: SLF001 as the admin client's own close() does
        raise _as_broker_error(error, "connect", target) from error
    try:
        yield Admin(client, target)
    finally:
        with suppress(KafkaError, OSError):
            client.close()


def _probe(target: Target) -> None:
    """Refuse where no server is of use."""
    tried = try_servers(target.servers, target.settings, target.timeout_ms / 1000)
    if not tried:
        return
    refusals = {server: why for server, why in tried.items() if why.is_refusal}
    if refusals:
        raise NotAuthorized(f"no broker lets this user in: {spelled(refusals)}")
    raise BrokerError(f"no broker can be reached: {spelled(tried)}")


def _as_broker_error(error: Exception, doing: str, target: Target) -> BrokerError:
    """The sentence for what the client raised; the first row that holds."""
    seconds = f"{target.timeout_ms / 1000:g} s"
    protocol = target.settings.get("security_protocol", "PLAINTEXT")
    if isinstance(error, SaslAuthenticationFailedError):
        mechanism = target.settings.get("sasl_mechanism", "SASL")
        return NotAuthorized(
            f"{target.spelled} refuses the user name or password ({mechanism}); "
            "look at sasl.jaas.config"
        )
    if isinstance(error, AuthorizationError):
        name = getattr(error, "message", "") or type(error).__name__
        return NotAuthorized(f"not authorized to {doing} ({name}); ask for the permission")
    if isinstance(error, KafkaTimeoutError) and doing == "connect":
        return BrokerError(
            f"{target.spelled} takes connections, but no broker answered in {seconds}; "
            f"see whether it speaks {protocol} (security.protocol)"
        )
    if isinstance(error, KafkaTimeoutError | asyncio.TimeoutError):
        return BrokerError(f"{target.spelled} did not {doing} within {seconds}; try --timeout")
    said = str(error).strip() or type(error).__name__
    return BrokerError(f"{target.spelled} could not {doing}: {said}")
