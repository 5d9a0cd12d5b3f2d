"""Where one consumer continues, by the table of `assignor.embedding.input_rules`. No I/O."""

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from assignor.embedding.input_rules import Held, InputFacts, LogRange, settle
from encoding import TopicPartition

_Partition = TypeVar("_Partition", bound=tuple[Any, ...])
_RESETS: Final = frozenset({"earliest", "latest"})


class PolledBatch(dict[Any, Any]):
    """The records of a poll by partition, with the positions of the consumer after it.

    Attributes:
        positions: partition -> offset of the next record, behind control records of transactions.
        is_held: state stores keep the records, so that they need not be read again.
    """

    def __init__(self, records: Mapping[Any, Any], positions: Mapping[Any, int]) -> None:
        super().__init__(records)
        self.positions = positions
        self.is_held = False

    def held(self) -> None:
        """Note that state stores keep the records."""
        self.is_held = True


class InputWatch:
    """Finds topics that were made anew, and the offsets at which a consumer continues.

    Args:
        reset: `auto_offset_reset` of the consumer.

    Attributes:
        resets: whether lost positions are settled here; else the error of the client stands.
    """

    def __init__(self, reset: str) -> None:
        self.resets = reset in _RESETS
        self._reads_latest = reset == "latest"
        # Topic -> id of the topic that its positions are of; those that are not assigned now.
        self._ids: dict[str, UUID] = {}
        self._released: set[str] = set()

    def made_anew(
        self, ids: Mapping[str, UUID | None], assigned: Collection[_Partition]
    ) -> list[_Partition]:
        """Return the partitions of topics that were made anew, until `settle` is called for them.

        Args:
            ids: topic -> id, as the client has it now; None: not known.
            assigned: the partitions that are read.
        """
        topics = {topic for topic, *_ in assigned}
        anew = set()
        for topic in topics:
            found = ids.get(topic)
            if found is not None and self._ids.setdefault(topic, found) != found:
                anew.add(topic)
        self._released = (self._released & anew) | (self._ids.keys() - topics)
        return sorted(each for each in assigned if each[0] in anew)

    def settle(
        self,
        lost: Mapping[_Partition, int | None],
        ranges: Mapping[_Partition, tuple[int, int]],
        ids: Mapping[str, UUID | None],
        truncated: Mapping[_Partition, int | None] | None = None,
    ) -> dict[_Partition, int]:
        """Return partition -> offset to seek to; what was lost is logged.

        Args:
            lost: partition -> position; None: the group has committed none.
            ranges: partition -> its first offset, and the one behind its last.
            ids: topic -> id, as the client has it now.
            truncated: partition -> first offset that the broker has lost (KIP-320); None: all are.
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
                known_id=self._ids.get(topic),
                was_released=topic in self._released,
                is_truncated=each in truncated,
                divergent=truncated.get(each),
                reads_latest=self._reads_latest,
            )
            found[each] = settle(facts) or 0
        settled = {topic for topic, *_ in lost}
        self._ids |= {topic: now for topic in settled if (now := ids.get(topic)) is not None}
        self._released -= settled
        return found
