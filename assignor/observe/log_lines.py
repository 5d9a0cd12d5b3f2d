"""A hook that logs one line per rebalance, and one per assignment computed as the leader."""

import json
import logging
from enum import Enum
from typing import Final

from assignor.logs import line_logger
from assignor.observe.events import AnswersDecided, MembershipLost
from assignor.observe.rebalances import Outcome, RebalanceEnd, RebalanceHook
from encoding import shown

_log = line_logger(__name__)
_BAD = frozenset({Outcome.ERROR, Outcome.REFUSED, Outcome.STOPPED})
_TEXT_LIMIT: Final = 1000
_SEE: Final = "the log has what to correct, as an error"
# Of a group that is settled and has members of this project only; it needs no explanation.
_ORDINARY_RULE: Final = "natives only"


class LoggingHook(RebalanceHook):
    """Logs rebalances as short `key=value` lines at INFO, failed ones at WARNING.

    A line has what differs from the ordinary: numbers that are 0 are left out, versions are named
    where they differ from the version that this member writes, and the rule of a leader is
    explained where it changed. What stops tasks is an error in the log of the member, once, and not
    repeated in the line of each rebalance. At DEBUG, a second line has the other numbers.

    Args:
        logger: the logger; default: `assignor.observe.log_lines`.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._log = logger or _log
        self._rule = _ORDINARY_RULE

    def on_rebalance_end(self, end: RebalanceEnd) -> None:
        """Log the result of the rebalance."""
        versions = {
            "received": end.received_version,
            "common": end.commonly_supported_version,
            "next": end.next_version,
        }
        why = end.why
        if end.outcome is Outcome.STOPPED:
            why = f"{why.partition(': ')[0]}: {_SEE}"
        line = key_values(
            generation=end.generation,
            outcome=end.outcome,
            active=len(end.active_tasks),
            standby=len(end.standby_tasks),
            **_without_zeros(
                warmup=len(end.warmup_tasks),
                gained=len(end.gained_tasks),
                lost=len(end.lost_tasks),
            ),
            version=end.used_version,
            **{name: v for name, v in versions.items() if v != end.used_version},
            seconds=end.seconds,
            **({"why": why} if why else {}),
        )
        self._log.log(logging.WARNING if end.outcome in _BAD else logging.INFO, "%s", line)
        self._log.debug(
            "generation=%d joins=%d subscription_bytes=%d assignment_bytes=%d",
            end.generation,
            end.joins,
            end.subscription_size,
            end.assignment_size,
        )

    def on_assignment_completed(self, decided: AnswersDecided) -> None:
        """Log the assignments that this member computed as the leader."""
        is_new, self._rule = decided.rule != self._rule, decided.rule
        line = key_values(
            members=decided.members,
            tasks=decided.placed_tasks,
            standbys=decided.placed_standbys,
            **_without_zeros(
                moved=decided.moved_tasks,
                waiting=len(decided.waiting_members),
                future=len(decided.future_members),
                quarantined=len(decided.quarantined_members),
            ),
            version=decided.version,
            seconds=decided.seconds,
            bytes=decided.size,
            rule=decided.rule,
            **({"why": decided.why} if is_new else {}),
        )
        self._log.info("leader %s", line)

    def on_membership_lost(self, lost: MembershipLost) -> None:
        """Log that the group continued without this member."""
        level = logging.INFO if lost.is_logged else logging.WARNING
        self._log.log(level, "membership=lost %s", key_values(active=len(lost.active_tasks)))


def key_values(**values: str | float | Enum) -> str:
    r"""Return `key=value` pairs on one printable line that programs can parse.

    Numbers and enumerations are not quoted. Strings are quoted as in JSON; unprintable characters
    in them are escaped by `encoding.shown`.

    >>> key_values(tasks=3, seconds=0.25, why='members "a" and\n"b"')
    'tasks=3 seconds=0.250 why="members \\"a\\" and\\\\n\\"b\\""'
    """
    return " ".join(f"{name}={_value(value)}" for name, value in values.items())


def _without_zeros(**numbers: int) -> dict[str, int]:
    return {name: number for name, number in numbers.items() if number}


def _value(value: str | float | Enum) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, str):
        return json.dumps(shown(value, limit=_TEXT_LIMIT), ensure_ascii=False)
    return f"{value:.3f}" if isinstance(value, float) else str(value)
