"""What the rebootstrap supervisors of both Kafka clients share (KIP-899, KIP-1102).

Neither kafka-python nor aiokafka can go back to its bootstrap servers: when all brokers that a
client knows are gone it asks nobody any more. A supervisor tells the machine of `probing` what the
client's connections and metadata do, and does what the machine says. Group membership, positions,
commits under way and adopted versions are the client's and stay untouched.

Everything here runs on the client's own event loop; only names are looked up elsewhere.
"""

import socket
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

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
    """The server answers REBOOTSTRAP_REQUIRED (129), and `metadata.recovery.strategy` is `none`."""


class UntestedClientError(RebalanceError):
    """A client library of another version than the supervisor knows the insides of."""


class AlreadySupervisedError(RebalanceError):
    """A client has a supervisor; two would undo each other's work."""

    def __init__(self) -> None:
        super().__init__("the client has a supervisor already; close that one first")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebootstrapped:
    """A client begins again.

    Attributes:
        at_ms: milliseconds of the monotonic clock.
        rule: row of `probing.rebootstrap.machine.REBOOTSTRAP_RULES` that fired.
        why: its sentence.
    """

    at_ms: int
    rule: str
    why: str


Listener = Callable[[Rebootstrapped | RebootstrapRequiredError], None]


def check_tested(client: str, version: str, *, tested: str) -> None:
    """Refuse a client library whose insides may be others than a supervisor relies on.

    Args:
        client: the library's name.
        version: the one that is installed.
        tested: the first two numbers of the version that the supervisor was written for.

    Raises:
        UntestedClientError: it is another one.
    """
    if version.split(".")[:2] != tested.split("."):
        raise UntestedClientError(
            f"{client} {version} was not tested with this supervisor, which reaches into the"
            f" client; use {client} {tested}, or a release of this package that knows yours"
        )


def supervised_if_tested(supervise: Callable[[], _Supervisor]) -> _Supervisor | None:
    """Supervise a client that this package makes beside the application's.

    Returns:
        None, with a line in the log, if the client's version is not the one that its supervisor was
        written for: the client works without one, but for a rebootstrap.
    """
    try:
        return supervise()
    except UntestedClientError as error:
        _log.info("a side connection does not rebootstrap by itself: %s", error)
        return None


def monotonic_ms() -> int:
    """Return the time that supervisors stamp with."""
    return time.monotonic_ns() // 1_000_000


def node_name(host: str, port: int) -> str:
    """Return what the machine calls the node at an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def can_be_resolved(host: str, port: int) -> bool:
    """Look up a name, for as long as it takes; never on an event loop."""
    try:
        return bool(socket.getaddrinfo(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM))
    except (OSError, UnicodeError) as error:
        _log.warning("bootstrap server %s: %s", node_name(host, port), error)
        return False


class RebootstrapSupervisor(ABC):
    """The machine of one client, and its hands.

    Args:
        config: strategy, trigger and time limits.
        listener: told of every rebootstrap, and of a demand that the settings forbid.

    Attributes:
        rebootstraps: the last hundred, oldest first.
        required: why the application has to act itself (strategy `none` only), or None.
    """

    def __init__(self, config: RebootstrapConfig, listener: Listener | None) -> None:
        self.rebootstraps: deque[Rebootstrapped] = deque(maxlen=_KEPT)
        self.required: RebootstrapRequiredError | None = None
        self._listener = listener
        self._dice = Random()  # noqa: S311 jitter of back-offs
        self._state = start_client((), config)
        self._wakeup_ms = NEVER_MS
        self._is_closed = False

    @property
    def state(self) -> RebootstrapState:
        """What the machine knows; a frozen value."""
        return self._state

    def _know(self, nodes: Iterable[str]) -> None:
        """Begin with the nodes that the client knows."""
        self._state = start_client(tuple(nodes), self._state.config)

    def _see(self, event: RebootstrapEvent) -> None:
        """Take in what happened, and do what follows from it."""
        if self._is_closed:
            return
        self._state, commands = rebootstrap_step(self._state, event)
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
        """Go on with the bootstrap servers whose names were found."""
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
            _log.warning("rebootstrap: %s (rule %r)", what.why, what.rule)
        else:
            _log.error("%s", what)
        if self._listener is not None:
            try:
                self._listener(what)
            except Exception:  # noqa: BLE001 a listener's bug must not stop the client
                _log.exception("a rebootstrap listener failed")

    @abstractmethod
    def _close_all(self) -> None:
        """Close every connection, made or under way."""

    @abstractmethod
    def _give_up(self, node: str, why: str) -> None:
        """Close the connection to `node`, which is not made in time."""

    @abstractmethod
    def _look_up(self) -> None:
        """Look up the names of the bootstrap servers off the loop, then call `_found` on it."""

    @abstractmethod
    def _set_timer(self, at_ms: int | None) -> None:
        """Call `_on_time` at this time, and at no other that was set before."""
