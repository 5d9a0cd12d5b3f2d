"""The simulated cluster: nodes with disks, and a network with delays.

Handlers of messages and timers are registered by kind (``build.py``); each takes the cluster and a
node. A message to a node that is down is lost; a paused node gets it at the end of its pause.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from probing.features import FinalizedLevels, LevelRange, NodeSupport, Role
from system_tests.cluster.events import Started, Stopped
from system_tests.cluster.machines.controller import ControllerState
from system_tests.cluster.machines.replica import Record, ReplicaState, Snapshot
from system_tests.cluster.nodes.programs import Program, Realm, Start, find_program
from system_tests.engine import Actor, Pending, Simulation
from system_tests.sim import Happened

_CHECK_MS: Final = 100


class Batch(NamedTuple):
    """A batch of a log: the term of the controller that appended it, and its records."""

    term: int
    records: tuple[Record, ...]


@dataclass(slots=True)
class Disk:
    """State of a node that survives a stop."""

    log: list[Batch] = field(default_factory=list)
    term: int = 0
    snapshot: Snapshot | None = None


@dataclass(slots=True)
class Node:
    """A broker or controller: its disk, its program, and its state while it runs.

    Attributes:
        name, role: name of its lane, and its role.
        index: index in ``Cluster.nodes``.
        disk: state that survives a stop.
        start: program and setting of the last start.
        incarnation: number of starts.
        is_up, paused_until_ms: whether it runs, and until when it is paused.
        lag_ms: delay of messages to the node.
        replica: state of the log reader.
        published: levels that the node uses.
        spoken: level at which it sends, by peer.
        peers: last answer of each peer: (its incarnation and epoch), its level.
    """

    name: str
    index: int
    role: Role
    disk: Disk = field(default_factory=Disk)
    start: Start = field(default_factory=lambda: Start(program=""))
    incarnation: int = 0
    is_up: bool = False
    paused_until_ms: int = 0
    lag_ms: int = 0
    replica: ReplicaState = field(init=False)
    published: FinalizedLevels = field(default_factory=FinalizedLevels)
    spoken: dict[str, int] = field(default_factory=dict)
    peers: dict[str, tuple[tuple[int, int], int]] = field(default_factory=dict)
    # controllers only
    is_elected: bool = False
    heard_ms: int = 0
    leader: str = ""
    next_by_peer: dict[str, int] = field(default_factory=dict)
    match_by_peer: dict[str, int] = field(default_factory=dict)
    commit: int = 0
    machine: ControllerState | None = None
    heard_by_node: dict[str, int] = field(default_factory=dict)
    waiting: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    asked: set[tuple[str, int, int]] = field(default_factory=set)
    # brokers only
    contact: int = 0
    answered_ms: int = 0
    is_registered: bool = False
    is_rejected: bool = False
    registered_at: int = 0

    @property
    def program(self) -> Program:
        """The program that the node runs."""
        return find_program(self.start.program)

    @property
    def ranges(self) -> Mapping[str, LevelRange]:
        """Supported levels that it advertises: none below the migration version."""
        return self.program.ranges if self.start.is_migrated else {}

    @property
    def support(self) -> NodeSupport:
        """The content of its registration."""
        return NodeSupport(
            node_id=self.name,
            role=self.role,
            ranges=self.ranges,
            is_migrated=self.start.is_migrated,
        )

    @property
    def is_active(self) -> bool:
        """Whether it is the active controller."""
        return self.is_up and self.is_elected


Handler = Callable[["Cluster", Node, tuple[Any, ...]], None]


class Cluster(Actor):
    """A running cluster.

    Attributes:
        realm: properties of the cluster.
        nodes: all nodes, controllers first.
        drop: probability that a message is lost.
        committed: all committed batches.
        term: number of times that a controller became active.
    """

    def __init__(
        self, simulation: Simulation, realm: Realm, *, controllers: int, brokers: int
    ) -> None:
        """Create a cluster in which no node runs."""
        super().__init__(simulation)
        self.realm = realm
        names = [(f"c{n}", Role.CONTROLLER) for n in range(controllers)]
        names += [(f"b{n}", Role.BROKER) for n in range(brokers)]
        self.nodes = [Node(name=n, index=i, role=role) for i, (n, role) in enumerate(names)]
        self.by_name = {node.name: node for node in self.nodes}
        self.controllers = [node for node in self.nodes if node.role is Role.CONTROLLER]
        self.brokers = [node for node in self.nodes if node.role is Role.BROKER]
        self.drop = 0.0
        self.committed: list[Batch] = []
        self.term = 0
        self._handlers: dict[str, Handler] = {}
        self._actions: frozenset[str] = frozenset()
        self.starters: list[Callable[[Cluster, Node], None]] = []

    def handle(self, handlers: Mapping[str, Handler], actions: Mapping[str, Handler]) -> None:
        """Register what handles messages and timers of nodes, and actions on nodes, by kind."""
        self._handlers = {**handlers, **actions}
        self._actions = frozenset(actions)
        self.simulation.handlers |= dict.fromkeys(self._handlers, self._on_pending)

    @property
    def quorum(self) -> tuple[str, ...]:
        """The names of all voters."""
        return tuple(node.name for node in self.controllers)

    def send(self, target: Node, kind: str, *data: Any) -> None:
        """Send a message with a random delay; it may be lost, except messages of kind "ask"."""
        if kind != "ask" and self.scheduler.happens(self.drop):
            return
        delay_ms = self.scheduler.delay(1, 15) + target.lag_ms
        self.scheduler.schedule(delay_ms, kind, target.index, (0, *data))

    def later(self, node: Node, delay_ms: int, kind: str, *data: Any) -> None:
        """Set a timer of a node; a stop of the node cancels it."""
        self.scheduler.schedule(delay_ms, kind, node.index, (node.incarnation, *data))

    def do_later(self, delay_ms: int, kind: str, node: Node, *data: Any) -> None:
        """Schedule an event for a node, whether it runs or not."""
        self.scheduler.schedule(delay_ms, kind, node.index, (0, *data))

    def start(self, node: Node, start: Start) -> None:
        """Start a node that is down."""
        if node.is_up:
            return
        program = find_program(start.program)
        fresh = Node(name=node.name, index=node.index, role=node.role, disk=node.disk)
        fresh.start, fresh.incarnation, fresh.is_up = start, node.incarnation + 1, True
        fresh.contact = self.scheduler.delay(0, len(self.controllers) - 1)
        fresh.answered_ms = fresh.heard_ms = self.now_ms
        self._replace(node, fresh)
        for peer in self.nodes:
            peer.spoken.pop(node.name, None)
        self.record(
            Started(
                self.now_ms, fresh.name, program.name, fresh.ranges, program.reads, start.setting
            )
        )
        for starter in self.starters:
            if fresh.is_up:
                starter(self, fresh)

    def _replace(self, old: Node, new: Node) -> None:
        self.nodes[old.index] = new
        self.by_name[old.name] = new
        self.controllers = [node for node in self.nodes if node.role is Role.CONTROLLER]
        self.brokers = [node for node in self.nodes if node.role is Role.BROKER]

    def stop(self, node: Node, how: str = "stop") -> None:
        """Stop a running node; its memory is lost, its disk is kept."""
        if not node.is_up:
            return
        node.is_up = False
        node.is_elected = False
        for peer in self.nodes:
            peer.spoken.pop(node.name, None)
        self.record(Stopped(self.now_ms, node.name, how))

    def pause(self, node: Node, pause_ms: int) -> None:
        """Pause a node: it handles no message and no timer."""
        node.paused_until_ms = max(node.paused_until_ms, self.now_ms + pause_ms)
        self.record(Happened(self.now_ms, "", f"fault: {node.name} paused for {pause_ms} ms"))

    def active(self) -> Node | None:
        """Return the active controller; None if there is none."""
        return next((node for node in self.controllers if node.is_active), None)

    def run(self, *, until: Callable[[], bool], within_ms: int) -> bool:
        """Run until ``until`` holds; return whether it did within the time."""
        limit_ms = self.now_ms + within_ms
        check_ms = self.now_ms
        while True:
            due_ms = self.simulation.next_due_ms()
            if due_ms is None or due_ms > check_ms:
                if until():
                    return True
                if check_ms >= limit_ms or due_ms is None:
                    return False
                check_ms = min(check_ms + _CHECK_MS, limit_ms)
                continue
            self.simulation.step()

    def _on_pending(self, pending: Pending) -> None:
        kind, node = pending.kind, self.nodes[pending.target]
        incarnation, *data = pending.data
        if kind in self._actions:
            self._handlers[kind](self, node, tuple(data))
        elif node.is_up and incarnation in (0, node.incarnation):
            if node.paused_until_ms > self.now_ms:
                wait_ms = node.paused_until_ms - self.now_ms
                self.scheduler.schedule(wait_ms, kind, node.index, pending.data)
                return
            self._handlers[kind](self, node, tuple(data))
