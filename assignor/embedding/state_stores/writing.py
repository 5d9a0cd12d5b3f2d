"""How a batch of input becomes state: the order in which a kill at any moment loses nothing.

1. Outputs to other topics are acknowledged. So they are sent at least once: state never has the
   effect of a record whose outputs are lost.
2. The commit record of each task is acknowledged in all its changelogs. It has all writes and the
   input offsets, so the batch counts as soon as one changelog has it, for any member that restores
   the task with any of these stores; before, nothing of it counts.
3. The writes are acknowledged as records of their own, for which the changelog is compacted.
4. The local copies get the writes, with their positions in the changelogs.

Then the application commits the input offsets. Where it does not come to that, records are read
again, and are recognised by the input offsets of the commit record.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from assignor.embedding.state_stores.access import ChangelogAccess
from assignor.embedding.state_stores.copies import Phase, TaskCopy
from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    Commit,
    NewRecord,
    commit_bytes,
    owned_record,
)
from assignor.embedding.state_stores.stores import Batch
from assignor.embedding.state_stores.tables import Moment
from assignor.embedding.state_stores.takeover import appended
from assignor.logs import line_logger
from assignor.stores import RecordTooLarge
from encoding import TopicPartition

_log = line_logger(__name__)

COMMIT_SIZE: Final = 512 << 10
"""Bytes of writes after which a batch is written early; Kafka's default limit is 1 MiB a record."""


class Divided(Exception):
    """The input records of a commit are processed again, for several commits.

    Attributes:
        limit: of bytes of a commit from now on.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"commits of at most {limit} bytes")


class OpenBatch:
    """A batch of one task's input, while it is processed.

    Args:
        copy: the task, `RUNNING`.

    Attributes:
        copy: as given.
        batch: what is written so far.
        inputs: input partition -> offset of the first record that is not processed.
    """

    def __init__(self, copy: TaskCopy) -> None:
        self.copy = copy
        self.batch = Batch(copy.task)
        self.inputs: dict[TopicPartition, int] = {}

    @property
    def is_running(self) -> bool:
        """Whether the task is still known to be this process's."""
        return self.copy.phase is Phase.RUNNING

    def next_input(self, partition: TopicPartition) -> int:
        """Return the offset of the first record that is not processed."""
        return self.inputs.get(partition, self.copy.inputs.get(partition, 0))

    def next_commit(self) -> Commit:
        """Return the commit of what is processed so far."""
        inputs = {**self.copy.inputs, **self.inputs}
        return Commit(
            epoch=self.copy.owner.epoch,
            number=self.copy.commit.number + 1,
            inputs=inputs,
            writes=dict(self.batch.writes),
            topic_ids=self.copy.commit.topic_ids,
        )


class _Transaction:
    """The writes of one batch on their way into changelogs and copies."""

    def __init__(self, opened: OpenBatch) -> None:
        self.opened = opened
        self.begun = Moment.now()
        self.commit = opened.next_commit()
        self.value = commit_bytes(self.commit)

    def commit_records(self) -> list[NewRecord]:
        """Return the commit record, for each changelog."""
        copy = self.opened.copy
        return [
            owned_record(replica.changelog, COMMIT_KEY, self.value, copy.owner)
            for replica in copy.replicas.values()
        ]

    def is_committed(self, offsets: Sequence[int]) -> bool:
        """Whether the commit record is the next record of each changelog."""
        replicas = self.opened.copy.replicas.values()
        return all(
            replica.is_next([offset]) for replica, offset in zip(replicas, offsets, strict=True)
        )

    def records(self) -> list[list[NewRecord]]:
        """Return the writes as records, by store."""
        copy = self.opened.copy
        return [
            copy.replicas[name].new_records(writes, copy.owner)
            for name, writes in self.commit.writes.items()
        ]

    def finish(self, offsets: Sequence[Sequence[int]]) -> None:
        """Write the local copies, unless another member wrote to the changelogs meanwhile."""
        copy = self.opened.copy
        found = dict(zip(self.commit.writes, offsets, strict=True))
        if not all(copy.replicas[name].is_next(at, after=1) for name, at in found.items()):
            copy.look_again()
            return
        for name, replica in copy.replicas.items():
            replica.written(
                self.commit.writes.get(name, {}),
                position=replica.position + 1 + len(found.get(name, ())),
                owner=copy.owner,
                begun=self.begun,
                commit=self.value,
            )
        copy.commit = replace(self.commit, writes={})


def write_running(access: ChangelogAccess, opened: Sequence[OpenBatch], *, limit: int) -> None:
    """Write what is processed so far of the tasks that are `RUNNING`, as `write_batches`.

    Args:
        access: to the changelogs.
        opened: the batches.
        limit: of bytes of a commit, so far.

    Raises:
        Divided: a commit record was too large; from now on each has fewer input records.
        RecordTooLarge: what one input record writes is too large.
    """
    running = [each for each in opened if each.is_running]
    sizes = [each.batch.size for each in running if each.batch.records > 1]
    try:
        write_batches(access, running)
    except RecordTooLarge as error:
        if not sizes:
            raise
        lower = min(limit, max(sizes)) // 2
        _log.info("commits have at most %s bytes from now on: %s", lower, error)
        raise Divided(lower) from error


def write_batches(access: ChangelogAccess, opened: Sequence[OpenBatch]) -> None:
    """Write what is processed so far; a task that another member claimed is `BEHIND` afterwards.

    Raises:
        ClusterUnavailable: the changelogs cannot be written; the tasks are `BEHIND`, because the
            records may be in the log all the same.
        RecordTooLarge: a commit record is too large; the tasks are `BEHIND`.
        StoreError: a local copy cannot be written; the tasks are `BEHIND`.
    """
    access.flush()
    changed = []
    for each in opened:
        if each.batch.writes:
            changed.append(_Transaction(each))
        else:
            each.copy.commit = replace(each.copy.commit, inputs={**each.copy.inputs, **each.inputs})
    try:
        _write(access, changed)
    except BaseException:
        for transaction in changed:
            transaction.opened.copy.look_again()
        raise
    finally:
        for transaction in changed:
            transaction.opened.batch.begin()


def _write(access: ChangelogAccess, transactions: Sequence[_Transaction]) -> None:
    committed: list[_Transaction] = []
    offsets = appended(access, [each.commit_records() for each in transactions])
    for transaction, found in zip(transactions, offsets, strict=True):
        if transaction.is_committed(found):
            committed.append(transaction)
        else:
            transaction.opened.copy.look_again()
    groups = [each.records() for each in committed]
    written = iter(appended(access, [*chain.from_iterable(groups)]))
    for transaction, group in zip(committed, groups, strict=True):
        transaction.finish([next(written) for _ in group])
