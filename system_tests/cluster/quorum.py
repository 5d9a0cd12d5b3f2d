"""The quorum of controllers: elections by term, a log that a majority holds, batches in order.

The rules are those of Raft, as KRaft has them (KIP-595), with what matters for levels: a batch that
is not committed may be lost with its controller, a committed one never; who wakes up with an old
term is no longer active; an active controller may come to read a level that it does not support.
"""

from dataclasses import replace
from typing import Any, Final

from system_tests.cluster.controller import activate, heard_voter, settle_waiting
from system_tests.cluster.events import Committed, Diverged
from system_tests.cluster.reading import install_snapshot, read_up_to
from system_tests.cluster.simulation import Batch, Node, Office, World

_BEAT_MS: Final = 500
_ELECTION_MS: Final = (1_200, 2_400)
_BATCHES: Final = 50
_AGREES: Final = "agrees"
_DIFFERS: Final = "differs"


def start_voter(world: World, node: Node) -> None:
    """Begin as a follower that waits to hear of an active controller."""
    if node.disk.snapshot is not None:
        node.commit = node.disk.snapshot.end_offset
    _arm(world, node)


def _arm(world: World, node: Node) -> None:
    world.later(node, world.scheduler.delay(*_ELECTION_MS), "elect")


def _others(world: World, node: Node) -> list[Node]:
    return [peer for peer in world.controllers if peer.name != node.name]


def _follow(node: Node, term: int, leader: str = "") -> None:
    """Give up whatever office one has, for a term that is at least as new."""
    if term > node.disk.term:
        node.disk.term, node.disk.voted_for = term, ""
    node.office, node.leader, node.machine = Office.FOLLOWER, leader, None
    node.waiting.clear()
    if node.replica.is_active:
        node.replica = replace(node.replica, is_active=False)


def on_elect(world: World, node: Node, _data: tuple[Any, ...]) -> None:
    """A timer: nothing was heard of an active controller for long, so stand for election."""
    _arm(world, node)
    if node.office is Office.ACTIVE or world.now_ms - node.heard_ms < _ELECTION_MS[0]:
        return
    node.office, node.leader = Office.CANDIDATE, ""
    node.disk.term += 1
    node.disk.voted_for = node.name
    node.votes = {node.name}
    last_term = node.disk.log[-1].term if node.disk.log else 0
    for peer in _others(world, node):
        world.send(peer, "vote", node.name, node.disk.term, last_term, len(node.disk.log))
    _count(world, node)


def on_vote(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """A candidate asks for a vote: yes to the first of a term whose log is not behind ours."""
    name, term, last_term, length = data
    if term > node.disk.term:
        _follow(node, term)
    mine = (node.disk.log[-1].term if node.disk.log else 0, len(node.disk.log))
    grants = (
        term == node.disk.term and node.disk.voted_for in ("", name) and (last_term, length) >= mine
    )
    if grants:
        node.disk.voted_for, node.heard_ms = name, world.now_ms
    world.send(world.by_name[name], "voted", node.name, node.disk.term, grants)


def on_voted(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """A vote comes back."""
    name, term, granted = data
    if term > node.disk.term:
        _follow(node, term)
    elif node.office is Office.CANDIDATE and term == node.disk.term and granted:
        node.votes.add(name)
        _count(world, node)


def _count(world: World, node: Node) -> None:
    if len(node.votes) <= len(world.controllers) // 2:
        return
    node.next_by_peer = {peer.name: len(node.disk.log) for peer in _others(world, node)}
    node.match_by_peer = dict.fromkeys(node.next_by_peer, 0)
    activate(world, node)
    if node.is_active:
        world.later(node, _BEAT_MS, "beat", node.disk.term)
        spread(world, node)


def on_beat(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """A timer: let the others know that one is there, and of what they lack."""
    if node.office is Office.ACTIVE and data[0] == node.disk.term:
        world.later(node, _BEAT_MS, "beat", node.disk.term)
        spread(world, node)


def on_spread(world: World, node: Node, _data: tuple[Any, ...]) -> None:
    """Something was appended."""
    if node.office is Office.ACTIVE:
        spread(world, node)


def spread(world: World, node: Node) -> None:
    """Send every other controller what it lacks of the log, and how far it is committed."""
    for peer in _others(world, node):
        _send_log(world, node, peer)
    _advance(world, node)


def _send_log(world: World, node: Node, peer: Node) -> None:
    at = node.next_by_peer[peer.name]
    prev_term = node.disk.log[at - 1].term if at else 0
    batches = tuple(node.disk.log[at : at + _BATCHES])
    world.send(
        peer,
        "append",
        *(node.name, node.disk.term, at, prev_term, batches, node.commit, node.disk.snapshot),
    )


def on_append(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """The active controller sends batches; those that contradict them are taken back."""
    name, term, at, prev_term, batches, commit, snapshot = data
    active = world.by_name[name]
    log = node.disk.log
    if term < node.disk.term:
        world.send(active, "appended", node.name, node.incarnation, node.disk.term, _DIFFERS, 0)
        return
    _follow(node, term, name)
    node.heard_ms = world.now_ms
    if at > len(log) or (at and log[at - 1].term != prev_term):
        hint = min(len(log), at - 1)
        world.send(active, "appended", node.name, node.incarnation, term, _DIFFERS, hint)
        return
    _take(log, at, batches)
    match = at + len(batches)
    node.commit = max(node.commit, min(commit, match))
    install_snapshot(world, node, snapshot)
    if node.is_up:
        read_up_to(world, node, node.commit)
    if node.is_up:
        world.send(active, "appended", node.name, node.incarnation, term, _AGREES, match)


def _take(log: list[Batch], at: int, batches: tuple[Batch, ...]) -> None:
    for place, batch in enumerate(batches, start=at):
        if place < len(log) and log[place].term != batch.term:
            del log[place:]
        if place == len(log):
            log.append(batch)


def on_appended(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """A controller answers how far its log agrees."""
    name, incarnation, term, said, match = data
    if term > node.disk.term:
        _follow(node, term)
        return
    if node.office is not Office.ACTIVE or term < node.disk.term:
        return
    peer = world.by_name[name]
    node.next_by_peer[name] = match
    if said == _AGREES:
        node.match_by_peer[name] = max(node.match_by_peer[name], match)
    heard_voter(world, node, peer, incarnation)
    if node.is_active and node.next_by_peer[name] < len(node.disk.log):
        _send_log(world, node, peer)
    _advance(world, node)


def _advance(world: World, node: Node) -> None:
    """Commit what a majority has, if it is of this term: then all before it is theirs too."""
    if not node.is_active:
        return
    lengths = sorted((*node.match_by_peer.values(), len(node.disk.log)))
    held = lengths[(len(lengths) - 1) // 2]
    if held <= node.commit or node.disk.log[held - 1].term != node.disk.term:
        return
    _note_committed(world, node, held)
    node.commit = held
    read_up_to(world, node, held)
    if node.is_active:
        settle_waiting(node)
        for peer in _others(world, node):
            _send_log(world, node, peer)


def _note_committed(world: World, node: Node, end: int) -> None:
    for offset in range(min(node.commit, len(world.committed)), end):
        batch = node.disk.log[offset]
        if offset == len(world.committed):
            world.committed.append(batch)
            world.record(Committed(world.now_ms, node.name, offset, batch.records))
        elif world.committed[offset] != batch:
            world.record(Diverged(world.now_ms, node.name, offset))
