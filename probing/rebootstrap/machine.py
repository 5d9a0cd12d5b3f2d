"""When a client forgets its brokers and begins again at its bootstrap servers: events, commands.

KIP-899 begins again when no known node has a connection and none may be tried; KIP-1102 adds a time
limit for metadata and a demand of the server (error 129, ``REBOOTSTRAP_REQUIRED``). The decision is
one ordered table, :data:`REBOOTSTRAP_RULES`. Beyond both KIPs, beginning again without any answer
in between backs off as connections do, so that a client whose cluster is gone stays quiet.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, assert_never

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

NEVER_MS: Final = 2**63 - 1


class Link(Enum):
    """What a client knows of its connection to one node."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    BACKING_OFF = "backing off"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLink:
    """The connection to one node.

    Attributes:
        link: its state.
        failures: failures in a row since the connection last worked.
        until_ms: when a connection under way is given up, or when the back-off ends.
    """

    link: Link = Link.IDLE
    failures: int = 0
    until_ms: int = NEVER_MS

    def is_available(self, now_ms: int) -> bool:
        """Tell whether a request may go there, now or once connected (KIP-899)."""
        return self.link is not Link.BACKING_OFF or now_ms >= self.until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootstrapState:
    """What one client remembers.

    Attributes:
        config: its settings.
        nodes: the known nodes by ``host:port``.
        attempt_started_ms: when metadata was first asked for without an answer; None if it is not.
        demanded: the server asked for a rebootstrap that has not happened yet.
        resolving: told to bootstrap again; the addresses are not known yet.
        in_a_row: rebootstraps since metadata last came.
        not_before_ms: no further rebootstrap before this.
        rebootstraps: how many there were in all.
    """

    config: RebootstrapConfig
    nodes: dict[str, NodeLink]
    attempt_started_ms: int | None = None
    demanded: bool = False
    resolving: bool = False
    in_a_row: int = 0
    not_before_ms: int = 0
    rebootstraps: int = 0


class Verdict(Enum):
    """What a row of the table comes to."""

    BEGIN_AGAIN = "begin again"
    REPORT = "report"
    GO_ON = "go on"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootstrapRule:
    """One row: when it holds, what it comes to, and the sentence for the log."""

    name: str
    holds: Callable[[RebootstrapState, int], bool]
    verdict: Verdict
    why: str


def _waited_ms(state: RebootstrapState, now_ms: int) -> int:
    return 0 if state.attempt_started_ms is None else now_ms - state.attempt_started_ms


def _none_available(state: RebootstrapState, now_ms: int) -> bool:
    return not any(node.is_available(now_ms) for node in state.nodes.values())


def _never(state: RebootstrapState) -> bool:
    return state.config.strategy is RecoveryStrategy.NONE


REBOOTSTRAP_RULES: Final = (
    RebootstrapRule(
        name="demanded but forbidden",
        holds=lambda s, _: _never(s) and s.demanded,
        verdict=Verdict.REPORT,
        why="the server answers REBOOTSTRAP_REQUIRED (129), and metadata.recovery.strategy=none"
        " forbids it; set it to rebootstrap, or restart this client",
    ),
    RebootstrapRule(
        name="forbidden",
        holds=lambda s, _: _never(s),
        verdict=Verdict.GO_ON,
        why="metadata.recovery.strategy=none",
    ),
    RebootstrapRule(
        name="under way",
        holds=lambda s, _: s.resolving,
        verdict=Verdict.GO_ON,
        why="bootstrap.servers are being resolved",
    ),
    RebootstrapRule(
        name="too soon after the last",
        holds=lambda s, now_ms: now_ms < s.not_before_ms,
        verdict=Verdict.GO_ON,
        why="no metadata came since the last rebootstrap; it backs off as connections do",
    ),
    RebootstrapRule(
        name="demanded by the server",
        holds=lambda s, _: s.demanded,
        verdict=Verdict.BEGIN_AGAIN,
        why="the server answers REBOOTSTRAP_REQUIRED (129)",
    ),
    RebootstrapRule(
        name="no node is available",
        holds=_none_available,
        verdict=Verdict.BEGIN_AGAIN,
        why="none of {nodes} known nodes has a connection, and all are in reconnect back-off",
    ),
    RebootstrapRule(
        name="metadata is overdue",
        holds=lambda s, now_ms: _waited_ms(s, now_ms) > s.config.trigger_ms,
        verdict=Verdict.BEGIN_AGAIN,
        why="no metadata for {waited} ms, {trigger} ms are allowed"
        " (metadata.recovery.rebootstrap.trigger.ms)",
    ),
    RebootstrapRule(
        name="all is well",
        holds=lambda _s, _: True,
        verdict=Verdict.GO_ON,
        why="a node is available and metadata is not overdue",
    ),
)
"""First row that holds, wins (KIP-899, KIP-1102)."""


