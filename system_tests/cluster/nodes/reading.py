"""Nodes as readers of the log: runs `replica_step` and does its commands.

A node loads its own snapshot, then reads batches in order. A node that is more than one change of
levels behind loads the active controller's snapshot instead, as in KRaft.
"""

from dataclasses import replace
from typing import Any

from probing.features import FinalizedLevels, LevelRecord, ProtocolSetup, Role, decide_protocol
from system_tests.cluster.events import (
    Left,
    Loaded,
    Published,
    Resigned,
    Rewritten,
    SnapshotWritten,
    Spoke,
)
from system_tests.cluster.machines.replica import (
    BatchRead,
    LeaveCluster,
    PublishLevels,
    Renegotiate,
    ReplicaCommand,
    ReplicaState,
    RewriteState,
    Snapshot,
    WriteSnapshot,
    check_levels,
    load_snapshot,
    replica_step,
)
from system_tests.cluster.machines.roles import Reaction
from system_tests.cluster.nodes.programs import MIGRATION
from system_tests.cluster.nodes.simulation import Cluster, Node

_PREVIEW = 1


def first_levels(cluster: Cluster) -> FinalizedLevels:
    """Return the levels of an empty log: none, or level 1 in a preview cluster."""
    realm = cluster.realm
    if realm.has_setting or realm.formatted is not None:
        return FinalizedLevels()
    return FinalizedLevels(levels={realm.governing: _PREVIEW})


def start_reader(cluster: Cluster, node: Node) -> None:
    """Load the snapshot on disk and check its levels before anything else (KIP-584, start-up)."""
    state = ReplicaState(
        role=node.role,
        ranges=node.ranges,
        schema=cluster.realm.schema,
        is_enabled=node.start.is_migrated,
        finalized=first_levels(cluster),
    )
    if node.disk.snapshot is not None:
        state = load_snapshot(state, node.disk.snapshot)
    node.replica = state
    leave = check_levels(state, state.finalized.levels)
    if leave is not None:
        leave_cluster(cluster, node, leave)
        return
    if node.disk.snapshot is not None:
        _record_load(cluster, node, node.disk.snapshot)
    _publish(cluster, node, state.finalized)
    renegotiate(cluster, node)


def read_up_to(cluster: Cluster, node: Node, end: int) -> None:
    """Read the committed batches of the own log up to an offset."""
    while node.is_up and node.replica.next_offset < end:
        offset = node.replica.next_offset
        read_batch(cluster, node, offset, node.disk.log[offset].records)


def read_batch(cluster: Cluster, node: Node, offset: int, records: tuple[Any, ...]) -> None:
    """Read one committed batch."""
    event = BatchRead(offset=offset, records=records)
    node.replica, commands = replica_step(node.replica, event)
    for command in commands:
        if node.is_up:
            _perform(cluster, node, command)


def _perform(cluster: Cluster, node: Node, command: ReplicaCommand) -> None:
    match command:
        case WriteSnapshot(snapshot=snapshot):
            node.disk.snapshot = snapshot
            cluster.record(
                SnapshotWritten(cluster.now_ms, node.name, snapshot.end_offset, snapshot.finalized)
            )
        case RewriteState(snapshot=snapshot, dropped=dropped):
            node.disk.snapshot = snapshot
            cluster.record(
                Rewritten(cluster.now_ms, node.name, snapshot.finalized, snapshot.entries, dropped)
            )
        case PublishLevels(finalized=finalized):
            _publish(cluster, node, finalized)
        case Renegotiate():
            renegotiate(cluster, node)
        case LeaveCluster():
            leave_cluster(cluster, node, command)


def leave_cluster(cluster: Cluster, node: Node, command: LeaveCluster) -> None:
    """Resign or unregister if the rule says so, then stop."""
    cluster.record(Left(cluster.now_ms, node.name, command.why, command.reaction.value))
    if command.reaction is Reaction.RESIGN:
        node.is_elected = False
        cluster.record(Resigned(cluster.now_ms, node.name))
    if command.reaction is Reaction.UNREGISTER:
        active = cluster.active()
        if active is not None:
            cluster.send(active, "unregister", node.name, node.incarnation)
    cluster.stop(node, "ended")


def _publish(cluster: Cluster, node: Node, finalized: FinalizedLevels) -> None:
    node.published = finalized
    cluster.record(Published(cluster.now_ms, node.name, finalized))
    if cluster.realm.has_setting:
        cluster.record(Spoke(cluster.now_ms, node.name, "", protocol_level(node)))


def protocol_level(node: Node) -> int:
    """Return the level at which a node with a static setting sends (KIP-584, phases 1 to 4)."""
    flag = node.published.level_of(node.replica.schema.feature)
    setup = ProtocolSetup(setting=node.start.setting, migration=MIGRATION, flag=flag)
    return decide_protocol(setup).level


def renegotiate(cluster: Cluster, node: Node) -> None:
    """Ask every peer for its level; until it answers, its previous level is used."""
    if cluster.realm.has_setting:
        return
    for peer in cluster.nodes:
        if peer.is_up and peer.name != node.name:
            _tell_level(cluster, node, peer, is_answer=False)


def _tell_level(cluster: Cluster, node: Node, peer: Node, *, is_answer: bool) -> None:
    level = node.published.level_of(cluster.realm.governing)
    epoch = (node.incarnation, node.published.epoch)
    cluster.send(peer, "ask", peer.incarnation, node.name, epoch, level, is_answer)


def on_ask(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """A node receives the level of a peer, and answers with its own if it was asked."""
    incarnation, name, epoch, level, is_answer = data
    if incarnation != node.incarnation:
        return
    node.peers[name] = max(node.peers.get(name, (epoch, level)), (epoch, level))
    common = min(node.peers[name][1], node.published.level_of(cluster.realm.governing))
    if node.spoken.get(name) != common:
        node.spoken[name] = common
        cluster.record(Spoke(cluster.now_ms, node.name, name, common))
    if not is_answer:
        _tell_level(cluster, node, cluster.by_name[name], is_answer=True)


def install_snapshot(cluster: Cluster, node: Node, snapshot: Snapshot | None) -> None:
    """Load the active controller's snapshot if more than one change of levels was missed."""
    if snapshot is None or snapshot.end_offset <= node.replica.next_offset:
        return
    if snapshot.end_offset > node.commit and node.role is Role.CONTROLLER:
        return
    missed = cluster.committed[node.replica.next_offset : snapshot.end_offset]
    changes = sum(any(isinstance(row, LevelRecord) for row in batch.records) for batch in missed)
    if changes < 2:  # noqa: PLR2004 the last change is read from the log like any batch
        return
    loaded = load_snapshot(node.replica, snapshot)
    leave = check_levels(loaded, snapshot.finalized.levels)
    if leave is not None:
        node.replica = replace(node.replica, has_left=True)
        leave_cluster(cluster, node, leave)
        return
    node.replica, node.disk.snapshot = loaded, snapshot
    _record_load(cluster, node, snapshot)
    _publish(cluster, node, snapshot.finalized)
    renegotiate(cluster, node)


def _record_load(cluster: Cluster, node: Node, snapshot: Snapshot) -> None:
    cluster.record(
        Loaded(
            *(cluster.now_ms, node.name, snapshot.finalized, snapshot.end_offset, snapshot.entries)
        )
    )
