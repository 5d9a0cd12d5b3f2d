"""A task on this member: its stores, how far its input is processed, and whether it may run."""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from math import inf

from assignor.embedding.bad_records import BadRecordStage
from assignor.embedding.errors import ClusterUnavailable
from assignor.embedding.state_stores.access import WAIT_S, ChangelogAccess
from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    NO_COMMIT,
    NOBODY,
    Commit,
    Owner,
    read_commit,
)
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.tables import has_whole_task
from assignor.logs import line_logger
from encoding import TaskId, TopicPartition

_log = line_logger(__name__)


class Phase(Enum):
    """What a copy of a task does."""

    FOLLOWING = "a standby"
    SUSPENDED = "revoked, and kept until an assignment says whether it stays"
    BEHIND = "active, and its changelogs have more records"
    RESTORING = "active, and reads up to offsets that are known"
    CLAIMED = "active, and reads up to its own owner records"
    COMPLETING = "active, and writes what its last owner left out or hid"
    RUNNING = "active and complete"

    @property
    def is_settled(self) -> bool:
        """Nothing has to be done before the copy follows, waits or runs."""
        return self in (Phase.FOLLOWING, Phase.SUSPENDED, Phase.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgress:
    """How far a copy of a task is.

    Attributes:
        task: the task.
        phase: what the copy does.
        left: records of its changelogs that it does not have yet; None: not known.
    """

    task: TaskId
    phase: Phase
    left: int | None


class TaskCopy:
    """A task on this member.

    Args:
        task: the task.
        replicas: its stores, by name; a task without stores is always complete.

    Attributes:
        task, replicas: as given.
        phase: what it does.
        owner: this process's claim, from `CLAIMED` on.
        targets: store -> offset up to which it reads, in `RESTORING` and `CLAIMED`.
        commit: the last commit record, from `COMPLETING` on; without its writes.
        repairs: of `COMPLETING`, the keys and values that are still to be written.
    """

    def __init__(self, task: TaskId, replicas: Mapping[str, Replica]) -> None:
        self.task = task
        self.replicas = dict(sorted(replicas.items()))
        for replica in self.replicas.values():
            replica.peers = tuple(self.replicas.values())
        self.phase = Phase.FOLLOWING
        self.owner: Owner = NOBODY
        self.targets: Mapping[str, int] = {}
        self.commit: Commit = NO_COMMIT
        self.repairs: Iterator[tuple[Replica, bytes, bytes | None]] = iter(())

    @property
    def offset_sum(self) -> int:
        """Sum of the positions of its changelogs, as the leader compares copies."""
        return sum(replica.position for replica in self.replicas.values())

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """Changelog partition -> offset up to which its copy has it."""
        return {replica.changelog: replica.position for replica in self.replicas.values()}

    @property
    def restored(self) -> int:
        """Number of entries that were restored since the last takeover began."""
        return sum(replica.restored for replica in self.replicas.values())

    @property
    def has_reached(self) -> bool:
        """Whether every store has read up to its target."""
        return all(self.replicas[name].position >= end for name, end in self.targets.items())

    @property
    def inputs(self) -> Mapping[TopicPartition, int]:
        """Input partition -> offset of the first record that is not processed."""
        return self.commit.inputs

    @property
    def has_whole_task(self) -> bool:
        """Whether the copies had the whole state of the task when they were last written."""
        return has_whole_task(replica.table for replica in self.replicas.values())

    @property
    def is_new(self) -> bool:
        """Whether this process's claim is the first one of a task that has no state."""
        tables = (replica.table for replica in self.replicas.values())
        return self.owner.epoch == 1 and not any(next(table.items(), None) for table in tables)

    @property
    def hidden_commit(self) -> Commit | None:
        """The commit record of a former owner, which does not count, where none that does is left.

        Compaction has removed that of the task's owner then; a first batch leaves no other either,
        and no entries.

        Raises:
            StoreError: it is not valid.
        """
        replicas = self.replicas.values()
        if any(replica.table.progress.commit for replica in replicas):
            return None
        hidden = [r.hidden for r in replicas if COMMIT_KEY in r.unowned]
        found = [
            read_commit(value, name=f"a commit record of task {self.task}") for value in hidden
        ]
        last = max(found, key=lambda commit: commit.order, default=None)
        has_entries = any(next(replica.table.items(), None) for replica in replicas)
        return last if last is not None and (has_entries or last.number > 1) else None

    def activate(self) -> None:
        """Begin to take the task over, unless that has begun."""
        if self.phase in {Phase.FOLLOWING, Phase.SUSPENDED}:
            self.phase = Phase.RUNNING
            self.look_again()

    def give_up(self) -> None:
        """Be a standby, until the task is taken over again."""
        self.phase = Phase.FOLLOWING

    def suspend(self) -> None:
        """Read and write nothing, until the task is taken over again or is a standby."""
        self.phase = Phase.SUSPENDED

    def look_again(self) -> None:
        """Read the changelogs again, and claim the task again: another member may have written."""
        if self.phase is Phase.RUNNING:
            for replica in self.replicas.values():
                replica.restored = 0
        if self.replicas:
            self.phase = Phase.BEHIND

    def forget_inputs(self, partitions: Collection[TopicPartition]) -> None:
        """Take the next record of these input partitions, whatever its offset is."""
        inputs = {p: at for p, at in self.inputs.items() if p not in partitions}
        self.commit = replace(self.commit, inputs=inputs)

    def close(self) -> None:
        """Close the stores."""
        for replica in self.replicas.values():
            replica.table.close()


def progress_of(copy: TaskCopy, access: ChangelogAccess) -> TaskProgress:
    """Return how far a copy is; on any thread."""
    left: int | None = 0
    for changelog, at in copy.positions.items():
        end = access.seen_end(changelog)
        has = max(at, access.position(changelog))  # behind it, offsets may have no records
        left = None if end is None or left is None else left + max(0, end - has)
    return TaskProgress(task=copy.task, phase=copy.phase, left=left)


class Work:
    """What a member has processed since it began, for other threads to read.

    Attributes:
        ended: why no loop processes records; "": one does.
        records: task -> records, without those that its state had already. Records whose commit
            has failed count again, as in Kafka Streams' `process-total`.
        bad_records: (stage, "skip" or "dead letter") -> records that were not processed.
        commits: of records, to changelogs; as Kafka Streams' `commit-total` without idle ones.
        commit_s: seconds that they took together, also those that failed.
        current: the record that is being processed, and since when (`time.monotonic()`).
        waits: why a read or write failed that is tried again; "": none did.
    """

    def __init__(self, bad_records: Counter[tuple[BadRecordStage, str]]) -> None:
        self.ended = "the loop that processes records has not begun"
        self.records: Counter[TaskId] = Counter()
        self.bad_records = bad_records
        self.commits = 0
        self.commit_s = 0.0
        self.current: tuple[TopicPartition, int, float] | None = None
        self.waits = ""
        # Sentences about failures in a row, without numbers; tasks that did not run at the last.
        self._named: set[str] = set()
        self._failing: AbstractSet[TaskId] = frozenset()

    @contextmanager
    def noting_waits(
        self, batch: object, pending: Callable[[], Iterable[TaskCopy]]
    ) -> Iterator[None]:
        """Limit waits for brokers; note and log what cannot be read or written, until it can.

        Args:
            batch: of a poll loop, with its limit as `wait_s`; others have none.
            pending: returns copies of active tasks that do not run.
        """
        before = WAIT_S.set(getattr(batch, "wait_s", inf))
        try:
            yield
            if self.waits and self._failing.isdisjoint(copy.task for copy in pending()):
                _log.info("changelogs and outputs are read and written again")
                self.waits, self._failing = "", frozenset()
                self._named.clear()
        except ClusterUnavailable as error:
            self.waits = str(error)
            self._failing = {copy.task for copy in pending()}
            sentence = "".join(each for each in self.waits if not each.isdecimal())
            level = logging.DEBUG if sentence in self._named else logging.WARNING
            self._named.add(sentence)
            why = "what is not processed or committed is kept, and tried again"
            _log.log(level, "%s: %s", why, self.waits)
            raise
        finally:
            WAIT_S.reset(before)
