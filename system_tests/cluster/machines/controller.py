"""State machine of the active controller: registrations, fencing, updates of levels.

``controller_step(state, event) -> (state, commands)``. Its levels are those at the end of the log,
committed or not. A new active controller starts with the registrations in the log and learns again
which nodes are alive.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from probing.features import (
    ControllerView,
    FeatureTable,
    FinalizedLevels,
    JoinDecision,
    JoinNumbers,
    LevelRecord,
    NodeSupport,
    UpdateModel,
    UpdateOutcome,
    UpdateRequest,
    decide_join,
    decide_update,
    raised_minimums,
)
from system_tests.cluster.machines.replica import MinimumRecord

NodeId = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRegistered:
    """A node registers; ``incarnation`` is different for each start of the node."""

    node: NodeSupport
    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHeard:
    """A registered node is alive; ``is_caught_up``: it has read the log up to its registration."""

    node_id: NodeId
    incarnation: int
    is_caught_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSilent:
    """The session of a node expired."""

    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUnregistered:
    """A node, or an operator for it, gave up its registration."""

    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAsked:
    """An operator requests an update of levels."""

    request: UpdateRequest


ControllerEvent = NodeRegistered | NodeHeard | NodeSilent | NodeUnregistered | UpdateAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptNode:
    """Register the node; it is fenced until it has caught up."""

    node_id: NodeId
    incarnation: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectNode:
    """Do not register or unfence the node; answer it with the error and the sentence."""

    node_id: NodeId
    error_code: int
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceNode:
    """Let clients use the node."""

    node_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceNode:
    """Prevent clients from using the node."""

    node_id: NodeId
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRecords:
    """Append these to the log as one batch."""

    records: tuple[LevelRecord | MinimumRecord, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerUpdate:
    """Answer the operator when all earlier appends are committed."""

    outcome: UpdateOutcome


ControllerCommand = AcceptNode | RejectNode | UnfenceNode | FenceNode | AppendRecords | AnswerUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One registered node.

    Attributes:
        node: what the node supports.
        incarnation: identifies the start of the node.
        is_fenced: clients cannot use the node.
        is_live: the node's session has not expired.
    """

    node: NodeSupport
    incarnation: int
    is_fenced: bool = True
    is_live: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerState:
    """State of an active controller.

    Attributes:
        node_id, quorum, table, model: as in ``ControllerView``.
        finalized, minimums: values at the end of the log.
        registrations: registrations by node id.
        is_enabled: levels are used; see ``probing/features/migration.py``.
    """

    node_id: NodeId
    table: FeatureTable
    quorum: tuple[NodeId, ...] = ()
    model: UpdateModel = UpdateModel.KIP
    finalized: FinalizedLevels = field(default_factory=FinalizedLevels)
    minimums: Mapping[str, int] = field(default_factory=dict)
    registrations: Mapping[NodeId, Registration] = field(default_factory=dict)
    is_enabled: bool = True

    @property
    def view(self) -> ControllerView:
        """Return the input of the update rules; only live nodes are in it."""
        nodes = tuple(row.node for _, row in _by_id(self.registrations) if row.is_live)
        return ControllerView(
            table=self.table,
            finalized=self.finalized,
            nodes=nodes,
            node_id=self.node_id,
            quorum=self.quorum,
            is_enabled=self.is_enabled,
            minimums=self.minimums,
            model=self.model,
        )


def controller_step(
    state: ControllerState, event: ControllerEvent
) -> tuple[ControllerState, tuple[ControllerCommand, ...]]:
    """Return the controller after ``event``, and what it has to do, in order."""
    match event:
        case NodeRegistered():
            return _registered(state, event)
        case NodeHeard():
            return _on_heartbeat(state, event)
        case NodeSilent():
            return _silent(state, event.node_id)
        case NodeUnregistered():
            left = {k: row for k, row in state.registrations.items() if k != event.node_id}
            return _with_minimums(replace(state, registrations=left), ())
        case UpdateAsked():
            return _on_update_request(state, event)
        case _:
            assert_never(event)


def _by_id(
    registrations: Mapping[NodeId, Registration],
) -> list[tuple[NodeId, Registration]]:
    return sorted(registrations.items(), key=lambda pair: str(pair[0]))


