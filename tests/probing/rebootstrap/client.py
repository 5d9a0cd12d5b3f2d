"""A simulated client, its brokers and its name server, for rebootstraps (KIP-899, KIP-1102).

The client is the real machine of `probing` in a small model of a Kafka client: it connects to a
node that it may connect to, asks for metadata, and asks again when that is old or a connection is
lost. What the operator does to brokers and names is a list of `Change`s. What happens is a list of
`Seen` in the trace, which `promises.py` checks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from probing.rebootstrap import (
    REBOOTSTRAP_REQUIRED,
    BootstrapAgain,
    BootstrapResolved,
    ClockMoved,
    CloseAll,
    ConnectionLost,
    ConnectionReady,
    ConnectionStarted,
    GiveUpConnection,
    LinkState,
    MetadataReceived,
    MetadataWanted,
    RebootstrapConfig,
    RebootstrapEvent,
    ReportRequired,
    next_wakeup_ms,
    rebootstrap_step,
    start_client,
)
from system_tests.engine import Actor, Pending, Simulation

POLL_MS: Final = 50
METADATA_MAX_AGE_MS: Final = 2_000
REQUEST_TIMEOUT_MS: Final = 30_000
_DRAWN_STEPS: Final = 1_000


class Answering(Enum):
    """How an address answers a connection."""

    UP = "up"
    REFUSES = "refuses"
    STUCK = "stuck"
    DEMANDS = "demands"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the brokers or of their names.

    Attributes:
        at_ms: when.
        nodes: how these addresses answer from then on; others refuse.
        brokers: what metadata names from then on; None leaves it.
        names: addresses that the bootstrap servers resolve to; None leaves it.
        lookup_ms: how long a lookup takes; None leaves it.
    """

    at_ms: int
    nodes: Mapping[str, Answering] = field(default_factory=dict)
    brokers: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    lookup_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One event of the client.

    Attributes:
        at_ms: when, on the simulated clock.
        what: `attempt`, `ready`, `lost`, `wanted`, `answer`, `empty`, `demand`, `rebootstrap`,
            `resolved`, `required` or `changed`.
        nodes: the node of a connection, or those named in an answer or found by a lookup.
        rule: of the machine, for `rebootstrap` and `required`.
    """

    at_ms: int
    what: str
    nodes: tuple[str, ...] = ()
    rule: str = ""


class RebootstrapClient(Actor):
    """A client of a simulated system.

    Args:
        simulation: the system; its seed is that of delays and jitter.
        first: brokers and names at 0 ms.
        changes: in order of time.
        config: of the client.
    """

    def __init__(
        self,
        simulation: Simulation,
        first: Change,
        changes: tuple[Change, ...],
        config: RebootstrapConfig,
    ) -> None:
        super().__init__(simulation)
        handlers = (self._on_change, self._on_wake, self._on_connect, self._on_answer)
        for handler in (*handlers, self._on_lookup):
            simulation.handlers[f"client{handler.__name__}"] = handler
        self._nodes: dict[str, Answering] = {}
        self._brokers: tuple[str, ...] = ()
        self._names: tuple[str, ...] = ()
        self._lookup_ms = 1
        self._apply(first)
        self._state = start_client(self._names, config)
        self._epoch = 0
        self._connections: dict[str, int] = {}
        self._asking_since_ms: int | None = None
        self._answered_ms = -METADATA_MAX_AGE_MS
        self._needs_metadata = True
        for change in changes:
            self._schedule(change.at_ms, "change", change)
        self._schedule(0, "wake")

    # What happens; connections carry an epoch, so that what was closed is not heard of again

    def _on_change(self, pending: Pending) -> None:
        self._apply(pending.data[0])
        self._note("changed")
        for node in sorted(self._connections):
            if self._answers(node) is Answering.REFUSES:
                self._lose(node)

    def _on_wake(self, _: Pending) -> None:
        self._tell(ClockMoved(now_ms=self.now_ms))
        if self.now_ms - self._answered_ms >= METADATA_MAX_AGE_MS:
            self._needs_metadata = True
        timeout_ms = REQUEST_TIMEOUT_MS
        if self._asking_since_ms is not None and self.now_ms - self._asking_since_ms > timeout_ms:
            self._asking_since_ms = None
            for node in sorted(self._connections):
                self._lose(node)
        if self._needs_metadata and self._asking_since_ms is None and not self._state.resolving:
            self._try_to_get_metadata()
        wake_ms = min(next_wakeup_ms(self._state), self.now_ms + POLL_MS)
        self._schedule(max(1, wake_ms - self.now_ms), "wake")

    def _on_connect(self, pending: Pending) -> None:
        node, epoch = pending.data
        if epoch != self._connections.get(node):
            return
        if self._answers(node) is Answering.REFUSES:
            self._lose(node)
        elif self._answers(node) is not Answering.STUCK:
            self._note("ready", node)
            self._tell(ConnectionReady(now_ms=self.now_ms, node=node))

    def _on_answer(self, pending: Pending) -> None:
        node, epoch = pending.data
        answers = self._answers(node)
        if epoch != self._connections.get(node) or answers is Answering.STUCK:
            return
        self._asking_since_ms = None
        if answers is Answering.DEMANDS:
            self._note("demand", node)
            self._tell(
                MetadataReceived(now_ms=self.now_ms, nodes=(), error_code=REBOOTSTRAP_REQUIRED)
            )
            return
        self._note("answer" if self._brokers else "empty", *self._brokers)
        if self._brokers:
            self._needs_metadata = False
            self._answered_ms = self.now_ms
        self._tell(MetadataReceived(now_ms=self.now_ms, nodes=self._brokers))
        for known in sorted(self._connections.keys() - self._state.nodes.keys()):
            del self._connections[known]

    def _on_lookup(self, _: Pending) -> None:
        self._note("resolved", *self._names)
        self._tell(BootstrapResolved(now_ms=self.now_ms, nodes=self._names))

    # What the client does

    def _try_to_get_metadata(self) -> None:
        self._note("wanted")
        self._tell(MetadataWanted(now_ms=self.now_ms))
        links = self._state.nodes
        ready = [node for node, link in links.items() if link.state is LinkState.READY]
        ready = [node for node in ready if node in self._connections]
        if ready:
            node = self.scheduler.choose(ready)
            self._asking_since_ms = self.now_ms
            self._later("answer", node, self._connections[node])
            return
        if any(link.state is LinkState.CONNECTING for link in links.values()):
            return
        free = [node for node, link in links.items() if link.is_available(self.now_ms)]
        if free:
            self._connect(self.scheduler.choose(free))

    def _connect(self, node: str) -> None:
        self._epoch += 1
        self._connections[node] = self._epoch
        self._note("attempt", node)
        self._tell(ConnectionStarted(now_ms=self.now_ms, node=node, jitter=self._draw()))
        if self._connections.get(node) == self._epoch:
            self._later("connect", node, self._epoch)

    def _lose(self, node: str) -> None:
        del self._connections[node]
        self._asking_since_ms = None
        self._needs_metadata = True
        self._note("lost", node)
        self._tell(ConnectionLost(now_ms=self.now_ms, node=node, jitter=self._draw()))

    def _tell(self, event: RebootstrapEvent) -> None:
        self._state, commands = rebootstrap_step(self._state, event)
        for command in commands:
            match command:
                case CloseAll():
                    self._connections.clear()
                    self._asking_since_ms = None
                case GiveUpConnection():
                    self._connections.pop(command.node, None)
                    self._note("lost", command.node)
                case BootstrapAgain():
                    self._needs_metadata = True
                    self._note("rebootstrap", rule=command.rule)
                    self._schedule(self._lookup_ms, "lookup")
                case ReportRequired():
                    self._note("required", rule=command.rule)

    # Steps

    def _apply(self, change: Change) -> None:
        self._nodes = dict(change.nodes) or self._nodes
        self._brokers = self._brokers if change.brokers is None else change.brokers
        self._names = self._names if change.names is None else change.names
        self._lookup_ms = self._lookup_ms if change.lookup_ms is None else change.lookup_ms

    def _answers(self, node: str) -> Answering:
        return self._nodes.get(node, Answering.REFUSES)

    def _draw(self) -> float:
        return self.scheduler.delay(0, _DRAWN_STEPS) / _DRAWN_STEPS

    def _later(self, kind: str, node: str, epoch: int) -> None:
        self._schedule(self.scheduler.delay(1, 5), kind, node, epoch)

    def _schedule(self, delay_ms: int, kind: str, *data: object) -> None:
        self.scheduler.schedule(delay_ms, f"client_on_{kind}", -1, data)

    def _note(self, what: str, *nodes: str, rule: str = "") -> None:
        self.record(Seen(at_ms=self.now_ms, what=what, nodes=tuple(nodes), rule=rule))
