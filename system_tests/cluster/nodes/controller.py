"""The active controller: runs `controller_step`, appends to the log, answers requests."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from probing.features import (
    FoundLog,
    NodeSupport,
    Role,
    UpdateOutcome,
    UpdateRequest,
    initial_level,
)
from system_tests.cluster.events import Activated, Asked, Regarded, Standing
from system_tests.cluster.machines.content import Entry
from system_tests.cluster.machines.controller import (
    AcceptNode,
    AnswerUpdate,
    AppendRecords,
    ControllerEvent,
    ControllerState,
    FenceNode,
    NodeHeard,
    NodeRegistered,
    NodeSilent,
    NodeUnregistered,
    Registration,
    RejectNode,
    UnfenceNode,
    UpdateAsked,
    controller_step,
)
from system_tests.cluster.machines.replica import (
    BatchRead,
    ContentRecord,
    LeaveCluster,
    Record,
    ReplicaState,
    replica_step,
)
from system_tests.cluster.nodes.reading import leave_cluster
from system_tests.cluster.nodes.simulation import Batch, Cluster, Node

SESSION_MS: Final = 2_500
_LOOK_MS: Final = 500


def activate(cluster: Cluster, node: Node) -> None:
    """Become the active controller: read the own log to its end and start to append."""
    node.is_elected, node.leader = True, node.name
    cluster.record(Activated(cluster.now_ms, node.name, node.disk.term))
    tip = _read_to_the_end(cluster, node)
    if tip is None:
        return
    node.asked.clear()
    quorum = cluster.quorum
    node.machine = ControllerState(
        node_id=node.name,
        table=cluster.realm.table,
        quorum=quorum,
        finalized=tip.finalized,
        minimums=tip.minimums,
        registrations=_registrations(tip),
        is_enabled=node.start.is_migrated,
    )
    node.heard_by_node = dict.fromkeys(map(str, node.machine.registrations), cluster.now_ms)
    records: tuple[Record, ...] = ()
    if not cluster.realm.has_setting:
        logged = tip.finalized.level_of(cluster.realm.governing) if tip.finalized.epoch else None
        found = initial_level(
            FoundLog(logged_level=logged, formatted_level=cluster.realm.formatted)
        )
        records = found.records
        if found.records:
            changes = {record.feature: record.level for record in found.records}
            finalized = node.machine.finalized.changed(changes)
            node.machine = replace(node.machine, finalized=finalized)
    # Also without records: batches of older terms are committed only with one of the new term.
    append(cluster, node, records)
    heard_voter(cluster, node, node, node.incarnation)
    cluster.later(node, _LOOK_MS, "sessions", node.disk.term)


def _read_to_the_end(cluster: Cluster, node: Node) -> ReplicaState | None:
    """Return the state at the end of the log, committed or not; None if the controller resigns."""
    tip = replace(node.replica, is_active=True)
    node.replica = tip
    for offset in range(tip.next_offset, len(node.disk.log)):
        records = node.disk.log[offset].records
        tip, commands = replica_step(tip, BatchRead(offset=offset, records=records))
        for command in commands:
            if isinstance(command, LeaveCluster):
                leave_cluster(cluster, node, command)
                return None
    return tip


def _registrations(tip: ReplicaState) -> dict[int | str, Registration]:
    """Return the brokers in the log; all count as alive for one session."""
    found: dict[int | str, Registration] = {}
    for (kind, name), entry in sorted(tip.content.items()):
        support = entry.fields.get("support")
        if kind == "broker" and isinstance(support, NodeSupport):
            found[name] = Registration(
                node=support,
                incarnation=entry.fields["incarnation"],
                is_fenced=entry.fields["is_fenced"],
            )
    return found


def append(cluster: Cluster, node: Node, records: tuple[Record, ...]) -> None:
    """Append a batch and replicate it."""
    node.disk.log.append(Batch(node.disk.term, records))
    cluster.later(node, 0, "spread")


def when_committed(node: Node, act: Callable[[], None]) -> None:
    """Call `act` when all batches so far are committed, if the controller is still active."""
    if node.commit >= len(node.disk.log):
        act()
    else:
        node.waiting.append((len(node.disk.log), act))


def settle_waiting(node: Node) -> None:
    """Call the actions whose batches are now committed."""
    ready = [act for offset, act in node.waiting if offset <= node.commit]
    node.waiting = [(offset, act) for offset, act in node.waiting if offset > node.commit]
    for act in ready:
        act()


def heard_voter(cluster: Cluster, node: Node, peer: Node, incarnation: int) -> None:
    """Record a response of a controller; after a restart it is registered again."""
    if node.machine is None or incarnation != peer.incarnation:
        return
    node.heard_by_node[peer.name] = cluster.now_ms
    row = node.machine.registrations.get(peer.name)
    asked = (peer.name, incarnation, node.machine.finalized.epoch)
    if (row is None or row.incarnation != incarnation) and asked not in node.asked:
        node.asked.add(asked)
        step(cluster, node, NodeRegistered(node=peer.support, incarnation=incarnation))
    if row is not None and row.is_live and not row.is_fenced:
        return
    heard = NodeHeard(node_id=peer.name, incarnation=incarnation, is_caught_up=True)
    step(cluster, node, heard)


def on_sessions(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """Timer: fence the nodes whose session has expired."""
    if not node.is_active or node.disk.term != data[0]:
        return
    cluster.later(node, _LOOK_MS, "sessions", node.disk.term)
    node.heard_by_node[node.name] = cluster.now_ms
    for name, heard_ms in sorted(node.heard_by_node.items()):
        row = node.machine.registrations.get(name) if node.machine else None
        if row is not None and row.is_live and cluster.now_ms - heard_ms > SESSION_MS:
            step(cluster, node, NodeSilent(node_id=name))


def on_register(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """A broker requests its registration."""
    name, incarnation, support = data
    if node.machine is None or cluster.by_name[name].incarnation != incarnation:
        return
    node.heard_by_node[name] = cluster.now_ms
    row = node.machine.registrations.get(name)
    if row is not None and row.incarnation == incarnation:
        when_committed(node, lambda: _tell(cluster, node, name, incarnation))
    else:
        step(cluster, node, NodeRegistered(node=support, incarnation=incarnation))


def on_unregister(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """A broker unregisters."""
    name, incarnation = data
    row = node.machine.registrations.get(name) if node.machine else None
    if row is None or row.incarnation != incarnation:
        return
    cluster.record(Regarded(cluster.now_ms, name, Standing.UNREGISTERED))
    step(cluster, node, NodeUnregistered(node_id=name))
    gone = Entry(kind="broker", key=name, fields={"incarnation": incarnation})
    append(cluster, node, (ContentRecord(entry=gone),))


def step(cluster: Cluster, node: Node, event: ControllerEvent) -> UpdateOutcome | None:
    """Run the state machine with an event and do its commands; return the outcome of an update."""
    if node.machine is None:
        return None
    outcome = None
    node.machine, commands = controller_step(node.machine, event)
    for command in commands:
        match command:
            case AcceptNode():
                _accept(cluster, node, command)
            case RejectNode(node_id=name, why=why):
                _reject(cluster, str(name), why)
            case UnfenceNode(node_id=name) | FenceNode(node_id=name):
                is_fenced = isinstance(command, FenceNode)
                _set_fence(cluster, node, str(name), is_fenced=is_fenced)
            case AppendRecords(records=records):
                append(cluster, node, records)
            case AnswerUpdate(outcome=answered):
                outcome = answered
    return outcome


def _reject(cluster: Cluster, name: str, why: str) -> None:
    peer = cluster.by_name[name]
    if not peer.is_rejected:
        cluster.record(Regarded(cluster.now_ms, name, Standing.REJECTED, why))
    if peer.role is Role.BROKER:
        cluster.send(peer, "rejected", peer.incarnation, why)


def _accept(cluster: Cluster, node: Node, command: AcceptNode) -> None:
    peer = cluster.by_name[str(command.node_id)]
    if peer.role is not Role.BROKER:
        return
    fields = {"incarnation": command.incarnation, "support": peer.support, "is_fenced": True}
    entry = Entry(kind="broker", key=peer.name, fields=fields)
    append(cluster, node, (ContentRecord(entry=entry),))
    when_committed(node, lambda: _tell(cluster, node, peer.name, command.incarnation))


def _set_fence(cluster: Cluster, node: Node, name: str, *, is_fenced: bool) -> None:
    """Append to the log whether a broker is fenced; controllers are not fenced."""
    row = node.machine.registrations.get(name) if node.machine else None
    if row is None or row.node.role is not Role.BROKER:
        return
    fields = {"incarnation": row.incarnation, "support": row.node, "is_fenced": is_fenced}
    append(cluster, node, (ContentRecord(entry=Entry(kind="broker", key=name, fields=fields)),))
    standing = Standing.SILENCED if is_fenced else Standing.UNFENCED
    when_committed(node, lambda: cluster.record(Regarded(cluster.now_ms, name, standing)))


def _tell(cluster: Cluster, node: Node, name: str, incarnation: int) -> None:
    """Tell a broker that its registration is committed, and up to which offset it has to read."""
    peer = cluster.by_name[name]
    if peer.is_up and peer.incarnation == incarnation and not peer.is_registered:
        cluster.record(Regarded(cluster.now_ms, name, Standing.REGISTERED))
        cluster.send(peer, "registered", incarnation, node.commit)


def ask_update(cluster: Cluster, node: Node, number: int, request: UpdateRequest) -> UpdateOutcome:
    """Let the active controller decide on a request; record the request and its outcome."""
    machine = node.machine
    if machine is None:
        raise ValueError(f"{node.name} is not the active controller; send it to the active one")
    voters = {
        str(node.node_id): node.ranges
        for node in machine.view.nodes
        if node.role is Role.CONTROLLER
    }
    outcome = step(cluster, node, UpdateAsked(request=request))
    if outcome is None:
        raise ValueError(f"{node.name} did not answer request {number}; a row is missing")
    result = next((row for row in outcome.results if not row.ok), None) or outcome.results[0]
    cluster.record(
        Asked(
            at_ms=cluster.now_ms,
            node=node.name,
            request=number,
            levels={row.feature: max(row.level, 0) for row in request.updates},
            kind=request.updates[0].kind.name.lower(),
            dry=request.validate_only,
            error=outcome.error.value,
            rule=result.rule,
            why=result.why,
            loses=tuple(name for row in outcome.results for name in row.loses),
            voters=voters,
            epoch=machine.finalized.epoch,
        )
    )
    return outcome
