"""What is known of an offset and of its log: the inputs of `assignor.embedding.input_rules`."""

from dataclasses import dataclass, replace
from enum import Enum
from uuid import UUID

from encoding import TopicPartition


class Held(Enum):
    """What has an offset."""

    POSITION = "The position of a consumer"
    STATE = "The input of a task's state"
    CHANGELOG = "A local copy of a store"


class Goes(Enum):
    """Where reading continues."""

    ON = "continues at its offset"
    START = "continues at the first record"
    END = "continues at the end"
    RESET = "continues where `auto_offset_reset` says"
    DIVERGENT = "continues at the first lost record"
    COMMITTED = "continues at the committed offset"
    PASSES = "passes over records that the state has"
    REBUILD = "is rebuilt"
    STOPS = "is kept, and the member ends"


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets of a partition, and the id of its topic.

    Attributes:
        start: offset of the first record.
        end: offset behind the last record.
        topic_id: None: not known, as from brokers before 2.8.
    """

    start: int
    end: int
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFacts:
    """Inputs of a row.

    Attributes:
        held: what has the offset.
        partition: of the topic.
        log: the partition as it is now.
        at: the offset of the next record; None: the group has committed none, or the state has no
            commit record.
        known_id: of the topic that the offset is of; None: not known.
        is_truncated: the broker has lost records that were read (KIP-320).
        was_released: the topic was not assigned here for a while.
        divergent: first offset of these; None: not known.
        reads_latest: `auto_offset_reset` is latest, not earliest.
        is_taken_over: the task was just taken over, so that reading begins at `committed`.
        is_new: the task has no state, and no owner has ever written to its changelogs.
        hidden: offset in a commit record that does not count, if the state has no other.
        committed: offset that the group has committed, where the position began; None: none, or not
            asked for.
        is_members: a member has committed it, not an operator.
        is_logged: a line says already what became of the topic: that of the position, or of another
            partition.
        is_only_compacted: brokers delete no record of the changelog, whatever its age.
        copy: where a local copy is that has all of its task's state; "": it may not have all.
        remedy: what to do if such a copy has what its changelog has lost.
    """

    held: Held
    partition: TopicPartition
    log: LogRange
    at: int | None
    known_id: UUID | None = None
    was_released: bool = False
    is_truncated: bool = False
    divergent: int | None = None
    reads_latest: bool = False
    is_taken_over: bool = False
    is_new: bool = False
    hidden: int | None = None
    committed: int | None = None
    is_members: bool = True
    is_logged: bool = False
    is_only_compacted: bool = False
    copy: str = ""
    remedy: str = ""

    @property
    def next(self) -> int:
        """The offset; 0 without one."""
        return self.at or 0

    @property
    def is_anew(self) -> bool:
        """Whether the topic is another one than that of the offset, by their ids."""
        return None not in (self.known_id, self.log.topic_id) and self.known_id != self.log.topic_id

    @property
    def has_same_id(self) -> bool:
        """Whether the topic is known to be that of the offset."""
        return self.known_id is not None and self.known_id == self.log.topic_id

    @property
    def is_set_back(self) -> bool:
        """Whether an operator has set the offsets of the group back."""
        return self.committed is not None and self.committed < self.next and not self.is_members

    @property
    def is_set_forward(self) -> bool:
        """Whether an operator has set the offsets of the group forward, in the topic."""
        return self.next < (self.committed or 0) <= self.log.end and not self.is_members

    @property
    def has_no_begin(self) -> bool:
        """Whether no committed offset says where reading begins: none is in the topic.

        Nor does that of a member, before the state has any record of a topic that was made anew.
        """
        at, is_former = self.committed, self.at is not None and self.is_anew and self.is_members
        is_in_topic = at is not None and self.log.start <= at <= self.log.end
        return self.is_taken_over and (is_former or not is_in_topic)

    def once_a_topic(self, logged: set[UUID | None]) -> "InputFacts":
        """Return the facts, with `is_logged` if a line names a topic that was made anew already.

        Args:
            logged: ids of such topics; that of these facts is added.
        """
        if not self.is_anew or self.is_new or self.hidden is not None:
            return self
        is_again = self.log.topic_id in logged
        logged.add(self.log.topic_id)
        return replace(self, is_logged=self.is_logged or is_again)
