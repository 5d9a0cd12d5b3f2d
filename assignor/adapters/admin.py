"""An admin client of kafka-python with a deadline, whose failures are sentences.

Before the client is made every bootstrap server is tried, since the client itself only says that
time is over. Questions are coroutines that run on the client's own thread; what passes by itself
(a coordinator that moves, a node that comes up) is asked again until the deadline.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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

_Answer = TypeVar("_Answer")
Ask = Callable[[KafkaAdminClient], Awaitable[_Answer]]

DEFAULT_PORT: Final = 9092
_RETRY_S: Final = 0.1
_PROBE_S: Final = 5.0


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


def split_server(server: str) -> tuple[str, int] | None:
    """Host and port of `host:port`, `[host]:port` or `host`; None if it is none of them.

    >>> split_server("[::1]:9093")
    ('::1', 9093)
    """
    if server.count(":") > 1 and not server.startswith("["):
        return server, DEFAULT_PORT
    host, bracket, rest = server.rpartition("]")
    if not bracket:
        host, _, rest = server.partition(":")
        rest = f":{rest}" if rest or ":" in server else ""
    host = host.removeprefix("[")
    port = rest.removeprefix(":")
    if not host or (rest and not (port.isascii() and port.isdigit() and 0 < int(port) < 2**16)):
        return None
    return host, int(port) if port else DEFAULT_PORT


def _probe(target: Target) -> None:
    """Refuse where no server even takes a connection."""
    limit_s = min(_PROBE_S, target.timeout_ms / 1000)
    tried = {}
    for server in target.servers:
        why = _connect_once(server, limit_s, None)
        if why is None:
            return
        tried[server] = why
    raise BrokerError(f"no broker can be reached: {_spelled(tried)}")


def _connect_once(server: str, limit_s: float, context: ssl.SSLContext | None) -> str | None:
    """Connect, shake hands where there is a context, close; None, or what went wrong."""
    where = split_server(server)
    if where is None:
        return "not of the form host:port"
    try:
        with socket.create_connection(where, timeout=limit_s) as connection:
            if context is not None:
                context.wrap_socket(connection, server_hostname=where[0]).close()
    except TimeoutError:
        return f"no connection in {limit_s:g} s"
    except ssl.SSLCertVerificationError as error:
        return f"its certificate is not trusted: {error.verify_message}"
    except ssl.SSLError as error:
        return f"no TLS is spoken there: {error.reason or error}"
    except (OSError, UnicodeError) as error:
        return (getattr(error, "strerror", None) or str(error)).lower()
    return None


def _spelled(tried: Mapping[str, str]) -> str:
    return "; ".join(f"{server}: {why}" for server, why in tried.items())


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
            f"{target.spelled} takes connections, but no broker answered in {seconds}"
            f"{_handshakes(target)}; see whether it speaks {protocol} (security.protocol)"
        )
    if isinstance(error, KafkaTimeoutError | asyncio.TimeoutError):
        return BrokerError(f"{target.spelled} did not {doing} within {seconds}; try --timeout")
    said = str(error).strip() or type(error).__name__
    return BrokerError(f"{target.spelled} could not {doing}: {said}")


def _handshakes(target: Target) -> str:
    """What TLS says at each server that it fails at, behind a colon; empty where there is none."""
    context = target.settings.get("ssl_context")
    if context is None:
        return ""
    tried = {server: _connect_once(server, _PROBE_S, context) for server in target.servers}
    failed = {server: why for server, why in tried.items() if why is not None}
    return f": {_spelled(failed)}" if failed else ""


def parse_servers(text: str) -> tuple[str, ...]:
    """The servers of a comma-separated list.

    Raises:
        ValueError: there is none, or one is not `host:port`.
    """
    servers: Sequence[str] = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [server for server in servers if split_server(server) is None]
    if wrong or not servers:
        raise ValueError(f"{(wrong or [text])[0]!r} is no server; give host:port[,host:port]")
    return tuple(servers)
