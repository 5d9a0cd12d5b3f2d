"""When a client discards its brokers and returns to its bootstrap servers: events, commands.

KIP-899 rebootstraps when no known node is connected and all are in back-off. KIP-1102 adds a time
limit for metadata and a demand of the server (error 129, ``REBOOTSTRAP_REQUIRED``). One ordered
table decides, :data:`REBOOTSTRAP_RULES`. Beyond both KIPs, rebootstraps without any metadata in
between back off like connections, which limits the load while a cluster is down.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, NamedTuple, assert_never

from probing.rebootstrap.config import RebootstrapConfig, RecoveryStrategy
from probing.rebootstrap.events import (
    REBOOTSTRAP_REQUIRED,
    BootstrapAgain,
    BootstrapResolved,
    ClockMoved,
    CloseAll,
    ConnectionLost,
    ConnectionReady,
    ConnectionStarted,
    GiveUpConnection,
    MetadataReceived,
    MetadataWanted,
    RebootstrapCommand,
    RebootstrapEvent,
    ReportRequired,
)
from probing.rules import Rule, Rules, always, first

NEVER_MS: Final = 2**63 - 1


class LinkState(Enum):
    """State of a client's connection to one node."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    BACKING_OFF = "backing off"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLink:
    """The connection to one node.

    Attributes:
        state: its state.
        failures: failures in a row since the connection last worked.
        until_ms: time limit for connecting, or end of the back-off.
    """

    state: LinkState = LinkState.IDLE
    failures: int = 0
    until_ms: int = NEVER_MS

    def is_available(self, now_ms: int) -> bool:
        """Tell whether the client may use or try this node now (KIP-899)."""
        return self.state is not LinkState.BACKING_OFF or now_ms >= self.until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootstrapState:
    """State of one client.

    Attributes:
        config: its settings.
        nodes: the known nodes by ``host:port``.
        attempt_started_ms: when the pending attempt to get metadata began; None if none is pending.
        demanded: the server demanded a rebootstrap that has not happened yet.
        resolving: a rebootstrap has begun; the addresses are not known yet.
        in_a_row: rebootstraps since the last metadata.
        not_before_ms: earliest time of the next rebootstrap.
        rebootstraps: total number of rebootstraps.
    """

    config: RebootstrapConfig
    nodes: dict[str, NodeLink]
    attempt_started_ms: int | None = None
    demanded: bool = False
    resolving: bool = False
    in_a_row: int = 0
    not_before_ms: int = 0
    rebootstraps: int = 0


class RebootstrapOutcome(Enum):
    """What the client does; the outcome of a row."""

    BEGIN_AGAIN = "begin again"
    REPORT = "report"
    GO_ON = "go on"


class RebootstrapFacts(NamedTuple):
    """Inputs of a row: the state of the client, and the time."""

    state: RebootstrapState
    now_ms: int

    @property
    def nodes(self) -> int:
        """Number of known nodes."""
        return len(self.state.nodes)

    @property
    def waited_ms(self) -> int:
        """How long the client has waited for metadata; 0 if it waits for none."""
        started_ms = self.state.attempt_started_ms
        return 0 if started_ms is None else self.now_ms - started_ms


def _none_available(state: RebootstrapState, now_ms: int) -> bool:
    return not any(node.is_available(now_ms) for node in state.nodes.values())


def _never(state: RebootstrapState) -> bool:
    return state.config.strategy is RecoveryStrategy.NONE


REBOOTSTRAP_RULES: Final[Rules[RebootstrapFacts, RebootstrapOutcome]] = (
    Rule(
        name="demanded but forbidden",
        holds=lambda f: _never(f.state) and f.state.demanded,
        says=RebootstrapOutcome.REPORT,
        why="the server answers REBOOTSTRAP_REQUIRED (129), and metadata.recovery.strategy=none"
        " forbids it; set it to rebootstrap, or restart this client",
    ),
    Rule(
        name="forbidden",
        holds=lambda f: _never(f.state),
        says=RebootstrapOutcome.GO_ON,
        why="metadata.recovery.strategy=none",
    ),
    Rule(
        name="under way",
        holds=lambda f: f.state.resolving,
        says=RebootstrapOutcome.GO_ON,
        why="bootstrap.servers are being resolved",
    ),
    Rule(
        name="too soon after the last",
        holds=lambda f: f.now_ms < f.state.not_before_ms,
        says=RebootstrapOutcome.GO_ON,
        why="no metadata since the last rebootstrap; the next one waits for its back-off",
    ),
    Rule(
        name="demanded by the server",
        holds=lambda f: f.state.demanded,
        says=RebootstrapOutcome.BEGIN_AGAIN,
        why="the server answers REBOOTSTRAP_REQUIRED (129)",
    ),
    Rule(
        name="no node is available",
        holds=lambda f: _none_available(*f),
        says=RebootstrapOutcome.BEGIN_AGAIN,
        why="none of {nodes} known nodes has a connection, and all are in reconnect back-off",
    ),
    Rule(
        name="metadata is overdue",
        holds=lambda f: f.waited_ms > f.state.config.trigger_ms,
        says=RebootstrapOutcome.BEGIN_AGAIN,
        why="no metadata for {waited_ms} ms; the limit is {state.config.trigger_ms} ms"
        " (metadata.recovery.rebootstrap.trigger.ms)",
    ),
    Rule(
        name="nothing to do",
        holds=always,
        says=RebootstrapOutcome.GO_ON,
        why="a node is available and metadata is not overdue",
    ),
)
"""What the client does now (KIP-899, KIP-1102)."""


