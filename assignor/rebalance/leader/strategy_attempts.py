"""Call a strategy; if it fails, keep tasks in place and call it again after a back-off.

A strategy that raises or breaks a rule does not stop the group: tasks stay where they ran, the
others are distributed evenly, the failure is reported, and the strategy is called again after a
back-off that doubles from ten seconds to ten minutes. Until then every rebalance keeps tasks in
place, so that a group that rebalances often does not meet the same error each time. The time is
handed in: no clock.
"""

from dataclasses import dataclass

from assignor.errors import TaskAssignmentError
from assignor.placement import (
    GroupState,
    Strategy,
    TaskAssignment,
    Violation,
    identity,
    run_strategy,
    sticky,
    validate,
)
from encoding import RebalanceError

FIRST_STRATEGY_BACKOFF_MS = 10_000
LAST_STRATEGY_BACKOFF_MS = 600_000
_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFailures:
    """What a leader remembers of a strategy that failed; input of the next rebalance.

    Attributes:
        count: consecutive failures; 0 while the strategy works.
        retry_at_ms: epoch milliseconds before which it is not called again.
        why: the last failure, as a sentence.
    """

    count: int = 0
    retry_at_ms: int = 0
    why: str = ""

    def warnings(self, now_ms: int) -> tuple[str, ...]:
        """Return a sentence for the operator; none while the strategy works."""
        if not self.count:
            return ()
        times = "once" if self.count == 1 else f"{self.count} times in a row"
        wait_s = -(-(self.retry_at_ms - now_ms) // 1000)
        sentence = (
            f"{self.why} ({times}); tasks stay where they were, and the strategy is called again"
            f" in {wait_s} s"
        )
        return (sentence,)


NO_FAILURES = StrategyFailures()


def attempt(
    strategy: Strategy, state: GroupState, *, before: StrategyFailures, now_ms: int
) -> tuple[TaskAssignment, StrategyFailures]:
    """Call a strategy, unless its back-off after a failure has not passed.

    Returns:
        Its answer, or every task where it ran; and the failures to remember.

    Raises:
        TaskAssignmentError: the strategy failed, and tasks cannot stay where they are either.
    """
    # A wait longer than any back-off means that the clock was set back.
    if before.count and 0 < before.retry_at_ms - now_ms <= LAST_STRATEGY_BACKOFF_MS:
        return _kept(state, before.why), before
    try:
        return run_strategy(state, strategy), NO_FAILURES
    except RebalanceError as error:
        why = str(error)
    return _kept(state, why), failed_again(before, now_ms=now_ms, why=why)


def failed_again(before: StrategyFailures, *, now_ms: int, why: str) -> StrategyFailures:
    """The failures with one more, and the time of the next call."""
    # The shift is bounded, so that the number stays small however often the strategy fails.
    wait_ms = min(
        FIRST_STRATEGY_BACKOFF_MS << min(before.count, _DOUBLINGS), LAST_STRATEGY_BACKOFF_MS
    )
    return StrategyFailures(count=before.count + 1, retry_at_ms=now_ms + wait_ms, why=why)


def _kept(state: GroupState, why: str) -> TaskAssignment:
    """Every task where it ran; distributed again if that is not possible."""
    broken: tuple[Violation, ...] = ()
    for fallback in (identity, sticky):
        assignment = fallback(state)
        broken = validate(state, assignment)
        if not broken:
            return assignment
    raise TaskAssignmentError(f"no strategy gave a valid assignment: {why}; {broken[0]}")
