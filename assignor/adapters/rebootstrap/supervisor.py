"""What the rebootstrap supervisors of both Kafka clients share (KIP-899, KIP-1102).

Neither kafka-python nor aiokafka can rebootstrap: when all brokers that a client knows are gone, it
cannot reconnect. A supervisor reports the client's connections and metadata to the state machine in
`probing` and executes its commands. It does not touch group membership, positions, pending commits
and adopted versions.

Everything runs on the client's event loop, except the resolution of host names.
"""

import logging
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar
from weakref import WeakSet

from assignor.adapters.servers import servers_text
from assignor.logs import line_logger
from encoding import RebalanceError
from probing.rebootstrap import (
    NEVER_MS,
    BootstrapAgain,
    BootstrapResolved,
    ClockMoved,
    CloseAll,
    GiveUpConnection,
    RebootstrapConfig,
    RebootstrapEvent,
    RebootstrapState,
    ReportRequired,
    next_wakeup_ms,
    rebootstrap_step,
    start_client,
)

_log = line_logger(__name__)
_Supervisor = TypeVar("_Supervisor")

_KEPT = 100


class RebootstrapRequiredError(RebalanceError):
    """The server sent REBOOTSTRAP_REQUIRED (129), but `metadata.recovery.strategy` is `none`."""


class UntestedClientError(RebalanceError):
    """The supervisor does not support this version of the client library."""


class AlreadySupervisedError(RebalanceError):
    """The client already has a supervisor; two would interfere with each other."""

    def __init__(self) -> None:
        super().__init__("the client already has a supervisor; close that one first")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebootstrapped:
    """A client rebootstraps.

    Attributes:
        at_ms: time in milliseconds of the monotonic clock.
        rule: row of `probing.rebootstrap.machine.REBOOTSTRAP_RULES` that decided.
        why: sentence of that row.
    """

    at_ms: int
    rule: str
    why: str


Listener = Callable[[Rebootstrapped | RebootstrapRequiredError], None]


def check_tested(client: str, version: str, *, tested: str) -> None:
    """Check that the installed version of a client library is the tested one.

    Args:
        client: name of the library.
        version: installed version.
        tested: first two numbers of the tested version.

    Raises:
        UntestedClientError: the installed version is another one.
    """
    if version.split(".")[:2] != tested.split("."):
        raise UntestedClientError(
            f"{client} {version} was not tested with this supervisor, which uses private parts of"
            f" the client; use {client} {tested}, or a release of this package that supports it"
        )


def supervised_if_tested(supervise: Callable[[], _Supervisor]) -> _Supervisor | None:
    """Return the supervisor of a client that this package created for its own requests.

    Returns:
        None, with a log line, if the client's version is not supported; the client then works, but
        cannot rebootstrap.
    """
    try:
        return supervise()
    except UntestedClientError as error:
        _log.info("a connection for levels or cluster facts cannot rebootstrap: %s", error)
        return None


def monotonic_ms() -> int:
    """Return the monotonic clock, in milliseconds."""
    return time.monotonic_ns() // 1_000_000


def node_name(host: str, port: int) -> str:
    """Return the state machine's name of the node at an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def can_be_resolved(host: str, port: int) -> bool:
    """Return whether a host name can be resolved; blocks, so do not call it on an event loop."""
    try:
        return bool(socket.getaddrinfo(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        _log.warning("bootstrap server %s cannot be resolved: %s", node_name(host, port), error)
        return False


class Outages:
    """What the clients of a process log of brokers that they do not reach: two lines for all.

    Any thread may call it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Servers -> when the outage began, and the clients that reach none of their brokers.
        self._found: dict[str, tuple[float, WeakSet[object]]] = {}

    def begin(self, client: object, servers: str) -> bool:
        """Note that a client reaches no broker; return whether it is the first one."""
        with self._lock:
            begun_s, clients = self._found.get(servers, (0.0, WeakSet[object]()))
            is_first = not clients
            clients.add(client)
            self._found[servers] = time.monotonic() if is_first else begun_s, clients
            return is_first

    def end(self, client: object, servers: str) -> float | None:
        """Note that a client reaches one, or is closed.

        Returns:
            If it was the last one, how long the outage was, in seconds; else None.
        """
        with self._lock:
            begun_s, clients = self._found.get(servers, (0.0, WeakSet[object]()))
            if client not in clients:
                return None
            clients.discard(client)
            return None if clients else time.monotonic() - begun_s


