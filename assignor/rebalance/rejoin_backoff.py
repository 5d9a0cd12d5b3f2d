"""What a member does after an answer, in order, and how long it waits before it asks for the next.

Sans-IO: an adapter and a simulated member carry out the same steps after the same waits. Members of
Kafka's releases never wait: a simulation of them passes no pace.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Self

from assignor.rebalance.member_facts import Received
from probing import ClearSchedule, RejoinNow, ReportError, ScheduleRebalance

FIRST_REJOIN_BACKOFF_MS: Final = 1_000
LAST_REJOIN_BACKOFF_MS: Final = 60_000
AT_ONCE_MAX: Final = 16
"""Answers in a row that may have a member rejoin at once: version probing and tasks that wait for
their owners take a few. A leader that keeps asking is defective, and each of its answers costs
the whole group a rebalance."""

_HOST_IS_MISSING: Final = "host is missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinPace:
    """Waits of a member; the back-off doubles from a second to a minute until an answer settles.

    An answer that cannot be taken is asked for again after the back-off. A rejoin that an answer
    asks for is made at once, but waits as well when the answer to a rejoin for the routing view
    misses the member again, or after `AT_ONCE_MAX` such answers in a row.

    Attributes:
        backoff_ms: the next wait, in milliseconds.
        missed_host: the last answer asked for a rejoin for the routing view.
        in_a_row: answers in a row that asked for a rejoin at once.
    """

    backoff_ms: int = FIRST_REJOIN_BACKOFF_MS
    missed_host: bool = False
    in_a_row: int = 0

    def after(self, received: Received, *, now_ms: float) -> tuple[Self, int]:
        """Return the pace after a further answer, and the least wait before the next rejoin in ms.

        Args:
            received: the answer, with what probing asks for.
            now_ms: epoch milliseconds.
        """
        at_once = [
            command.rule
            for command in received.commands
            if isinstance(command, RejoinNow)
            or (isinstance(command, ScheduleRebalance) and command.at_ms <= now_ms)
        ]
        missed_host = _HOST_IS_MISSING in at_once
        in_a_row = self.in_a_row + 1 if at_once else 0
        pace = replace(self, missed_host=missed_host, in_a_row=in_a_row)
        missed_twice = self.missed_host and missed_host
        if at_once and in_a_row <= AT_ONCE_MAX and not missed_twice:
            return pace, 0
        if not at_once and not received.failure:
            return replace(pace, backoff_ms=FIRST_REJOIN_BACKOFF_MS), 0
        return replace(
            pace, backoff_ms=min(2 * self.backoff_ms, LAST_REJOIN_BACKOFF_MS)
        ), self.backoff_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejoin:
    """Ask for a rebalance by a rule, after ``wait_ms``; 0: at once.

    ``in_a_row`` counts the latest answers that asked for a rebalance at once.
    """

    command: RejoinNow
    wait_ms: int
    in_a_row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RejoinLater:
    """Ask for a rebalance in ``delay_ms``; replaces a rejoin that is scheduled."""

    delay_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AskAgain:
    """The answer cannot be followed: ask for another in ``wait_ms``; 0: a rejoin was asked for."""

    why: str
    wait_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The answer cannot be followed, and the member ends with it."""

    why: str


NEW_PACE: Final = RejoinPace()
"""Pace of a member that has just started."""

Step = Rejoin | RejoinLater | ClearSchedule | ReportError | AskAgain | End


def steps_after(
    received: Received, pace: RejoinPace | None, *, now_ms: float, survives: bool
) -> tuple[RejoinPace | None, tuple[Step, ...]]:
    """Return the pace after an answer, and what to do about the answer, in order.

    Args:
        received: the answer.
        pace: of the member so far; None for a member that never waits, as Kafka's own.
        now_ms: epoch milliseconds.
        survives: a member that cannot follow asks for another answer; if not, it ends.
    """
    wait_ms = 0
    if pace is not None:
        pace, wait_ms = pace.after(received, now_ms=now_ms)
    in_a_row = 0 if pace is None else pace.in_a_row
    steps = [*_steps(received, wait_ms, in_a_row, now_ms)]
    if received.failure and survives:
        steps.append(AskAgain(why=received.failure, wait_ms=wait_ms))
    elif received.failure:
        steps.append(End(why=received.failure))
    return pace, tuple(steps)


def _steps(received: Received, wait_ms: int, in_a_row: int, now_ms: float) -> Iterator[Step]:
    """Yield the steps that the commands ask for."""
    for command in received.commands:
        match command:
            case RejoinNow():
                yield Rejoin(command=command, wait_ms=wait_ms, in_a_row=in_a_row)
            case ScheduleRebalance():
                yield RejoinLater(delay_ms=max(0, command.at_ms - now_ms, wait_ms))
            case ClearSchedule() | ReportError():
                yield command
            case _:
                pass
