"""One line in the log per rebalance, and one per answer of a leader."""

import logging

from assignor.observe.events import AnswersDecided, MembershipLost
from assignor.observe.rebalances import Outcome, RebalanceEnd, RebalanceHook

_log = logging.getLogger(__name__)
_BAD = frozenset({Outcome.ERROR, Outcome.REFUSED})


class LoggingHook(RebalanceHook):
    """Writes `key=value` lines: rebalances at INFO, those that went wrong at WARNING.

    Args:
        logger: where to; `assignor.observe.log_lines` unless given.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._log = logger or _log

    def on_rebalance_end(self, end: RebalanceEnd) -> None:
        """Say what came of it."""
        self._log.log(
            logging.WARNING if end.outcome in _BAD else logging.INFO,
            "generation=%d outcome=%s used=%d received=%d common=%d next=%d active=%d standby=%d "
            "warmup=%d gained=%d lost=%d seconds=%.3f subscription_bytes=%d assignment_bytes=%d "
            'why="%s"',
            end.generation,
            end.outcome.value,
            end.used_version,
            end.received_version,
            end.commonly_supported_version,
            end.next_version,
            len(end.active_tasks),
            len(end.standby_tasks),
            len(end.warmup_tasks),
            len(end.gained_tasks),
            len(end.lost_tasks),
            end.seconds,
            end.subscription_size,
            end.assignment_size,
            end.why,
        )

    def on_assignment_completed(self, decided: AnswersDecided) -> None:
        """Say what this member decided as the leader."""
        self._log.info(
            "leader members=%d version=%d common=%d tasks=%d standbys=%d moved=%d waiting=%d "
            'future=%d quarantined=%d seconds=%.3f bytes=%d rule="%s" why="%s"',
            decided.members,
            decided.version,
            decided.commonly_supported_version,
            decided.placed_tasks,
            decided.placed_standbys,
            decided.moved_tasks,
            len(decided.waiting_members),
            len(decided.future_members),
            len(decided.quarantined_members),
            decided.seconds,
            decided.size,
            decided.rule,
            decided.why,
        )

    def on_membership_lost(self, lost: MembershipLost) -> None:
        """Say that others run this member's tasks."""
        self._log.warning("membership=lost active=%d", len(lost.active_tasks))