def start_client(nodes: tuple[str, ...], config: RebootstrapConfig) -> RebootstrapState:
    """Return the state of a new client: it knows the addresses of its bootstrap servers only."""
    return RebootstrapState(config=config, nodes={node: NodeLink() for node in sorted(nodes)})


def rebootstrap_step(
    state: RebootstrapState, event: RebootstrapEvent
) -> tuple[RebootstrapState, tuple[RebootstrapCommand, ...]]:
    """Return the state after ``event``, and the commands to carry out, in order.

    An event about an unknown node changes nothing: closed connections may report late.
    """
    state, given_up = _give_up_slow_links(_state_after(state, event), event)
    facts = RebootstrapFacts(state, event.now_ms)
    rule = first(REBOOTSTRAP_RULES, facts)
    if rule.says is RebootstrapOutcome.GO_ON:
        return state, given_up
    why = rule.sentence(facts)
    if rule.says is RebootstrapOutcome.REPORT:
        report = ReportRequired(rule=rule.name, why=why)
        return replace(state, demanded=False), (*given_up, report)
    in_a_row = state.in_a_row + 1
    begun = replace(
        state,
        attempt_started_ms=event.now_ms,
        demanded=False,
        resolving=True,
        in_a_row=in_a_row,
        not_before_ms=event.now_ms + state.config.reconnect_delay_ms(in_a_row, 0.5),
        rebootstraps=state.rebootstraps + 1,
    )
    return begun, (CloseAll(rule=rule.name), BootstrapAgain(rule=rule.name, why=why))


def next_wakeup_ms(state: RebootstrapState) -> int:
    """Return the earliest time at which :class:`ClockMoved` can have an effect."""
    times = [link.until_ms for link in state.nodes.values() if link.state is LinkState.CONNECTING]
    if state.config.strategy is RecoveryStrategy.REBOOTSTRAP and not state.resolving:
        if state.attempt_started_ms is not None:
            due_ms = state.attempt_started_ms + state.config.trigger_ms + 1
            times.append(max(due_ms, state.not_before_ms))
        if state.in_a_row:
            times.append(state.not_before_ms)
    return min(times, default=NEVER_MS)


def _state_after(state: RebootstrapState, event: RebootstrapEvent) -> RebootstrapState:
    match event:
        case MetadataWanted():
            if state.attempt_started_ms is not None:
                return state
            return replace(state, attempt_started_ms=event.now_ms)
        case MetadataReceived():
            return _state_after_metadata(state, event)
        case BootstrapResolved():
            nodes = {node: state.nodes.get(node, NodeLink()) for node in sorted(event.nodes)}
            closed = {name: _closed(node) for name, node in nodes.items()}
            # The time that resolving took does not count towards the time limit for metadata.
            started_ms = None if state.attempt_started_ms is None else event.now_ms
            return replace(state, nodes=closed, resolving=False, attempt_started_ms=started_ms)
        case ConnectionStarted() | ConnectionReady() | ConnectionLost():
            if event.node not in state.nodes:
                return state
            link = _link_after(state.config, state.nodes[event.node], event)
            return replace(state, nodes=state.nodes | {event.node: link})
        case ClockMoved():
            return state
        case _:
            assert_never(event)


def _state_after_metadata(state: RebootstrapState, event: MetadataReceived) -> RebootstrapState:
    """Return the state after a response; one without brokers and without a demand is ignored."""
    if event.error_code == REBOOTSTRAP_REQUIRED:
        return replace(state, demanded=True)
    if not event.nodes:
        return state
    nodes = {node: state.nodes.get(node, NodeLink()) for node in sorted(event.nodes)}
    return replace(state, nodes=nodes, attempt_started_ms=None, in_a_row=0, not_before_ms=0)


def _closed(node: NodeLink) -> NodeLink:
    """Return the node closed; a node in back-off stays in back-off."""
    return node if node.state is LinkState.BACKING_OFF else NodeLink(failures=node.failures)


def _link_after(
    config: RebootstrapConfig,
    link: NodeLink,
    event: ConnectionStarted | ConnectionReady | ConnectionLost,
) -> NodeLink:
    match event:
        case ConnectionStarted():
            limit_ms = config.setup_timeout_ms(link.failures, event.jitter)
            limit_ms = limit_ms if event.limit_ms is None else event.limit_ms
            return replace(link, state=LinkState.CONNECTING, until_ms=event.now_ms + limit_ms)
        case ConnectionReady():
            return NodeLink(state=LinkState.READY)
        case ConnectionLost():
            if event.back_off_ms == 0:
                return NodeLink()
            failures = link.failures + 1
            delay_ms = event.back_off_ms or config.reconnect_delay_ms(failures, event.jitter)
            until_ms = event.now_ms + delay_ms
            return NodeLink(state=LinkState.BACKING_OFF, failures=failures, until_ms=until_ms)
        case _:
            assert_never(event)


def _give_up_slow_links(
    state: RebootstrapState, event: RebootstrapEvent
) -> tuple[RebootstrapState, tuple[GiveUpConnection, ...]]:
    """Return the state with overdue connections as failed, and the commands to close them."""
    slow = [
        name
        for name, node in sorted(state.nodes.items())
        if node.state is LinkState.CONNECTING and event.now_ms >= node.until_ms
    ]
    if not slow:
        return state, ()
    nodes = dict(state.nodes)
    for name in slow:
        lost = ConnectionLost(now_ms=event.now_ms, node=name)
        nodes[name] = _link_after(state.config, nodes[name], lost)
    why = "not connected within socket.connection.setup.timeout.ms (it grows with each failure)"
    return replace(state, nodes=nodes), tuple(GiveUpConnection(node=n, why=why) for n in slow)
