"""One attempt at a strategy: what happens when a user's callable fails, and when it is asked again.

A strategy that raises or breaks a rule stops nobody: tasks stay where they ran, what nobody runs is
dealt evenly, the failure is reported, and the strategy is asked again after a back-off that doubles
from ten seconds to ten minutes. Until then every rebalance keeps tasks where they are, so that a
group that rebalances often does not run into the same error each time. No clock: time is handed in.
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

FIRST_BACKOFF_MS = 10_000
LAST_BACKOFF_MS = 600_000
_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyFailures:
    """What a leader remembers of a strategy that failed; handed in again at the next rebalance.

    Attributes:
        count: failures in a row; 0 while the strategy works.
        retry_at_ms: epoch milliseconds before which it is not asked again.
        why: the last failure, as a sentence.
    """

    count: int = 0
    retry_at_ms: int = 0
    why: str = ""


NO_FAILURES = StrategyFailures()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of asking a strategy.

    Attributes:
        assignment: its answer, or where tasks stay meanwhile.
        failures: to remember; `NO_FAILURES` when it worked.
        warnings: what the operator should hear of.
    """

    assignment: TaskAssignment
    failures: StrategyFailures = NO_FAILURES
    warnings: tuple[str, ...] = ()


def attempt(
    strategy: Strategy, state: GroupState, *, before: StrategyFailures, now_ms: int
) -> Attempt:
    """Ask a strategy, unless it failed so recently that its back-off has not passed.

    Raises:
        TaskAssignmentError: the strategy failed, and tasks cannot stay where they are either.
    """
    # A wait that is longer than any back-off means that the clock was set back meanwhile.
    if before.count and 0 < before.retry_at_ms - now_ms <= LAST_BACKOFF_MS:
        wait_s = -(-(before.retry_at_ms - now_ms) // 1000)
        return _kept_until(state, before, wait_s)
    try:
        return Attempt(assignment=run_strategy(state, strategy))
    except RebalanceError as error:
        why = str(error)
    failures = failed_again(before, now_ms=now_ms, why=why)
    return _kept_until(state, failures, (failures.retry_at_ms - now_ms) // 1000)


def failed_again(before: StrategyFailures, *, now_ms: int, why: str) -> StrategyFailures:
    """One failure more, and the time until which nothing new is tried."""
    # The shift is bounded, so that a strategy that never works again costs no huge numbers.
    wait_ms = min(FIRST_BACKOFF_MS << min(before.count, _DOUBLINGS), LAST_BACKOFF_MS)
    return StrategyFailures(count=before.count + 1, retry_at_ms=now_ms + wait_ms, why=why)


def _kept_until(state: GroupState, failures: StrategyFailures, wait_s: int) -> Attempt:
    times = "once" if failures.count == 1 else f"{failures.count} times in a row"
    said = (
        f"{failures.why} ({times}); tasks stay where they were, and the strategy is asked again in "
        f"{wait_s} s"
    )
    return Attempt(assignment=_kept(state, failures.why), failures=failures, warnings=(said,))


def _kept(state: GroupState, why: str) -> TaskAssignment:
    """Everything where it ran; dealt anew where that is not possible."""
    broken: tuple[Violation, ...] = ()
    for fallback in (identity, sticky):
        assignment = fallback(state)
        broken = validate(state, assignment)
        if not broken:
            return assignment
    raise TaskAssignmentError(f"no strategy gave a valid assignment: {why}; {broken[0]}")
