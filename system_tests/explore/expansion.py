"""What a state leads to: every move that is possible in it, each taken in a copy of its world.

A state is kept as a world that can be copied, and forgotten for its key once it was expanded.
"""

from collections.abc import Iterable
from typing import NamedTuple

from system_tests.explore.bounds import Bounds
from system_tests.explore.issues import Finding, issue_of
from system_tests.explore.key import Key, Keys
from system_tests.explore.liveness import judge
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
from system_tests.explore.world import StillWorld, still_setup
from system_tests.sim import Answered, Evidence, Happening, Plan, check_dimensions, check_step

Kind = tuple[str, str | None]
"""A broken rule, and the issue behind it."""


class Node(NamedTuple):
    """A state on the frontier; `recent` is what happened from the last answer of a leader on."""

    world: StillWorld
    evidence: Evidence
    progress: Progress
    recent: tuple[Happening, ...] = ()


def first_node(plan: Plan, bounds: Bounds) -> Node:
    """A group that runs the old release and has come to rest."""
    setup = still_setup(
        processes=bounds.members,
        threads=bounds.threads,
        static=bounds.static,
        partitions=bounds.partitions,
        dimensions=bounds.dimensions,
    )
    world = StillWorld(setup)
    for process in range(bounds.members):
        world.start(process, plan.old)
        world.settle_threads()
    while moves := group_moves(world, reduced=False):
        happen(world, moves[0])
        world.settle_threads()
    evidence = Evidence(task_of=world.task_of)
    for happening in world.trace:
        evidence.add(happening)
    world.trace.clear()
    return Node(world, evidence, Progress(stages=(0,) * bounds.members, crashes=bounds.crashes))


class Step(NamedTuple):
    """What a move leads to, what happened in it, and which rules it broke."""

    move: Move
    node: Node
    trace: tuple[Happening, ...]
    found: tuple[Finding, ...]


def take(node: Node, plan: Plan, move: Move, *, reduced: bool = True) -> Step:
    """Take one move from a state, which stays as it is."""
    world, evidence, progress = node.world.copy(), node.evidence.copy(), node.progress
    world.next_leaders = (move.leader,) if move.leader else ()
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
    for one in trace:
        recent = (one,) if isinstance(one, Answered) else (*recent, one)
        broken = check_step(evidence, one) + (check_dimensions(one) if has_dimensions else [])
        found += [Finding(broken=b, recent=recent) for b in broken]
    return Step(move, Node(world, evidence, progress, recent), trace, tuple(found))


def steps(node: Node, plan: Plan, move: Move, *, reduced: bool = True) -> list[Step]:
    """Take one move, once for each leader that the coordinator may take in it."""
    first = take(node, plan, move, reduced=reduced)
    asked = first.node.world.asked if not move.leader else ()
    led = (move._replace(leader=name) for name in dict.fromkeys(asked) if name != asked[0])
    return [first, *(take(node, plan, one, reduced=reduced) for one in led)]


def replay(first: Node, plan: Plan, moves: Iterable[Move], *, reduced: bool = True) -> list[Step]:
    """Take the moves of a finding again, one after the other."""
    taken: list[Step] = []
    node = first
    for move in moves:
        taken.append(take(node, plan, move, reduced=reduced))
        node = taken[-1].node
    return taken


class Outcome(NamedTuple):
    """What a move leads to, without the world.

    Attributes:
        move: the move.
        key: of the state that it leads to; b"" if it breaks a rule.
        kinds: of what it breaks.
        is_held: the expander has a world for this key from now on; it has been met for the first
            time.
    """

    move: Move
    key: Key
    kinds: tuple[Kind, ...] = ()
    is_held: bool = False


class Expanded(NamedTuple):
    """What a state breaks by being at rest, and what every move from it leads to."""

    kinds: tuple[Kind, ...]
    outcomes: tuple[Outcome, ...]


class Expander:
    """Keeps worlds by the keys of their states until these are expanded."""

    def __init__(self, plan: Plan, bounds: Bounds, first: Node) -> None:
        """Begin with one state.

        Args:
            plan: what the operator does.
            bounds: how far to look.
            first: where; its world stays usable.
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
        """Let go of all worlds but these."""
        self.held = {key: node for key, node in self.held.items() if key in wanted}

    def drop(self, keys: Iterable[Key]) -> None:
        """Let go of worlds whose states were met before by somebody else."""
        for key in keys:
            node = self.held.pop(key, None)
            if node is not None:
                node.world.release()

    def expand(self, key: Key) -> Expanded:
        """Take every move from a state, and let go of its world."""
        node, plan, reduced = self.held.pop(key), self.plan, self.bounds.reduced
        moves = group_moves(node.world, reduced=reduced)
        rests = not moves and node.world.is_at_rest()
        outcomes: list[Outcome] = []
        for move in moves + operator_moves(node.world, node.progress, plan, rests=rests):
            outcomes += map(self._reach, steps(node, plan, move, reduced=reduced))
        kinds = [kind_of(one) for one in judged(node, plan, rests=rests)] if not moves else []
        if key != self.first:
            node.world.release()
        return Expanded(tuple(kinds), tuple(outcomes))

    def _reach(self, step: Step) -> Outcome:
        node = step.node
        if step.found:  # what comes after a broken rule proves nothing
            node.world.release()
            return Outcome(step.move, b"", tuple(map(kind_of, step.found)))
        key = self.key_of(node)
        is_new = key not in self.seen
        if is_new:
            self.seen.add(key)
            self.held[key] = node
        else:
            node.world.release()
        return Outcome(step.move, key, (), is_new)


def judged(node: Node, plan: Plan, *, rests: bool) -> list[Finding]:
    """Return what a state breaks in which nothing happens any more by itself."""
    broken = judge(node.world, node.evidence, node.progress, plan, rests=rests)
    return [Finding(broken=one, recent=node.recent) for one in broken]


def kind_of(finding: Finding) -> Kind:
    """Return the broken rule, and the issue behind it."""
    return finding.broken.rule, issue_of(finding)