def start_client(nodes: tuple[str, ...], config: RebootstrapConfig) -> RebootstrapState:
    """Return a client that knows the addresses of its bootstrap servers, and nothing else."""
    return RebootstrapState(config=config, nodes={node: NodeLink() for node in sorted(nodes)})


def rebootstrap_step(
    state: RebootstrapState, event: RebootstrapEvent
) -> tuple[RebootstrapState, tuple[RebootstrapCommand, ...]]:
    """Return the client after ``event``, and what it has to do, in order.

    An event about a node that is no longer known changes nothing but is no error: a closed
    connection reports late.
    """
    state, given_up = _give_up_slow_ones(_taken_in(state, event), event)
    rule = next(row for row in REBOOTSTRAP_RULES if row.holds(state, event.now_ms))
    if rule.verdict is Verdict.GO_ON:
        return state, given_up
    why = rule.why.format(
        nodes=len(state.nodes),
        waited=_waited_ms(state, event.now_ms),
        trigger=state.config.trigger_ms,
    )
    if rule.verdict is Verdict.REPORT:
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
    """Return when :class:`ClockMoved` could change something, on the caller's clock."""
    times = [link.until_ms for link in state.nodes.values() if link.link is Link.CONNECTING]
    if state.config.strategy is RecoveryStrategy.REBOOTSTRAP and not state.resolving:
        if state.attempt_started_ms is not None:
            due_ms = state.attempt_started_ms + state.config.trigger_ms + 1
            times.append(max(due_ms, state.not_before_ms))
        if state.in_a_row:
            times.append(state.not_before_ms)
    return min(times, default=NEVER_MS)


def _taken_in(state: RebootstrapState, event: RebootstrapEvent) -> RebootstrapState:
    match event:
        case MetadataWanted():
            if state.attempt_started_ms is not None:
                return state
            return replace(state, attempt_started_ms=event.now_ms)
        case MetadataReceived():
            return _metadata_taken_in(state, event)
        case BootstrapResolved():
            nodes = {node: state.nodes.get(node, NodeLink()) for node in sorted(event.nodes)}
            closed = {name: _closed(node) for name, node in nodes.items()}
            # A slow lookup is no metadata that failed to come: the time counts from here.
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


def _metadata_taken_in(state: RebootstrapState, event: MetadataReceived) -> RebootstrapState:
    """A demand counts whatever else is in the answer; no broker in it is no answer at all."""
    if event.error_code == REBOOTSTRAP_REQUIRED:
        return replace(state, demanded=True)
    if not event.nodes:
        return state
    nodes = {node: state.nodes.get(node, NodeLink()) for node in sorted(event.nodes)}
    return replace(state, nodes=nodes, attempt_started_ms=None, in_a_row=0, not_before_ms=0)


def _closed(node: NodeLink) -> NodeLink:
    """Close without blame: an address that failed before stays in its back-off."""
    return node if node.link is Link.BACKING_OFF else NodeLink(failures=node.failures)


def _link_after(
    config: RebootstrapConfig,
    link: NodeLink,
    event: ConnectionStarted | ConnectionReady | ConnectionLost,
) -> NodeLink:
    match event:
        case ConnectionStarted():
            limit_ms = config.setup_timeout_ms(link.failures, event.dice)
            limit_ms = limit_ms if event.limit_ms is None else event.limit_ms
            return replace(link, link=Link.CONNECTING, until_ms=event.now_ms + limit_ms)
        case ConnectionReady():
            return NodeLink(link=Link.READY)
        case ConnectionLost():
            if event.back_off_ms == 0:
                return NodeLink()
            failures = link.failures + 1
            delay_ms = event.back_off_ms or config.reconnect_delay_ms(failures, event.dice)
            until_ms = event.now_ms + delay_ms
            return NodeLink(link=Link.BACKING_OFF, failures=failures, until_ms=until_ms)
        case _:
            assert_never(event)


def _give_up_slow_ones(
    state: RebootstrapState, event: RebootstrapEvent
) -> tuple[RebootstrapState, tuple[GiveUpConnection, ...]]:
    """Stop waiting for connections that are not made in time: they have failed."""
    slow = [
        name
        for name, node in sorted(state.nodes.items())
        if node.link is Link.CONNECTING and event.now_ms >= node.until_ms
    ]
    if not slow:
        return state, ()
    nodes = dict(state.nodes)
    for name in slow:
        lost = ConnectionLost(now_ms=event.now_ms, node=name)
        nodes[name] = _link_after(state.config, nodes[name], lost)
    why = "the connection was not made within socket.connection.setup.timeout.ms and its growth"
    return replace(state, nodes=nodes), tuple(GiveUpConnection(node=n, why=why) for n in slow)
