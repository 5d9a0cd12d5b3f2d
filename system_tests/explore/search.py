"""The search: every state that can be reached, with as few operator actions as possible.

States are visited by the number of operator actions (a crash counts as one) on the way to them; so
the first that breaks a rule is reached by a shortest runbook. A state is kept as a world that can
be copied, and forgotten for its key once it has been expanded.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from system_tests.explore.bounds import Bounds
from system_tests.explore.issues import Finding, issue_of
from system_tests.explore.key import Key, Keys
from system_tests.explore.liveness import endless, judge, way_round
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
from system_tests.sim import (
    Answered,
    Broken,
    Evidence,
    Happening,
    Plan,
    check_dimensions,
    check_step,
)

_WALKED_CYCLES = 50
_GARBAGE = 500_000


class Node(NamedTuple):
    """A state on the frontier; `recent` is what happened from the last answer of a leader on."""

    world: StillWorld
    evidence: Evidence
    progress: Progress
    recent: tuple[Happening, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding, and how it was reached: after these moves the rule was broken.

    Attributes:
        finding: what broke; issue: what history calls it, or None.
        moves: from the beginning on; around: the moves of a cycle after them.
    """

    finding: Finding
    issue: str | None
    moves: tuple[Move, ...]
    around: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What a search has seen.

    Attributes:
        states, transitions: counted; stopped: why there is more than was seen, or None.
        found: for each broken rule, and issue behind it, a shortest way to it.
    """

    states: int
    transitions: int
    stopped: str | None
    found: tuple[Found, ...]

    @property
    def complete(self) -> bool:
        """Tell whether that is all there is."""
        return self.stopped is None


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
    evidence = Evidence(partitions=frozenset(world.task_of))
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


class Search:
    """One search while it runs."""

    def __init__(
        self,
        plan: Plan,
        bounds: Bounds,
        *,
        issue: str | None = None,
        wanted: frozenset[tuple[str, str | None]] = frozenset(),
    ) -> None:
        """Begin where the group has come to rest.

        Args:
            plan: what the operator does.
            bounds: how far to look.
            issue: stop as soon as this one is found.
            wanted: stop as soon as all of these rules, each with its issue, are found.
        """
        self.plan, self.bounds, self.issue, self.wanted = plan, bounds, issue, wanted
        self.keys = Keys(symmetric=bounds.symmetric and not bounds.dimensions.routes)
        self.transitions = 0
        self.known: dict[Key, int] = {}
        self.parents: list[tuple[int, Move] | None] = []
        self.successors: list[tuple[tuple[Move, int], ...]] = []
        self.found: dict[tuple[str, str | None], Found] = {}
        self.found_at = bounds.max_states  # states known when something was found first
        self.now: deque[tuple[int, Node]] = deque()
        self.later: deque[tuple[int, Node]] = deque()
        self.walked: set[int] = set()
        self.first = first_node(plan, bounds)
        self._reach(self.first, None, self.now)

    def run(self, is_out_of_time: Callable[[], bool]) -> Explored:
        """Visit every state within the bounds."""
        stopped = None
        while self.now or self.later:
            if stopped := self._why_stop(is_out_of_time):
                break
            if not self.now:
                self._find_cycles()  # whatever is added later takes one more action of an operator
                self.now, self.later = self.later, self.now
                continue
            state, node = self.now.popleft()
            self.successors[state] = tuple(self._expand(state, node))
            if state:
                node.world.release()
        if not self._is_enough():
            self._find_cycles()
        return Explored(
            states=len(self.known),
            transitions=self.transitions,
            stopped=stopped,
            found=tuple(self.found.values()),
        )

    def _why_stop(self, is_out_of_time: Callable[[], bool]) -> str | None:
        states, bounds = len(self.known), self.bounds
        if self._is_enough():
            return f"{self.issue or 'all that was looked for'} is found"
        if states > bounds.max_states:
            return f"more than {bounds.max_states} states (--max-states)"
        looks_for_one = self.issue is not None or bool(self.wanted)
        if not looks_for_one and states > self.found_at + bounds.more_states:
            return f"{bounds.more_states} states more than the first finding (--more-states)"
        return "the time is up (--timeout)" if is_out_of_time() else None

    def _is_enough(self) -> bool:
        if self.wanted:
            return self.wanted <= self.found.keys()
        return self.issue is not None and any(issue == self.issue for _, issue in self.found)

    def _expand(self, state: int, node: Node) -> Iterator[tuple[Move, int]]:
        """Take every move from a state; yields those that happen by themselves."""
        world, plan = node.world, self.plan
        moves = group_moves(world, reduced=self.bounds.reduced)
        rests = not moves and world.is_at_rest()
        if not moves:
            for broken in judge(world, node.evidence, node.progress, plan, rests=rests):
                self._find(Finding(broken=broken, recent=node.recent), state)
        for move in moves + operator_moves(world, node.progress, plan, rests=rests):
            is_action = move.kind in OPERATOR
            for step in steps(node, plan, move, reduced=self.bounds.reduced):
                self.transitions += 1
                for finding in step.found:
                    self._find(finding, state, step.move)
                if step.found:
                    continue  # what comes after a broken rule proves nothing
                frontier = self.later if is_action else self.now
                reached = self._reach(step.node, (state, step.move), frontier)
                if not is_action:
                    yield step.move, reached

    def _reach(
        self, node: Node, parent: tuple[int, Move] | None, frontier: deque[tuple[int, Node]]
    ) -> int:
        key = self.keys.key_of(node.world, node.evidence, node.progress)
        state = self.known.setdefault(key, len(self.known))
        if state == len(self.parents):
            self.parents.append(parent)
            self.successors.append(())
            frontier.append((state, node))
        else:
            node.world.release()
        return state

    def _find(
        self, finding: Finding, state: int, *moves: Move, around: tuple[Move, ...] = ()
    ) -> None:
        rule, issue = finding.broken.rule, issue_of(finding)
        if (rule, issue) not in self.found:
            self.found_at = min(self.found_at, len(self.known))
            way = (*self._path(state), *moves)
            self.found[rule, issue] = Found(finding=finding, issue=issue, moves=way, around=around)

    def _path(self, state: int) -> list[Move]:
        moves: list[Move] = []
        while (parent := self.parents[state]) is not None:
            state, move = parent
            moves.append(move)
        return moves[::-1]

    def _find_cycles(self) -> None:
        """Look for runs that never end, and walk each kind once to see what happens in it."""
        cycles = [c for c in endless(self.successors) if not self.walked.intersection(c)]
        for members in cycles[:_WALKED_CYCLES]:
            self.walked.update(members)
            way = way_round(self.successors, members)
            path = self._path(members[0])
            taken = replay(self.first, self.plan, path, reduced=self.bounds.reduced)
            node = taken[-1].node if taken else self.first
            around: list[Move] = []
            trace: list[Happening] = []
            for state in way[1:]:
                step = self._step_to(node, state)
                node = step.node
                around.append(step.move)
                trace += step.trace
            why = f"after {len(around)} steps it is where it was, and so on for ever"
            broken = Broken(rule="settles", at_ms=0, sentence=f"the group never settles: {why}")
            finding = Finding(broken=broken, recent=tuple(trace), repeats=True)
            self._find(finding, members[0], around=tuple(around))

    def _step_to(self, node: Node, state: int) -> Step:
        """The step to a state; its letters may be others than when the state was first met."""
        for move in group_moves(node.world, reduced=self.bounds.reduced):
            for step in steps(node, self.plan, move, reduced=self.bounds.reduced):
                after = step.node
                key = self.keys.key_of(after.world, after.evidence, after.progress)
                if not step.found and self.known.get(key) == state:
                    return step
        raise LookupError(f"state {state} cannot be reached again; its key leaves something out")


def explore(
    plan: Plan,
    bounds: Bounds,
    *,
    issue: str | None = None,
    wanted: frozenset[tuple[str, str | None]] = frozenset(),
    is_out_of_time: Callable[[], bool] = lambda: False,
) -> Explored:
    """Visit every state that can be reached within the bounds.

    Args:
        plan: what the operator does.
        bounds: how far to look.
        issue: look for this one alone.
        wanted: look for these rules, each with its issue, alone; () looks for all.
        is_out_of_time: asked before each state; True ends the search where it is.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(_GARBAGE, *thresholds[1:])  # worlds are let go of by hand
    try:
        return Search(plan, bounds, issue=issue, wanted=wanted).run(is_out_of_time)
    finally:
        gc.set_threshold(*thresholds)


def replay(first: Node, plan: Plan, moves: Iterable[Move], *, reduced: bool = True) -> list[Step]:
    """Take the moves of a finding again, one after the other."""
    taken: list[Step] = []
    node = first
    for move in moves:
        taken.append(take(node, plan, move, reduced=reduced))
        node = taken[-1].node
    return taken