def _join(state: ControllerState, node: NodeSupport) -> JoinDecision:
    numbers = JoinNumbers(
        node=node, finalized=state.finalized, table=state.table, is_enabled=state.is_enabled
    )
    return decide_join(numbers)


def _registered(
    state: ControllerState, event: NodeRegistered
) -> tuple[ControllerState, tuple[ControllerCommand, ...]]:
    """Check the node; one that is rejected keeps no earlier registration either: it stays out."""
    node_id = event.node.node_id
    decision = _join(state, event.node)
    if not decision.is_accepted:
        reject = RejectNode(
            node_id=node_id,
            error_code=decision.error_code,
            rule=decision.rule,
            why=decision.why,
        )
        return _silent(state, node_id)[0], (reject,)
    row = Registration(node=event.node, incarnation=event.incarnation)
    after = replace(state, registrations={**state.registrations, node_id: row})
    accept = AcceptNode(
        node_id=node_id, incarnation=event.incarnation, rule=decision.rule, why=decision.why
    )
    return _with_minimums(after, (accept,))


def _on_heartbeat(
    state: ControllerState, event: NodeHeard
) -> tuple[ControllerState, tuple[ControllerCommand, ...]]:
    """Record that a node is alive; check it again before it is unfenced or counted as live.

    A live, unfenced node needs no check: no level was raised that it does not support.
    """
    row = state.registrations.get(event.node_id)
    if row is None or row.incarnation != event.incarnation:
        return state, ()
    if row.is_live and not (row.is_fenced and event.is_caught_up):
        return state, ()
    decision = _join(state, row.node)
    if not decision.is_accepted:
        reject = RejectNode(
            node_id=event.node_id,
            error_code=decision.error_code,
            rule=decision.rule,
            why=decision.why,
        )
        return _silent(state, event.node_id)[0], (reject,)
    unfences = row.is_fenced and event.is_caught_up
    row = replace(row, is_live=True, is_fenced=row.is_fenced and not event.is_caught_up)
    after = replace(state, registrations={**state.registrations, event.node_id: row})
    return after, ((UnfenceNode(node_id=event.node_id),) if unfences else ())


def _silent(
    state: ControllerState, node_id: NodeId
) -> tuple[ControllerState, tuple[ControllerCommand, ...]]:
    row = state.registrations.get(node_id)
    if row is None or (row.is_fenced and not row.is_live):
        return state, ()
    fenced = replace(row, is_fenced=True, is_live=False)
    after = replace(state, registrations={**state.registrations, node_id: fenced})
    why = "its session expired"
    return after, (() if row.is_fenced else (FenceNode(node_id=node_id, why=why),))


def _on_update_request(
    state: ControllerState, event: UpdateAsked
) -> tuple[ControllerState, tuple[ControllerCommand, ...]]:
    outcome = decide_update(state.view, event.request)
    answer = AnswerUpdate(outcome=outcome)
    if not outcome.records:
        return state, (answer,)
    append = AppendRecords(records=outcome.records, why="requested by an operator")
    after = replace(state, finalized=outcome.finalized)
    after, commands = _with_minimums(after, (append,))
    return after, (*commands, answer)


def _with_minimums(
    state: ControllerState, commands: tuple[ControllerCommand, ...]
) -> tuple[ControllerState, tuple[ControllerCommand, ...]]:
    """Raise the deprecated minimums that every registered node allows (KIP-584)."""
    records = deprecated_minimums(state)
    if not records:
        return state, commands
    minimums = {**state.minimums, **{record.feature: record.level for record in records}}
    append = AppendRecords(records=records, why="no registered node supports lower levels")
    return replace(state, minimums=minimums), (*commands, append)


def deprecated_minimums(state: ControllerState) -> tuple[MinimumRecord, ...]:
    """Return the minimums that can be raised, because all registered nodes and voters are above.

    A minimum is never lowered, never above the finalized level, and never raised before every
    voter of the quorum has registered.
    """
    nodes = [row.node for _, row in _by_id(state.registrations)]
    if not nodes or not state.is_enabled:
        return ()
    if any(voter not in state.registrations for voter in state.quorum):
        return ()
    raised = raised_minimums(state.finalized, state.minimums, nodes)
    return tuple(MinimumRecord(feature=name, level=level) for name, level in raised.items())
