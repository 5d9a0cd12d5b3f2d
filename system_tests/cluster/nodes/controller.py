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
from system_tests.cluster.events import (
    Activated,
    Asked,
    Registered,
    Rejected,
    Silenced,
    Unfenced,
    Unregistered,
)
from system_tests.cluster.machines import (
    AcceptNode,
    AnswerUpdate,
    AppendRecords,
    BatchRead,
    ContentRecord,
    ControllerEvent,
    ControllerState,
    Entry,
    FenceNode,
    LeaveCluster,
    NodeHeard,
    NodeRegistered,
    NodeSilent,
    NodeUnregistered,
    Record,
    Registration,
    RejectNode,
    ReplicaState,
    UnfenceNode,
    UpdateAsked,
    controller_step,
    replica_step,
)
from system_tests.cluster.nodes.reading import leave_cluster
from system_tests.cluster.nodes.simulation import Batch, Node, World

SESSION_MS: Final = 2_500
_LOOK_MS: Final = 500


def activate(world: World, node: Node) -> None:
    """Become the active controller: read the own log to its end and start to append."""
    node.is_elected, node.leader = True, node.name
    world.record(Activated(world.now_ms, node.name, node.disk.term))
    tip = _read_to_the_end(world, node)
    if tip is None:
        return
    node.asked.clear()
    quorum = world.quorum
    node.machine = ControllerState(
        node_id=node.name,
        table=world.realm.table,
        quorum=quorum,
        finalized=tip.finalized,
        minimums=tip.minimums,
        registrations=_registrations(tip),
        is_enabled=node.start.is_migrated,
    )
    node.heard_by_node = dict.fromkeys(map(str, node.machine.registrations), world.now_ms)
    records: tuple[Record, ...] = ()
    if not world.realm.has_setting:
        logged = tip.finalized.level_of(world.realm.governing) if tip.finalized.epoch else None
        found = initial_level(FoundLog(logged_level=logged, formatted_level=world.realm.formatted))
        records = found.records
        if found.records:
            changes = {record.feature: record.level for record in found.records}
            finalized = node.machine.finalized.changed(changes)
            node.machine = replace(node.machine, finalized=finalized)
    # Also without records: batches of older terms are committed only with one of the new term.
    append(world, node, records)
    heard_voter(world, node, node, node.incarnation)
    world.later(node, _LOOK_MS, "sessions", node.disk.term)


def _read_to_the_end(world: World, node: Node) -> ReplicaState | None:
    """Return the state at the end of the log, committed or not; None if the controller resigns."""
    tip = replace(node.replica, is_active=True)
    node.replica = tip
    for offset in range(tip.next_offset, len(node.disk.log)):
        records = node.disk.log[offset].records
        tip, commands = replica_step(tip, BatchRead(offset=offset, records=records))
        for command in commands:
            if isinstance(command, LeaveCluster):
                leave_cluster(world, node, command)
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


def append(world: World, node: Node, records: tuple[Record, ...]) -> None:
    """Append a batch and replicate it."""
    node.disk.log.append(Batch(node.disk.term, records))
    world.later(node, 0, "spread")


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


def heard_voter(world: World, node: Node, peer: Node, incarnation: int) -> None:
    """Record a response of a controller; after a restart it is registered again."""
    if node.machine is None or incarnation != peer.incarnation:
        return
    node.heard_by_node[peer.name] = world.now_ms
    row = node.machine.registrations.get(peer.name)
    asked = (peer.name, incarnation, node.machine.finalized.epoch)
    if (row is None or row.incarnation != incarnation) and asked not in node.asked:
        node.asked.add(asked)
        step(world, node, NodeRegistered(node=peer.support, incarnation=incarnation))
    if row is not None and row.is_live and not row.is_fenced:
        return
    heard = NodeHeard(node_id=peer.name, incarnation=incarnation, is_caught_up=True)
    step(world, node, heard)


