"""One poll loop of any client: back-off, size of batches, slices. It does no I/O.

The loops of the adapters own the client: they poll, seek, commit and wait as this says.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any, Final, TypeVar

from assignor.embedding.bad_records import value_of
from assignor.embedding.errors import ClusterUnavailable, PollErrors
from assignor.embedding.loops.pace import HAS_LEFT, STAYS, PollPace
from assignor.embedding.loops.rules import UNANSWERED_COMMIT, LoopFacts, Step, Then, decide
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

_Partition = TypeVar("_Partition")
# Of the time between two polls that the limits allow.
_SHARE: Final = 0.5
# The same for a wait for a broker, which may come after them.
_WAIT_SHARE: Final = 0.4
# While records are kept the member has to poll at least once a session.
_MAX_PAUSE_S: Final = MappingProxyType({Step.POLL: 10.0, Step.PROCESS: 1.0, Step.COMMIT: 1.0})
# A slow record is named at most so often for each partition.
_NAMED_EACH_S: Final = 60.0
# So many slow records are counted, the last ones.
_MAX_COUNTED: Final = 1000
_REMEDY: Final = "raise the limit, or make the function faster"
_AGAIN: Final = (
    "that was so at least {times} times, and is repeated without end: each time the members process"
    f" the record again, and write its outputs again; {_REMEDY}"
)
_NOT_COMMITTED: Final = (
    "not committed: the group rebalances, or has done so; what is not committed is processed again"
)
# A faster batch lowers the estimated time of a record by this factor at most.
_DECAY: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """What a loop does after an error.

    Attributes:
        ends: end the loop.
        leaves: leave the group.
        settles: go on where the input is, by `InputWatch`.
        raised: raise this; None: wait, then go on.
        wait_s: seconds.
    """

    ends: bool = False
    leaves: bool = False
    settles: bool = False
    raised: BaseException | None = None
    wait_s: float = 0.0


class PollLoop:
    """What one loop does next.

    Args:
        max_poll_interval_ms: of the consumer.
        session_timeout_ms: as in `PollPace`.
        max_poll_records: of the consumer; None: a batch has no limit.
        client_errors: base classes of the client's errors.
        setting_names: name of a setting here -> its name in the client, where it differs.
        waited_s: seconds that calls in the batches of the application have waited for brokers.
        fenced_after_s: for how long polls may fail with an error, which a fenced member gets.
        now: a monotonic clock, in seconds.

    Attributes:
        now: as given.
        wait_s: how long the processing of a batch may wait for a broker.
        max_records: most records of the next batch; None: as the consumer is configured.
        slow: partition -> offset of the last record that took longer than the limit.
    """

    def __init__(
        self,
        *,
        max_poll_interval_ms: int,
        session_timeout_ms: int | None = None,
        max_poll_records: int | None = None,
        client_errors: tuple[type[Exception], ...] = (),
        setting_names: Mapping[str, str] = MappingProxyType({}),
        waited_s: Callable[[], float] = lambda: 0.0,
        fenced_after_s: Callable[[BaseException], float] = lambda _: inf,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fenced_after_s = fenced_after_s
        self._count_waits, self._waited_before_s = waited_s, 0.0
        self._pace = PollPace(
            max_poll_interval_ms=max_poll_interval_ms,
            session_timeout_ms=session_timeout_ms,
            setting_names=setting_names,
            now=now,
        )
        self._limit_name = setting_names.get("max_poll_interval_ms", "max_poll_interval_ms")
        self._interval_s = max_poll_interval_ms / 1000
        limit_ms = min(max_poll_interval_ms, session_timeout_ms or max_poll_interval_ms)
        self._slice_s = _SHARE * limit_ms / 1000
        self.wait_s = _WAIT_SHARE * limit_ms / 1000
        self._most = max_poll_records
        self._client_errors = client_errors
        self.now = now
        self._errors = {step: PollErrors() for step in Step}
        self._failing_since_s: dict[Step, float] = {}
        self._delivered_s = now()
        self._delivered = 0
        self._record_s = 0.0
        # Partition -> when a slow record of it was named; slow records -> how often they were.
        self._named_s: dict[TopicPartition, float] = {}
        self._attempts: dict[tuple[TopicPartition, int], int] = {}
        # Since the last poll: the longest call, all calls together (None: they are not measured),
        # and whether a record above the limit was noted.
        self._longest_s, self._is_noted = 0.0, False
        self._handled_s: float | None = None
        self.slow: dict[TopicPartition, int] = {}
        # The first record is measured before there is a whole batch of such.
        self.max_records = None if max_poll_records is None else 1

    def polls(
        self,
        *,
        is_ended: bool,
        is_shutdown: bool,
        has_left: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Return whether to poll; False: the loop ends. A pause that was too long is logged.

        Args:
            is_ended: the loop was asked to end.
            is_shutdown: the whole group was asked to end.
            has_left: whether the member has left the group; called for a line that says so.
        """
        self._measure()
        is_single = self._longest_s >= self._slice_s
        records = 1 if is_single else self._delivered
        too_long = self._pace.poll_begins(
            records,
            lambda: self._is_noted or has_left(),
            self._handled_s,
            self._count_waits() - self._waited_before_s,
        )
        if too_long and not self._is_noted:
            _log.warning("%s", too_long)
        self._delivered, self._longest_s, self._is_noted = 0, 0.0, False
        facts = LoopFacts(step=Step.NEXT, is_ended=is_ended, is_shutdown=is_shutdown)
        return decide(facts).then is not Then.END

    def delivered(self, records: int | None = 0) -> None:
        """Note that a poll has succeeded.

        Args:
            records: in the batch, if the application processes all of them before the next poll;
                None: `handled` gets each call of the application.
        """
        self._succeeded(Step.POLL, "polls succeed")
        self._pace.poll_ended()
        self._delivered, self._delivered_s = records or 0, self.now()
        self._handled_s = 0.0 if records is None else None
        self._waited_before_s = self._count_waits()

    def processed(self) -> None:
        """Note that the records of a batch, or a part of them, were processed."""
        self._succeeded(Step.PROCESS, "what was kept is processed and committed")
        self._succeeded(Step.COMMIT, "commits succeed")

    def _succeeded(self, step: Step, what: str) -> None:
        self._failing_since_s.pop(step, None)
        if failed := self._errors[step].succeeded():
            _log.info("%s again, after %s failures", what, failed)

    def is_slice_over(self) -> bool:
        """Return whether half of the time is over that is allowed between two polls."""
        return self.now() - self._delivered_s >= self._slice_s

    def handled(
        self, record: Any, begin_s: float, has_left: Callable[[], bool] = lambda: True
    ) -> str:
        """Log a call of the function that processes records if it was longer than the limit.

        So is one that began before half of the limit was over and ended after the limit. A record
        is named at most once a minute for each partition, and each time that it is
        processed again.

        Args:
            record: that was processed, of any client.
            begin_s: `now()` when the call began.
            has_left: as for `polls`.

        Returns:
            What to report of a record that was too long before, or "".
        """
        now_s = self.now()
        took_s = now_s - begin_s
        self._longest_s = max(self._longest_s, took_s)
        if self._handled_s is not None:
            self._handled_s += took_s
        pause_s = now_s - self._delivered_s if took_s >= self._slice_s else 0.0
        is_slow = max(took_s, pause_s) > self._interval_s
        if not is_slow and not self.slow:
            return ""
        topic, partition, offset = (
            value_of(record, name) for name in ("topic", "partition", "offset")
        )
        where = TopicPartition(topic, partition)
        if not is_slow:
            if self.slow.get(where, offset) <= offset:
                self.slow.pop(where, None)
            return ""
        self._is_noted = True
        self.slow[where] = offset
        times = self._count(where, offset)
        if times == 1 and now_s - self._named_s.get(where, -inf) < _NAMED_EACH_S:
            return ""
        self._named_s[where] = now_s
        says = (
            f"{topic} [{partition}]: the function that processes records took {took_s:.1f} s for "
            f"the record at offset {offset}"
            + ("" if took_s > self._interval_s else f", {pause_s:.1f} s after the last poll")
            + f", above {self._limit_name}={self._interval_s * 1000:.0f}"
            + f": this member {HAS_LEFT if has_left() else STAYS}"
        )
        if times > 1:
            return f"{says}; {_AGAIN.format(times=times)}"
        _log.warning("%s; %s", says, _REMEDY)
        return ""

    def _count(self, where: TopicPartition, offset: int) -> int:
        """Return how often a record was slow; others may be slow before it begins again."""
        times = self._attempts.pop((where, offset), 0) + 1
        self._attempts[where, offset] = times
        if len(self._attempts) > _MAX_COUNTED:
            self._attempts.pop(next(iter(self._attempts)))
        return times

    def failed(self, step: Step, error: BaseException, **facts: bool) -> Reaction:
        """Return what to do after an error; `facts` are fields of `LoopFacts`."""
        now_s = self.now()
        since_s = self._failing_since_s.setdefault(step, now_s)
        found = LoopFacts(
            step=step,
            error=error,
            is_clients=isinstance(error, self._client_errors),
            failing_s=now_s - since_s,
            patience_s=self._interval_s,
            fenced_after_s=self._fenced_after_s(error),
            **facts,
        )
        rule = decide(found)
        if rule.then is Then.END:
            return Reaction(ends=True)
        if rule.then is Then.SETTLE:
            return Reaction(settles=True)
        if rule.then is not Then.RETRY:
            return Reaction(
                leaves=rule.then is Then.STOP and not found.is_closed,
                raised=error if rule.stops is None else rule.stops(found),
            )
        pause = self._errors[step].failed(error)
        why = f"what is not processed or committed is kept, and tried again: {error}"
        if not isinstance(error, ClusterUnavailable) or step is Step.POLL:  # state stores log it
            _log.log(pause.level, "%s", pause.why if step is Step.POLL else why)
        return Reaction(wait_s=min(pause.wait_ms / 1000, _MAX_PAUSE_S[step]))

    def _measure(self) -> None:
        """Set the size of the next batch, by the time that the last one took."""
        if not self._delivered:
            return
        took_s = self.now() - self._delivered_s
        self._record_s = max(took_s / self._delivered, _DECAY * self._record_s)
        if self._most is None and took_s > self._slice_s:
            self._most = self._delivered
        fitting = self._slice_s / self._record_s if self._record_s else float("inf")
        is_limited = self._most is not None and fitting < self._most
        self.max_records = max(1, int(fitting)) if is_limited else None


def passed_over(
    before: Mapping[_Partition, int], after: Mapping[_Partition, float]
) -> dict[_Partition, int]:
    """Return where to seek back to after a poll that failed: it may have taken records.

    Args:
        before: partition -> position before the poll.
        after: the same after it; what is assigned anew may begin elsewhere, and is left out if it
            is not ahead.
    """
    return {partition: at for partition, at in before.items() if after.get(partition, at) > at}


def first_offsets(batch: Mapping[_Partition, Sequence[Any]]) -> dict[_Partition, int]:
    """Return partition -> offset of its first record, of any client."""
    return {each: int(value_of(found[0], "offset")) for each, found in batch.items() if found}


def log_late_commit(error: BaseException) -> None:
    """Log a commit that has to be made again; raise any other error of a commit."""
    rule = decide(LoopFacts(step=Step.COMMIT, error=error))
    if rule.then is not Then.LATER:
        raise error
    if rule is UNANSWERED_COMMIT:
        _log.warning("not committed: no broker has answered within request_timeout_ms")
    else:
        _log.info("%s", _NOT_COMMITTED)
