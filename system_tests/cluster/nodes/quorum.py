"""The quorum of controllers: the active one appends to the log, the others replicate it.

A batch is committed when a majority holds it. A committed batch is never lost; an uncommitted one
may be. KRaft's election is not simulated: if no controller is active and a majority runs, the one
with the longest log becomes active. It may then read an unsupported level in a batch that was
never committed.
"""

from typing import Any, Final

from system_tests.cluster.events import Committed
from system_tests.cluster.nodes.controller import activate, heard_voter, settle_waiting
from system_tests.cluster.nodes.reading import install_snapshot, read_up_to
from system_tests.cluster.nodes.simulation import Batch, Cluster, Node

_REPLICATE_MS: Final = 500
_TAKEOVER_MS: Final = (1_200, 2_400)
_BATCHES: Final = 50
_AGREES: Final = "agrees"
_DIFFERS: Final = "differs"


def start_voter(cluster: Cluster, node: Node) -> None:
    """Start as an inactive controller."""
    if node.disk.snapshot is not None:
        node.commit = node.disk.snapshot.end_offset
    _look_later(cluster, node)


def _look_later(cluster: Cluster, node: Node) -> None:
    cluster.later(node, cluster.scheduler.delay(*_TAKEOVER_MS), "takeover")


def _others(cluster: Cluster, node: Node) -> list[Node]:
    return [peer for peer in cluster.controllers if peer.name != node.name]


def _log_end(node: Node) -> tuple[int, int]:
    """Return (term of the last batch, length); the greatest log holds all committed batches."""
    return (node.disk.log[-1].term if node.disk.log else 0, len(node.disk.log))


def on_takeover(cluster: Cluster, node: Node, _data: tuple[Any, ...]) -> None:
    """Timer: become active if no controller is, a majority runs, and no log is longer."""
    _look_later(cluster, node)
    running = [peer for peer in cluster.controllers if peer.is_up]
    if cluster.active() is not None or cluster.now_ms - node.heard_ms < _TAKEOVER_MS[0]:
        return
    has_majority = len(running) > len(cluster.controllers) // 2
    if not has_majority or max(map(_log_end, running)) > _log_end(node):
        return
    cluster.term += 1
    node.disk.term = cluster.term
    node.next_by_peer = {peer.name: len(node.disk.log) for peer in _others(cluster, node)}
    node.match_by_peer = dict.fromkeys(node.next_by_peer, 0)
    activate(cluster, node)
    if node.is_active:
        cluster.later(node, _REPLICATE_MS, "replicate", node.disk.term)
        spread(cluster, node)


def on_replicate(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """Timer: send a heartbeat with missing batches to the other controllers."""
    if node.is_active and data[0] == node.disk.term:
        cluster.later(node, _REPLICATE_MS, "replicate", node.disk.term)
        spread(cluster, node)


def on_spread(cluster: Cluster, node: Node, _data: tuple[Any, ...]) -> None:
    """Replicate a batch that was appended."""
    if node.is_active:
        spread(cluster, node)


def spread(cluster: Cluster, node: Node) -> None:
    """Send every other controller its missing batches and the committed offset."""
    for peer in _others(cluster, node):
        _send_log(cluster, node, peer)
    _advance(cluster, node)


def _send_log(cluster: Cluster, node: Node, peer: Node) -> None:
    at = node.next_by_peer[peer.name]
    prev_term = node.disk.log[at - 1].term if at else 0
    batches = tuple(node.disk.log[at : at + _BATCHES])
    cluster.send(
        peer,
        "append",
        *(node.name, node.disk.term, at, prev_term, batches, node.commit, node.disk.snapshot),
    )


def on_append(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """A controller receives batches; conflicting batches of its log are removed."""
    name, term, at, prev_term, batches, commit, snapshot = data
    active = cluster.by_name[name]
    log = node.disk.log
    if term < node.disk.term:
        return  # sent before another controller became active
    node.disk.term, node.leader, node.heard_ms = term, name, cluster.now_ms
    if at > len(log) or (at and log[at - 1].term != prev_term):
        hint = min(len(log), at - 1)
        cluster.send(active, "appended", node.name, node.incarnation, term, _DIFFERS, hint)
        return
    _take(log, at, batches)
    match = at + len(batches)
    node.commit = max(node.commit, min(commit, match))
    install_snapshot(cluster, node, snapshot)
    if node.is_up:
        read_up_to(cluster, node, node.commit)
    if node.is_up:
        cluster.send(active, "appended", node.name, node.incarnation, term, _AGREES, match)


def _take(log: list[Batch], at: int, batches: tuple[Batch, ...]) -> None:
    for place, batch in enumerate(batches, start=at):
        if place < len(log) and log[place].term != batch.term:
            del log[place:]
        if place == len(log):
            log.append(batch)


def on_appended(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """The active controller receives how far the log of another one agrees."""
    name, incarnation, term, vote, match = data
    if not node.is_active or term < node.disk.term:
        return
    peer = cluster.by_name[name]
    node.next_by_peer[name] = match
    if vote == _AGREES:
        node.match_by_peer[name] = max(node.match_by_peer[name], match)
    heard_voter(cluster, node, peer, incarnation)
    if node.is_active and node.next_by_peer[name] < len(node.disk.log):
        _send_log(cluster, node, peer)
    _advance(cluster, node)


def _advance(cluster: Cluster, node: Node) -> None:
    """Commit up to the last batch that a majority has, if it is of the current term."""
    if not node.is_active:
        return
    lengths = sorted((*node.match_by_peer.values(), len(node.disk.log)))
    held = lengths[(len(lengths) - 1) // 2]
    if held <= node.commit or node.disk.log[held - 1].term != node.disk.term:
        return
    _note_committed(cluster, node, held)
    node.commit = held
    read_up_to(cluster, node, held)
    if node.is_active:
        settle_waiting(node)
        for peer in _others(cluster, node):
            _send_log(cluster, node, peer)


def _note_committed(cluster: Cluster, node: Node, end: int) -> None:
    for offset in range(min(node.commit, len(cluster.committed)), end):
        batch = node.disk.log[offset]
        if offset == len(cluster.committed):
            cluster.committed.append(batch)
            cluster.record(Committed(cluster.now_ms, node.name, offset, batch.records))