def on_sessions(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """Timer: fence the nodes whose session has expired."""
    if not node.is_active or node.disk.term != data[0]:
        return
    world.later(node, _LOOK_MS, "sessions", node.disk.term)
    node.heard_by_node[node.name] = world.now_ms
    for name, heard_ms in sorted(node.heard_by_node.items()):
        row = node.machine.registrations.get(name) if node.machine else None
        if row is not None and row.is_live and world.now_ms - heard_ms > SESSION_MS:
            step(world, node, NodeSilent(node_id=name))


def on_register(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """A broker requests its registration."""
    name, incarnation, support = data
    if node.machine is None or world.by_name[name].incarnation != incarnation:
        return
    node.heard_by_node[name] = world.now_ms
    row = node.machine.registrations.get(name)
    if row is not None and row.incarnation == incarnation:
        when_committed(node, lambda: _tell(world, node, name, incarnation))
    else:
        step(world, node, NodeRegistered(node=support, incarnation=incarnation))


def on_unregister(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """A broker unregisters."""
    name, incarnation = data
    row = node.machine.registrations.get(name) if node.machine else None
    if row is None or row.incarnation != incarnation:
        return
    world.record(Unregistered(world.now_ms, name))
    step(world, node, NodeUnregistered(node_id=name))
    gone = Entry(kind="broker", key=name, fields={"incarnation": incarnation})
    append(world, node, (ContentRecord(entry=gone),))


def step(world: World, node: Node, event: ControllerEvent) -> UpdateOutcome | None:
    """Run the state machine with an event and do its commands; return the outcome of an update."""
    if node.machine is None:
        return None
    outcome = None
    node.machine, commands = controller_step(node.machine, event)
    for command in commands:
        match command:
            case AcceptNode():
                _accept(world, node, command)
            case RejectNode(node_id=name, why=why):
                _reject(world, str(name), why)
            case UnfenceNode(node_id=name) | FenceNode(node_id=name):
                is_fenced = isinstance(command, FenceNode)
                _set_fence(world, node, str(name), is_fenced=is_fenced)
            case AppendRecords(records=records):
                append(world, node, records)
            case AnswerUpdate(outcome=answered):
                outcome = answered
    return outcome


def _reject(world: World, name: str, why: str) -> None:
    peer = world.by_name[name]
    if not peer.is_rejected:
        world.record(Rejected(world.now_ms, name, why))
    if peer.role is Role.BROKER:
        world.send(peer, "rejected", peer.incarnation, why)


def _accept(world: World, node: Node, command: AcceptNode) -> None:
    peer = world.by_name[str(command.node_id)]
    if peer.role is not Role.BROKER:
        return
    fields = {"incarnation": command.incarnation, "support": peer.support, "is_fenced": True}
    entry = Entry(kind="broker", key=peer.name, fields=fields)
    append(world, node, (ContentRecord(entry=entry),))
    when_committed(node, lambda: _tell(world, node, peer.name, command.incarnation))


def _set_fence(world: World, node: Node, name: str, *, is_fenced: bool) -> None:
    """Append to the log whether a broker is fenced; controllers are not fenced."""
    row = node.machine.registrations.get(name) if node.machine else None
    if row is None or row.node.role is not Role.BROKER:
        return
    fields = {"incarnation": row.incarnation, "support": row.node, "is_fenced": is_fenced}
    append(world, node, (ContentRecord(entry=Entry(kind="broker", key=name, fields=fields)),))
    event = Silenced if is_fenced else Unfenced
    when_committed(node, lambda: world.record(event(world.now_ms, name)))


def _tell(world: World, node: Node, name: str, incarnation: int) -> None:
    """Tell a broker that its registration is committed, and up to which offset it has to read."""
    peer = world.by_name[name]
    if peer.is_up and peer.incarnation == incarnation and not peer.is_registered:
        world.record(Registered(world.now_ms, name))
        world.send(peer, "registered", incarnation, node.commit)


def ask_update(world: World, node: Node, number: int, request: UpdateRequest) -> UpdateOutcome:
    """Let the active controller decide on a request; record the request and its outcome."""
    machine = node.machine
    if machine is None:
        raise ValueError(f"{node.name} is not the active controller; send it to the active one")
    voters = {
        str(node.node_id): node.ranges
        for node in machine.view.nodes
        if node.role is Role.CONTROLLER
    }
    outcome = step(world, node, UpdateAsked(request=request))
    if outcome is None:
        raise ValueError(f"{node.name} did not answer request {number}; a row is missing")
    result = next((row for row in outcome.results if not row.ok), None) or outcome.results[0]
    world.record(
        Asked(
            at_ms=world.now_ms,
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
