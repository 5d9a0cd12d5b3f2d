"""Where one consumer continues, by the table of `assignor.embedding.input_rules`. No I/O."""

from collections.abc import Collection, Iterable, Mapping
from math import inf
from types import MappingProxyType
from typing import Any, Final, TypeVar
from uuid import UUID

from assignor.embedding.input_facts import Held, InputFacts, LogRange
from assignor.embedding.input_rules import decide_input, settle
from assignor.logs import line_logger
from encoding import TopicPartition

_log = line_logger(__name__)

_Partition = TypeVar("_Partition", bound=tuple[Any, ...])
_RESETS: Final = frozenset({"earliest", "latest"})
# How long a client does not find a topic that is named then: longer than an election takes.
_MISSING_S: Final = 30.0


class PolledBatch(dict[Any, Any]):
    """The records of a poll by partition, with the positions of the consumer after it.

    Attributes:
        positions: partition -> offset of the next record, behind control records of transactions.
        settled: partitions that were sought since the last batch, because of lost positions and
            new topics -> whether the log says so.
        wait_s: how long its processing may wait for a broker at most.
        topic_ids: topic -> id of the topic that its records are of, where that is known.
        is_held: state stores keep the records, so that they need not be read again.
    """

    def __init__(
        self,
        records: Mapping[Any, Any],
        positions: Mapping[Any, int],
        settled: Mapping[TopicPartition, bool] = MappingProxyType({}),
        wait_s: float = inf,
        topic_ids: Mapping[str, UUID] = MappingProxyType({}),
    ) -> None:
        super().__init__(records)
        self.wait_s = wait_s
        self.topic_ids = topic_ids
        self.positions = positions
        self.settled = settled
        self.is_held = False

    def held(self) -> None:
        """Note that state stores keep the records."""
        self.is_held = True


class DeletedTopics:
    """Logs each topic once that does not exist."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def log(self, topic: str) -> None:
        """Log a topic, unless that has been done."""
        if topic not in self._named:
            self._named.add(topic)
            _log.warning(
                "topic %s, or a partition of it, does not exist, so that its offsets are not "
                "committed; those of other topics are; correct its name, create it, or remove it "
                "from the topology",
                topic,
            )


class InputWatch:
    """Finds topics that are gone or were made anew, and the offsets at which a consumer continues.

    Args:
        reset: `auto_offset_reset` of the consumer.
        deleted: names topics that are gone.

    Attributes:
        deleted: as given.
        resets: whether lost positions are settled here; else the error of the client stands.
        topic_ids: topic -> id of the topic that its positions are of, where that is known.
    """

    def __init__(self, reset: str, deleted: DeletedTopics | None = None) -> None:
        self.deleted = deleted or DeletedTopics()
        self.resets = reset in _RESETS
        self._reads_latest = reset == "latest"
        self.topic_ids: dict[str, UUID] = {}
        # Topics that are not assigned now.
        self._released: set[str] = set()
        # Topic that the client does not find -> since when.
        self._missing_s: dict[str, float] = {}
        self._settled: dict[TopicPartition, bool] = {}
        self._logged: set[UUID | None] = set()

    def look(
        self, ids: Mapping[str, UUID | None], assigned: Iterable[_Partition], now_s: float
    ) -> list[_Partition]:
        """Note topics, log those that are gone for half a minute; return what `made_anew` does.

        Args:
            ids: topic -> id, of those that the client finds.
            assigned: the partitions that are read.
            now_s: of a monotonic clock.
        """
        assigned = list(assigned)
        missing = {topic for topic, *_ in assigned} - ids.keys()
        self._missing_s = {topic: self._missing_s.get(topic, now_s) for topic in missing}
        for topic, since_s in sorted(self._missing_s.items()):
            if now_s - since_s >= _MISSING_S:
                self.deleted.log(topic)
        self.note(ids, assigned)
        return self.made_anew(ids, assigned)

    def take_settled(self) -> Mapping[TopicPartition, bool]:
        """Return the partitions that were settled since the last call -> whether that is logged."""
        found, self._settled = self._settled, {}
        return found

    def note(self, ids: Mapping[str, UUID | None], assigned: Collection[tuple[Any, ...]]) -> None:
        """Note topics that are read for the first time, and those that are read no more.

        Args:
            ids: topic -> id, as the client has it now; None: not known.
            assigned: the partitions that are read.
        """
        topics = {topic for topic, *_ in assigned}
        read = {topic: now for topic in topics if (now := ids.get(topic)) is not None}
        self.topic_ids = read | self.topic_ids
        anew = {topic for topic, now in read.items() if self.topic_ids[topic] != now}
        self._released = (self._released & anew) | (self.topic_ids.keys() - topics)

    def made_anew(
        self, ids: Mapping[str, UUID | None], assigned: Iterable[_Partition]
    ) -> list[_Partition]:
        """Return the partitions of topics that were made anew, until `settle` is called for them.

        Arguments as of `note`, which has noted the topics before.
        """
        former = self.topic_ids.items()
        anew = {topic for topic, id_ in former if ids.get(topic) not in {None, id_}}
        return sorted(each for each in assigned if each[0] in anew)

    def settle(
        self,
        lost: Mapping[_Partition, int | None],
        ranges: Mapping[_Partition, tuple[int, int]],
        ids: Mapping[str, UUID | None],
        truncated: Mapping[_Partition, int | None] | None = None,
        uncommitted: Collection[_Partition] = (),
    ) -> dict[_Partition, int]:
        """Return partition -> offset to seek to; what was lost is logged.

        Args:
            lost: partition -> position; None: the group has committed none.
            ranges: partition -> its first offset, and the one behind its last.
            ids: topic -> id, as the client has it now.
            truncated: partition -> first offset that the broker has lost (KIP-320); None: all are.
            uncommitted: partitions that the client has begun to read by `auto_offset_reset`.
        """
        found: dict[_Partition, int] = {}
        truncated = truncated or {}
        for each, at in sorted(lost.items(), key=lambda item: item[0]):
            topic, number = each[0], each[1]
            facts = InputFacts(
                held=Held.POSITION,
                partition=TopicPartition(topic, number),
                log=LogRange(*ranges[each], ids.get(topic)),
                at=at,
                committed=None if each in uncommitted else at,
                known_id=self.topic_ids.get(topic),
                was_released=topic in self._released,
                is_truncated=each in truncated,
                divergent=truncated.get(each),
                reads_latest=self._reads_latest,
            )
            found[each] = settle(facts.once_a_topic(self._logged)) or 0
            self._settled[facts.partition] = decide_input(facts).says != ""
        settled = {topic for topic, *_ in lost}
        self.topic_ids |= {topic: now for topic in settled if (now := ids.get(topic)) is not None}
        self._released -= settled
        return found
