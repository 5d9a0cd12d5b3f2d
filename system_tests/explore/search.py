"""The search: visits every reachable state, ordered by the number of operator actions.

A crash counts as an action. The first state that breaks a rule is therefore reached by a shortest
runbook. Moves without an operator lead to states with the same number of actions, since the
operator's progress is part of a state.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from assignor.workers import can_fork, rare_garbage
from system_tests.engine import Broken
from system_tests.explore.bounds import Bounds
from system_tests.explore.expansion import (
    Expanded,
    Expander,
    Kind,
    Node,
    Outcome,
    Step,
    findings_of,
    first_node,
    kind_of,
    replay,
    steps,
    take,
)
from system_tests.explore.issues import Finding
from system_tests.explore.key import Key
from system_tests.explore.liveness import endless_cycles, shortest_cycle
from system_tests.explore.moves import OPERATOR, Move, group_moves
from system_tests.explore.workers import Workers
from system_tests.sim import Happening, Plan

_WALKED_CYCLES = 50
_GARBAGE = 500_000
_WORTH_WORKERS = 400  # waiting states from which worker processes pay; small searches have fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A finding and the moves that lead to it.

    Attributes:
        finding: the broken rule.
        issue: id of the known issue, or None.
        moves: moves from the first state.
        cycle: moves after them that repeat without end; () if the finding is no cycle.
    """

    finding: Finding
    issue: str | None
    moves: tuple[Move, ...]
    cycle: tuple[Move, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """The result of a search.

    Attributes:
        states, transitions: number of visited states, and of moves taken.
        stopped: why the search ended early; None if it is complete.
        found: for each broken rule with its issue, a finding with a shortest runbook.
    """

    states: int
    transitions: int
    stopped: str | None
    found: tuple[Found, ...]

    @property
    def complete(self) -> bool:
        """Whether every reachable state was visited."""
        return self.stopped is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a search: known states, transitions taken, states that wait for expansion."""

    states: int
    transitions: int
    waiting: int


class Search:
    """A search that runs."""

    def __init__(
        self,
        plan: Plan,
        bounds: Bounds,
        *,
        issue: str | None = None,
        wanted: frozenset[Kind] = frozenset(),
        workers: int = 1,
    ) -> None:
        """Start from a stable group of the old release.

        Args:
            plan: bounces of the operator.
            bounds: group and limits of the search.
            issue: stop as soon as this issue is found.
            wanted: stop as soon as all of these rules, with their issues, are found.
            workers: number of processes.
        """
        self.plan, self.bounds, self.issue, self.wanted = plan, bounds, issue, wanted
        self.count = workers
        self.first = first_node(plan, bounds)
        self.expander = Expander(plan, bounds, self.first)
        self.keys = self.expander.keys
        self.workers: Workers | None = None
        self.transitions = 0
        self.known: dict[Key, int] = {self.expander.first: 0}
        self.parents: list[tuple[int, Move] | None] = [None]
        self.successors: list[tuple[tuple[Move, int], ...]] = [()]
        self.found: dict[Kind, Found] = {}
        self.found_at = bounds.max_states  # number of known states at the first finding
        self.now: deque[tuple[int, Key]] = deque([(0, self.expander.first)])
        self.later: deque[tuple[int, Key]] = deque()
        self.expanded: list[int] = []  # states that were not checked for cycles
        self.cycles: list[list[int]] = []  # cycles that were not walked
        self.walked: set[int] = set()

    def run(
        self,
        is_out_of_time: Callable[[], bool],
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Explored:
        """Visit every state within the bounds.

        Args:
            is_out_of_time: called before each state; True ends the search.
            on_progress: called before each state.

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
                    self._find_cycles()  # states that are added later need one more action
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
            return f"{self.issue or 'every wanted finding'} is found"
        if states > bounds.max_states:
            return f"stopped after {bounds.max_states:,} states (--max-states)"
        has_target = self.issue is not None or bool(self.wanted)
        if not has_target and states > self.found_at + bounds.more_states:
            more = f"{bounds.more_states:,} states after the first finding"
            return f"stopped {more} (--more-states)"
        return "stopped at the time limit (--timeout)" if is_out_of_time() else None

    def _is_enough(self) -> bool:
        if self.wanted:
            return self.wanted <= self.found.keys()
        return self.issue is not None and any(issue == self.issue for _, issue in self.found)

    def _start_workers(self) -> None:
        """Start worker processes once enough states wait."""
        if self.workers or self.count <= 1:
            return
        if len(self.now) + len(self.later) >= _WORTH_WORKERS and can_fork():
            self.workers = Workers(
                self.expander, [key for _, key in (*self.now, *self.later)], self.count
            )
            self.expander.keep(set())
            self.expander.seen.clear()
            self._queue(*self.now)

    def _queue(self, *states: tuple[int, Key]) -> None:
        if self.workers:
            for _, key in states:
                self.workers.queue(key)

    def _expand(self, state: int, key: Key) -> Expanded:
        """Return the expanded state; an error in a worker is raised here again."""
        expanded = self.workers.expand(key) if self.workers else self.expander.expand(key)
        if expanded is None:  # it failed in a worker: repeat it here, to raise the error
            again = Expander(self.plan, self.bounds, self._node(state))
            expanded = again.expand(again.first)
        return expanded

    def _take_in(self, state: int, expanded: Expanded) -> None:
        """Number the reached states and record the broken rules."""
        self.expanded.append(state)
        for kind in expanded.kinds:
            self._find(kind, state)
        successors: list[tuple[Move, int]] = []
        for outcome in expanded.outcomes:
            self.transitions += 1
            for kind in outcome.kinds:
                self._find(kind, state, outcome.move)
            if not outcome.kinds:
                reached = self._reach(state, outcome)
                if outcome.move.kind not in OPERATOR:
                    successors.append((outcome.move, reached))
        self.successors[state] = tuple(successors)

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
        """Record a finding, unless one of its kind is known; replay its moves for the events."""
        if kind in self.found:
            return
        self.found_at = min(self.found_at, len(self.known))
        node = self._node(state)
        if moves:
            findings = take(node, self.plan, moves[0], reduced=self.bounds.reduced).found
        else:
            findings = tuple(findings_of(node, self.plan, rests=node.world.is_at_rest()))
        self._add(next(finding for finding in findings if kind_of(finding) == kind), state, *moves)

    def _add(
        self, finding: Finding, state: int, *moves: Move, cycle: tuple[Move, ...] = ()
    ) -> None:
        kind = kind_of(finding)
        if kind not in self.found:
            self.found_at = min(self.found_at, len(self.known))
            path = (*self._path(state), *moves)
            self.found[kind] = Found(finding=finding, issue=kind[1], moves=path, cycle=cycle)

    def _node(self, state: int) -> Node:
        """Return a state again, by replaying the moves on which it was first reached."""
        taken = replay(self.first, self.plan, self._path(state), reduced=self.bounds.reduced)
        return taken[-1].node if taken else self.first

    def _path(self, state: int) -> list[Move]:
        moves: list[Move] = []
        while (parent := self.parents[state]) is not None:
            state, move = parent
            moves.append(move)
        return moves[::-1]

    def _find_cycles(self) -> None:
        """Find cycles without operator actions, and walk each of them once for its events."""
        new = endless_cycles(self.successors, among=self.expanded)
        self.expanded = []
        cycles = sorted(c for c in self.cycles + new if not self.walked.intersection(c))
        self.cycles = cycles[_WALKED_CYCLES:]
        for members in cycles[:_WALKED_CYCLES]:
            self.walked.update(members)
            path = shortest_cycle(self.successors, members)
            node = self._node(members[0])
            cycle: list[Move] = []
            trace: list[Happening] = []
            for state in path[1:]:
                step = self._step_to(node, state)
                node = step.node
                cycle.append(step.move)
                trace += step.trace
            why = f"after {len(cycle)} steps it is in the same state again"
            broken = Broken(rule="settles", at_ms=0, sentence=f"the group never settles: {why}")
            finding = Finding(broken=broken, recent=tuple(trace), repeats=True)
            self._add(finding, members[0], cycle=tuple(cycle))

    def _step_to(self, node: Node, state: int) -> Step:
        """Return the step to a state; process letters may differ from those first met."""
        for move in group_moves(node.world, reduced=self.bounds.reduced):
            for step in steps(node, self.plan, move, reduced=self.bounds.reduced):
                after = step.node
                if not step.found and self.known.get(self.expander.key_of(after)) == state:
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
        plan: bounces of the operator.
        bounds: group and limits of the search.
        issue: look only for this issue.
        wanted: look only for these rules with their issues; empty: all.
        workers: number of processes; the findings do not depend on it.
        is_out_of_time: called before each state; True ends the search.
        on_progress: called before each state.

    Raises:
        WorkerLostError: a process of the search ended early.
    """
    with rare_garbage(_GARBAGE):  # worlds are released explicitly
        search = Search(plan, bounds, issue=issue, wanted=wanted, workers=workers)
        return search.run(is_out_of_time, on_progress)
