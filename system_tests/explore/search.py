"""The search: every state that can be reached, with as few operator actions as possible.

States are visited by the number of operator actions (a crash counts as one) on the way to them; so
the first that breaks a rule is reached by a shortest runbook. That number follows from how far the
operator is, which is part of a state: what happens by itself leads to states of the same number.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from system_tests.explore.bounds import Bounds
from system_tests.explore.expansion import (
    Expanded,
    Expander,
    Kind,
    Node,
    Outcome,
    Step,
    first_node,
    judged,
    kind_of,
    replay,
    steps,
    take,
)
from system_tests.explore.issues import Finding
from system_tests.explore.key import Key
from system_tests.explore.liveness import endless, way_round
from system_tests.explore.moves import OPERATOR, Move, group_moves
from system_tests.explore.workers import Workers
from system_tests.processes import can_fork
from system_tests.sim import Broken, Happening, Plan, rare_garbage

_WALKED_CYCLES = 50
_GARBAGE = 500_000
_WORTH_WORKERS = 400  # states that wait; most small searches never have so many


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a search is: states known, transitions taken, states that wait for expansion."""

    states: int
    transitions: int
    waiting: int


class Search:
    """One search while it runs."""

    def __init__(
        self,
        plan: Plan,
        bounds: Bounds,
        *,
        issue: str | None = None,
        wanted: frozenset[Kind] = frozenset(),
        workers: int = 1,
    ) -> None:
        """Begin where the group has come to rest.

        Args:
            plan: what the operator does.
            bounds: how far to look.
            issue: stop as soon as this one is found.
            wanted: stop as soon as all of these rules, each with its issue, are found.
            workers: processes.
        """
        self.plan, self.bounds, self.issue, self.wanted = plan, bounds, issue, wanted
        self.count = workers
        self.first = first_node(plan, bounds)
        self.here = Expander(plan, bounds, self.first)
        self.keys = self.here.keys
        self.workers: Workers | None = None
        self.transitions = 0
        self.known: dict[Key, int] = {self.here.first: 0}
        self.parents: list[tuple[int, Move] | None] = [None]
        self.successors: list[tuple[tuple[Move, int], ...]] = [()]
        self.found: dict[Kind, Found] = {}
        self.found_at = bounds.max_states  # states known when something was found first
        self.now: deque[tuple[int, Key]] = deque([(0, self.here.first)])
        self.later: deque[tuple[int, Key]] = deque()
        self.expanded: list[int] = []  # states whose cycles were not looked for
        self.cycles: list[list[int]] = []  # that were not walked
        self.walked: set[int] = set()

    def run(
        self,
        is_out_of_time: Callable[[], bool],
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Explored:
        """Visit every state within the bounds.

        Args:
            is_out_of_time: asked before each state; True ends the search where it is.
            on_progress: told before each state.

        Raises:
            WorkerLostError: a process of the search ended early.
        """
        stopped = None
        try:
            while self.now or self.later:
                if on_progress is not None:
                    on_progress(self._progress())
                if stopped := self._why_stop(is_out_of_time):
                    break
                if not self.now:
                    self._find_cycles()  # whatever is added later takes one more action
                    self.now, self.later = self.later, self.now
                    self._queue(*self.now)
                    continue
                self._start_workers()
                state, key = self.now.popleft()
                self._take_in(state, self._expand(state, key))
        finally:
            if self.workers:
                self.workers.close()
        if not self._is_enough():
            self._find_cycles()
        return Explored(
            states=len(self.known),
            transitions=self.transitions,
            stopped=stopped,
            found=tuple(self.found.values()),
        )

    def _progress(self) -> Progress:
        return Progress(
            states=len(self.known),
            transitions=self.transitions,
            waiting=len(self.now) + len(self.later),
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

    def _start_workers(self) -> None:
        """Share the work once there is enough of it."""
        if self.workers or self.count <= 1:
            return
        if len(self.now) + len(self.later) >= _WORTH_WORKERS and can_fork():
            self.workers = Workers(
                self.here, [key for _, key in (*self.now, *self.later)], self.count
            )
            self.here.keep(set())
            self.here.seen.clear()
            self._queue(*self.now)

    def _queue(self, *states: tuple[int, Key]) -> None:
        if self.workers:
            for _, key in states:
                self.workers.queue(key)

    def _expand(self, state: int, key: Key) -> Expanded:
        """What a state leads to."""
        expanded = self.workers.expand(key) if self.workers else self.here.expand(key)
        if expanded is None:  # what failed in a worker fails here as well, and can be seen
            again = Expander(self.plan, self.bounds, self._node(state))
            expanded = again.expand(again.first)
        return expanded

    def _take_in(self, state: int, expanded: Expanded) -> None:
        """Number the states that were reached, and note what was broken."""
        self.expanded.append(state)
        for kind in expanded.kinds:
            self._find(kind, state)
        by_themselves: list[tuple[Move, int]] = []
        for outcome in expanded.outcomes:
            self.transitions += 1
            for kind in outcome.kinds:
                self._find(kind, state, outcome.move)
            if not outcome.kinds:
                reached = self._reach(state, outcome)
                if outcome.move.kind not in OPERATOR:
                    by_themselves.append((outcome.move, reached))
        self.successors[state] = tuple(by_themselves)

    def _reach(self, state: int, outcome: Outcome) -> int:
        """Return the number of the state that was reached."""
        key, move = outcome.key, outcome.move
        reached = self.known.setdefault(key, len(self.known))
        if reached == len(self.parents):
            self.parents.append((state, move))
            self.successors.append(())
            is_action = move.kind in OPERATOR
            (self.later if is_action else self.now).append((reached, key))
            if self.workers:
                self.workers.claim(key)
                if not is_action:
                    self.workers.queue(key)
        elif outcome.is_held and self.workers:
            self.workers.drop(key)
        return reached

    def _find(self, kind: Kind, state: int, *moves: Move) -> None:
        """Note a finding, unless there is one of its kind, and see again what happened."""
        if kind in self.found:
            return
        self.found_at = min(self.found_at, len(self.known))
        node = self._node(state)
        if moves:
            findings = take(node, self.plan, moves[0], reduced=self.bounds.reduced).found
        else:
            findings = tuple(judged(node, self.plan, rests=node.world.is_at_rest()))
        self._add(next(one for one in findings if kind_of(one) == kind), state, *moves)

    def _add(
        self, finding: Finding, state: int, *moves: Move, around: tuple[Move, ...] = ()
    ) -> None:
        kind = kind_of(finding)
        if kind not in self.found:
            self.found_at = min(self.found_at, len(self.known))
            way = (*self._path(state), *moves)
            self.found[kind] = Found(finding=finding, issue=kind[1], moves=way, around=around)

    def _node(self, state: int) -> Node:
        """The state once more, by the way on which it was met first."""
        taken = replay(self.first, self.plan, self._path(state), reduced=self.bounds.reduced)
        return taken[-1].node if taken else self.first

    def _path(self, state: int) -> list[Move]:
        moves: list[Move] = []
        while (parent := self.parents[state]) is not None:
            state, move = parent
            moves.append(move)
        return moves[::-1]

    def _find_cycles(self) -> None:
        """Look for runs that never end, and walk each kind once to see what happens in it."""
        new = endless(self.successors, among=self.expanded)
        self.expanded = []
        cycles = sorted(c for c in self.cycles + new if not self.walked.intersection(c))
        self.cycles = cycles[_WALKED_CYCLES:]
        for members in cycles[:_WALKED_CYCLES]:
            self.walked.update(members)
            way = way_round(self.successors, members)
            node = self._node(members[0])
            around: list[Move] = []
            trace: list[Happening] = []
            for state in way[1:]:
                step = self._step_to(node, state)
                node = step.node
                around.append(step.move)
                trace += step.trace
            why = f"after {len(around)} steps it is in the same state again"
            broken = Broken(rule="settles", at_ms=0, sentence=f"the group never settles: {why}")
            finding = Finding(broken=broken, recent=tuple(trace), repeats=True)
            self._add(finding, members[0], around=tuple(around))

    def _step_to(self, node: Node, state: int) -> Step:
        """The step to a state; its letters may be others than when the state was first met."""
        for move in group_moves(node.world, reduced=self.bounds.reduced):
            for step in steps(node, self.plan, move, reduced=self.bounds.reduced):
                after = step.node
                if not step.found and self.known.get(self.here.key_of(after)) == state:
                    return step
        raise LookupError(f"state {state} cannot be reached again; its key leaves something out")


def explore(
    plan: Plan,
    bounds: Bounds,
    *,
    issue: str | None = None,
    wanted: frozenset[Kind] = frozenset(),
    workers: int = 1,
    is_out_of_time: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Explored:
    """Visit every state that can be reached within the bounds.

    Args:
        plan: what the operator does.
        bounds: how far to look.
        issue: look for this one alone.
        wanted: look for these rules, each with its issue, alone; () looks for all.
        workers: processes; what is found does not depend on their number.
        is_out_of_time: asked before each state; True ends the search where it is.
        on_progress: told before each state.

    Raises:
        WorkerLostError: a process of the search ended early.
    """
    with rare_garbage(_GARBAGE):  # worlds are let go of by hand
        search = Search(plan, bounds, issue=issue, wanted=wanted, workers=workers)
        return search.run(is_out_of_time, on_progress)
