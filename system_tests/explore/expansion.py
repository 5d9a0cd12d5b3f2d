"""Expansion of states: each possible move is taken in a copy of the state's simulated world.

A state is kept as a world until it is expanded. After that only its key is kept.
"""

from collections.abc import Iterable
from typing import NamedTuple

from system_tests.explore.bounds import Bounds
from system_tests.explore.issues import Finding, issue_of
from system_tests.explore.key import Key, Keys
from system_tests.explore.liveness import liveness_violations
from system_tests.explore.moves import (
    OPERATOR,
    Move,
    Progress,
    act,
    group_moves,
    happen,
    operator_moves,
    send_at_once,
)
from system_tests.explore.world import SearchWorld, search_setup
from system_tests.sim import Answered, Evidence, Happening, Plan, check_dimensions, check_step

Kind = tuple[str, str | None]
"""The broken rule, and the id of the issue that caused it; None if the issue is unknown."""


class Node(NamedTuple):
    """A state that is not expanded yet; `recent` holds the events since the last assignment."""

    world: SearchWorld
    evidence: Evidence
    progress: Progress
    recent: tuple[Happening, ...] = ()


def first_node(plan: Plan, bounds: Bounds) -> Node:
    """Return the first state: a stable group in which every member runs the old release."""
    setup = search_setup(
        processes=bounds.members,
        threads=bounds.threads,
        static=bounds.static,
        partitions=bounds.partitions,
        dimensions=bounds.dimensions,
    )
    world = SearchWorld(setup)
    for process in range(bounds.members):
        world.start(process, plan.old)
        world.settle_threads()
    while moves := group_moves(world, reduced=False):
        happen(world, moves[0])
        world.settle_threads()
    evidence = Evidence(task_of=world.task_of)
    for event in world.trace:
        evidence.add(event)
    world.trace.clear()
    return Node(world, evidence, Progress(stages=(0,) * bounds.members, crashes=bounds.crashes))


class Step(NamedTuple):
    """The result of a move: the next state, the events, and the rules that were broken."""

    move: Move
    node: Node
    trace: tuple[Happening, ...]
    found: tuple[Finding, ...]


def take(node: Node, plan: Plan, move: Move, *, reduced: bool = True) -> Step:
    """Return the result of one move; `node` is not changed."""
    world, evidence, progress = node.world.copy(), node.evidence.copy(), node.progress
    world.member_ids.next_leaders = (move.leader,) if move.leader else ()
    if move.kind in OPERATOR:
        progress = act(world, progress, plan, move)
    else:
        happen(world, move)
    world.settle_threads()
    if reduced:
        send_at_once(world, move)
    trace = tuple(world.trace)
    world.trace.clear()
    found: list[Finding] = []
    recent = node.recent
    has_dimensions = not world.setup.dimensions.is_default
    for event in trace:
        recent = (event,) if isinstance(event, Answered) else (*recent, event)
        broken = check_step(evidence, event) + (check_dimensions(event) if has_dimensions else [])
        found += [Finding(broken=b, recent=recent) for b in broken]
    return Step(move, Node(world, evidence, progress, recent), trace, tuple(found))


def steps(node: Node, plan: Plan, move: Move, *, reduced: bool = True) -> list[Step]:
    """Return the results of one move, one for each leader that the coordinator may choose."""
    first = take(node, plan, move, reduced=reduced)
    asked = first.node.world.member_ids.leader_candidates if not move.leader else ()
    led = (move._replace(leader=name) for name in dict.fromkeys(asked) if name != asked[0])
    return [first, *(take(node, plan, step, reduced=reduced) for step in led)]


def replay(first: Node, plan: Plan, moves: Iterable[Move], *, reduced: bool = True) -> list[Step]:
    """Return the results of the moves of a finding, taken one after the other."""
    taken: list[Step] = []
    node = first
    for move in moves:
        taken.append(take(node, plan, move, reduced=reduced))
        node = taken[-1].node
    return taken


class Outcome(NamedTuple):
    """The result of a move, without the simulated world.

    Attributes:
        move: the move.
        key: key of the next state; b"" if the move breaks a rule.
        kinds: the broken rules with their issues.
        is_held: the state is new to this expander, which now holds its world.
    """

    move: Move
    key: Key
    kinds: tuple[Kind, ...] = ()
    is_held: bool = False


class Expanded(NamedTuple):
    """An expanded state: rules that it breaks at rest, and the outcome of every move."""

    kinds: tuple[Kind, ...]
    outcomes: tuple[Outcome, ...]


class Expander:
    """Holds the worlds of states, by key, until the states are expanded."""

    def __init__(self, plan: Plan, bounds: Bounds, first: Node) -> None:
        """Hold the first state.

        Args:
            plan: the bounces of the operator.
            bounds: group and limits of the search.
            first: the first state; its world is never released.
        """
        self.plan, self.bounds = plan, bounds
        self.keys = Keys(symmetric=bounds.symmetric and not bounds.dimensions.routes)
        self.first = self.key_of(first)
        self.seen = {self.first}
        self.held = {self.first: first}

    def key_of(self, node: Node) -> Key:
        """Return the key of a state."""
        return self.keys.key_of(node.world, node.evidence, node.progress)

    def keep(self, wanted: set[Key]) -> None:
        """Drop all worlds except those of the wanted keys."""
        self.held = {key: node for key, node in self.held.items() if key in wanted}

    def drop(self, keys: Iterable[Key]) -> None:
        """Release the worlds of states that another process holds."""
        for key in keys:
            self.held.pop(key, None)

    def expand(self, key: Key) -> Expanded:
        """Return the outcomes of every move from a state, and release its world."""
        node, plan, reduced = self.held.pop(key), self.plan, self.bounds.reduced
        moves = group_moves(node.world, reduced=reduced)
        rests = not moves and node.world.is_at_rest()
        outcomes: list[Outcome] = []
        for move in moves + operator_moves(node.world, node.progress, plan, rests=rests):
            outcomes += map(self._reach, steps(node, plan, move, reduced=reduced))
        kinds = [] if moves else list(map(kind_of, findings_of(node, plan, rests=rests)))
        return Expanded(tuple(kinds), tuple(outcomes))

    def _reach(self, step: Step) -> Outcome:
        node = step.node
        if step.found:  # what comes after a broken rule proves nothing
            return Outcome(step.move, b"", tuple(map(kind_of, step.found)))
        key = self.key_of(node)
        is_new = key not in self.seen
        if is_new:
            self.seen.add(key)
            self.held[key] = node
        return Outcome(step.move, key, (), is_new)


def findings_of(node: Node, plan: Plan, *, rests: bool) -> list[Finding]:
    """Return the liveness rules that a state breaks in which no move happens by itself."""
    broken = liveness_violations(node.world, node.evidence, node.progress, plan, rests=rests)
    return [Finding(broken=violation, recent=node.recent) for violation in broken]


def kind_of(finding: Finding) -> Kind:
    """Return the broken rule and the id of its issue."""
    return finding.broken.rule, issue_of(finding)
