"""Commits of a consumer: by the application, at intervals, and when partitions are given up."""

import time
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as Position

from assignor.adapters.confluent.committer import Commit, Committer
from assignor.adapters.confluent.errors import COMMIT_FAILED, refused
from assignor.adapters.confluent.events import CommitDue, Committed, Mailbox
from assignor.adapters.confluent.offsets import StoredOffsets
from assignor.adapters.confluent.settings import Settings


class Commits:
    """Submits commits, notes what is committed, and reports it to `on_commit` if there is one.

    Args:
        settings: of the consumer.
        mailbox: of the application's thread.

    Attributes:
        stored: what the application stored, and what is committed.
        committer: sends the commits.
        connect: called before a commit, so that it can be sent.
        fatal: returns the fatal error of the member, after which nothing is committed.
    """

    def __init__(self, settings: Settings, mailbox: Mailbox) -> None:
        self._settings = settings
        self._mailbox = mailbox
        self.stored = StoredOffsets(settings.reset_offset)
        self.committer = Committer()
        self.connect: Callable[[], object] = lambda: None
        self.fatal: Callable[[], KafkaError | None] = lambda: None

    def submit(
        self, offsets: Sequence[Position], *, is_async: bool, refusal: KafkaError | None = None
    ) -> Commit:
        """Commit these offsets, or fail with `refusal`; report the end of an asynchronous one."""
        commit = Commit(
            offsets=offsets,
            deadline_s=time.monotonic() + self._settings.commit_timeout_s,
            finished=self._reported if is_async else self._noted,
        )
        fatal = self.fatal()
        if fatal is not None:
            commit.fail(KafkaError(KafkaError._FATAL, fatal.str()))
        elif refusal is not None:
            commit.fail(refusal)
        elif not any(each.offset >= 0 for each in offsets):
            commit.fail(KafkaError(KafkaError._NO_OFFSET))
        else:
            self.connect()
            self.committer.submit(commit)
        return commit

    def wait(
        self, offsets: Sequence[Position], *, refusal: KafkaError | None = None
    ) -> list[Position]:
        """Commit these offsets, and return them, each with its error.

        Raises:
            KafkaException: nothing was committed.
        """
        commit = self.submit(offsets, is_async=False, refusal=refusal)
        commit.ended.wait()
        if commit.error is not None:
            why = commit.error.str().removeprefix(f"{COMMIT_FAILED}: ")
            raise refused(commit.error.code(), f"{COMMIT_FAILED}: {why}")
        return list(commit.offsets)

    def submit_newer(self, newer: Sequence[Position]) -> None:
        """Commit stored positions that are newer than the committed ones, if there are any."""
        if newer:
            self.submit(newer, is_async=True)

    def interval_over(self) -> None:
        """Commit automatically; called on the member's thread.

        Positions are librdkafka's and are read on the application's thread, by its next `poll`.
        They are then those of records that the application has finished.
        """
        if not self._settings.auto_offset_store:
            self.submit_newer(self.stored.newer())
        elif not any(isinstance(event, CommitDue) for event in tuple(self._mailbox.events)):
            self._mailbox.post(CommitDue())

    def _noted(self, commit: Commit) -> None:
        if commit.error is None:
            self.stored.committed(each for each in commit.offsets if each.error is None)

    def _reported(self, commit: Commit) -> None:
        self._noted(commit)
        if self._settings.on_commit is not None:
            self._mailbox.post(Committed(error=commit.error, offsets=commit.offsets))