_OUTAGES: Final = Outages()


class RebootstrapSupervisor(ABC):
    """Base class of supervisors: runs the state machine of one client and executes its commands.

    Args:
        config: strategy, trigger and time limits.
        listener: called with every rebootstrap, and with a demand if the strategy is `none`.
        servers: `bootstrap_servers` of the client, for the log.

    Attributes:
        rebootstraps: the last 100 rebootstraps, oldest first.
        required: the server's demand, which the application must handle (strategy `none` only).
    """

    def __init__(
        self,
        config: RebootstrapConfig,
        listener: Listener | None,
        servers: str | Collection[str],
    ) -> None:
        self.rebootstraps: deque[Rebootstrapped] = deque(maxlen=_KEPT)
        self.required: RebootstrapRequiredError | None = None
        self._listener = listener
        self._rng = Random()  # noqa: S311 jitter of back-offs
        self._state = start_client((), config)
        self._wakeup_ms = NEVER_MS
        self._is_closed = False
        self._servers = servers_text(servers)

    @property
    def state(self) -> RebootstrapState:
        """The state of the state machine, a frozen value."""
        return self._state

    def _know(self, nodes: Iterable[str]) -> None:
        """Start the state machine with the nodes that the client knows."""
        self._state = start_client(tuple(nodes), self._state.config)

    def _see(self, event: RebootstrapEvent) -> None:
        """Pass an event to the state machine and execute its commands."""
        if self._is_closed:
            return
        before, (self._state, commands) = self._state, rebootstrap_step(self._state, event)
        if before.in_a_row and not self._state.in_a_row:
            self._end_outage("the brokers of %s can be reached again, after %.0f s")
        for command in commands:
            match command:
                case CloseAll():
                    self._close_all()
                case GiveUpConnection():
                    self._give_up(command.node, command.why)
                case BootstrapAgain():
                    self._note(
                        Rebootstrapped(at_ms=event.now_ms, rule=command.rule, why=command.why)
                    )
                    self._look_up()
                case ReportRequired():
                    self.required = RebootstrapRequiredError(command.why)
                    self._note(self.required)
        self._arm()

    def _found(self, nodes: Iterable[str]) -> None:
        """Report the bootstrap servers that could be resolved."""
        self._see(BootstrapResolved(now_ms=monotonic_ms(), nodes=tuple(sorted(set(nodes)))))

    def _on_time(self) -> None:
        self._wakeup_ms = NEVER_MS
        self._see(ClockMoved(now_ms=monotonic_ms()))

    def _arm(self) -> None:
        at_ms = next_wakeup_ms(self._state)
        if at_ms != self._wakeup_ms:
            self._wakeup_ms = at_ms
            self._set_timer(None if at_ms == NEVER_MS else at_ms)

    def _note(self, what: Rebootstrapped | RebootstrapRequiredError) -> None:
        if isinstance(what, Rebootstrapped):
            self.rebootstraps.append(what)
            is_first = _OUTAGES.begin(self, self._servers)
            _log.log(
                logging.WARNING if is_first else logging.DEBUG,
                "rebootstrap from %s, and again until a broker answers: %s (rule %r)",
                self._servers,
                what.why,
                what.rule,
            )
        else:
            _log.error("%s", what)
        if self._listener is not None:
            try:
                self._listener(what)
            except Exception:  # noqa: BLE001 a listener's bug must not stop the client
                _log.exception("a rebootstrap listener failed")

    def _end_outage(self, sentence: str = "") -> None:
        """Log that all clients of the process reach a broker, unless one is only closed."""
        seconds = _OUTAGES.end(self, self._servers)
        if seconds is not None and sentence:
            _log.info(sentence, self._servers, seconds)

    @abstractmethod
    def _close_all(self) -> None:
        """Close every connection, established or in progress."""

    @abstractmethod
    def _give_up(self, node: str, why: str) -> None:
        """Close the connection to `node`, which was not established in time."""

    @abstractmethod
    def _look_up(self) -> None:
        """Resolve the bootstrap servers on another thread, then call `_found` on the event loop."""

    @abstractmethod
    def _set_timer(self, at_ms: int | None) -> None:
        """Call `_on_time` at this time, instead of any time set before; None: never."""
