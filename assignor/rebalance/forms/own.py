"""A member's own topology in a rebalance: what it reports, and how it reads an answer."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from assignor.rebalance.forms.carried import program_fingerprint, rows_of
from assignor.rebalance.forms.reports import reached_of, reached_rows
from assignor.rebalance.forms.translation import in_own_numbers, own_numbers
from assignor.rebalance.held_tasks import UnfollowableAnswer, known_sizes
from assignor.topology import (
    CarriedTopologies,
    Subtopology,
    content_fingerprint,
    exclusive_topics,
)
from encoding import Assignment, NativeAssignment, shown
from probing import topologies
from probing.features import MAX_LEVEL, TOPOLOGY_VERSION
from probing.rules import first
from probing.topologies import (
    MOST_AHEAD,
    NEVER,
    AnswerNumbers,
    Reached,
    credible,
    families,
    greatest,
    newest_memory,
)

_LISTED: Final = 3


@lru_cache(maxsize=64)
def _changed_forms(carried: CarriedTopologies, newest: int) -> frozenset[bytes]:
    """Content of the newest forms of subtopologies that a program carries in several forms."""
    parts = {content_fingerprint(part): part for part in carried.subtopologies}
    versions = dict(zip(parts, carried.versions, strict=True))
    topics = {form: exclusive_topics(part) for form, part in parts.items()}
    several = (family for family in families(topics) if len(family) > 1)
    return frozenset(form for family in several for form in family if newest in versions[form])


class OwnTopology:
    """What one member can run, what it remembers of reached versions, and what it reports of both.

    Args:
        carried: the subtopologies that it can run, in its numbering.
        reached: what its state directory remembers.

    Attributes:
        carried: as given.
        reached: content of forms -> reached version; kept over restarts by the state directory.
        kept: what the level source keeps, as far as it is credible: also of forms that do not
            concern this member.
        describes: whether its next subscription describes its subtopologies.
    """

    def __init__(
        self, carried: CarriedTopologies, reached: Mapping[bytes, Reached] | None = None
    ) -> None:
        self.carried = carried
        self._forms = frozenset(map(content_fingerprint, carried.subtopologies))
        self.reached: Mapping[bytes, Reached] = newest_memory(reached or {}, first=self._forms)
        self.kept: Mapping[bytes, Reached] = {}
        self.describes = not carried.is_plain
        self._newest = max(carried.all_versions, default=1)
        self._changed = _changed_forms(carried, self._newest)

    def reported(self) -> dict[str, Any]:
        """Return the fields of a native subscription that are about the topology."""
        return {
            "fingerprint": program_fingerprint(self.carried),
            "topology_version": self._newest,
            "carried": rows_of(self.carried) if self.describes else (),
            "reached_versions": reached_rows(self.reached),
        }

    def ranges(self) -> dict[str, tuple[int, int]]:
        """Return the range of `topology.version`; empty for a program that knows no versions.

        Versions above `MAX_LEVEL` are no levels: they do not fit Kafka's requests.
        """
        versions = [version for version in self.carried.all_versions if version <= MAX_LEVEL]
        if self.carried.is_plain or not versions:
            return {}
        return {TOPOLOGY_VERSION: (versions[0], versions[-1])}

    def unreached(self, assignment: Assignment | None) -> str:
        """Return why an answer may be from before this program was started, or "".

        The leader that wrote the answer does not want the newest version of a family of forms that
        this program carries in several. It may not know yet that this member carries it.
        """
        native, newest = None if assignment is None else assignment.native, self._newest
        if native is None or not self._changed:
            return ""
        reached = reached_of(native.reached_versions)
        if all(form in reached and reached[form].version >= newest for form in self._changed):
            return ""
        return f"the group has not reached topology version {newest}, which this member carries"

    @property
    def known(self) -> Mapping[bytes, Reached]:
        """What this member remembers, and what the level source keeps: for a leader."""
        return greatest(self.kept, self.reached)

    def is_news(self, memory: Mapping[bytes, Reached], parts: Sequence[Subtopology]) -> bool:
        """Whether a level source has greater entries of any of these subtopologies."""
        found, forms = credible(memory, self._epoch), map(content_fingerprint, parts)
        return any(found.get(form, NEVER) > self.reached.get(form, NEVER) for form in forms)

    def learn(self, memory: Mapping[bytes, Reached]) -> None:
        """Take over the greater entries of an answer's memory; those of own forms stay first."""
        self.reached = newest_memory(self.reached, memory, first=self._forms, then=memory.keys())

    def adopt(self, memory: Mapping[bytes, Reached]) -> None:
        """Take over the greater entries of what a level source keeps.

        Entries of forms that this member neither carries nor remembers stay at the source: another
        writer there displaces nothing that the member remembers.
        """
        self.kept = credible(memory, self._epoch)
        concerned = self._forms | self.reached.keys()
        self.learn({form: reached for form, reached in self.kept.items() if form in concerned})

    def why_ignored(self, memory: Mapping[bytes, Reached]) -> str:
        """Return why entries of a level source are not adopted, or ""."""
        ignored = len(memory) - len(credible(memory, self._epoch))
        if not ignored:
            return ""
        return (
            f"{ignored} reached versions of the topology beside the levels are ignored: their epoch"
            f" is more than {MOST_AHEAD} above {self._epoch}, the highest one that this member"
            " remembers; find out who writes there"
        )

    @property
    def _epoch(self) -> int:
        return max((reached.epoch for reached in self.reached.values()), default=NEVER.epoch)

    def taken(self, assignment: Assignment) -> Assignment:
        """Return an answer in the member's own numbering.

        Keeps what the answer says about reached versions, and whether to describe the topology.

        Raises:
            UnfollowableAnswer: the answer has tasks that this member cannot run, or does not say by
                which topology its tasks are numbered; the message says what to do.
        """
        native = assignment.native
        if native is not None:
            self.learn(reached_of(native.reached_versions))
            self.describes = native.describe_topology
        numbered_by = () if native is None else native.numbered_by
        own = own_numbers(numbered_by, self.carried.subtopologies)
        read, unknown = in_own_numbers(assignment, own) if numbered_by else (assignment, [])
        tasks = (*assignment.active_tasks, *assignment.standby_tasks)
        numbers = AnswerNumbers(
            is_numbered=bool(numbered_by),
            has_tasks=bool(tasks),
            has_unknown_tasks=bool(unknown),
            is_plain=self.carried.is_plain,
            sizes_fit=native is None or self._fits(native, assignment),
        )
        rule = first(topologies.TOPOLOGY_ANSWER_RULES, numbers)
        if rule.says:
            return read
        named = ", ".join(shown(str(task)) for task in unknown[:_LISTED])
        versions = ", ".join(map(str, self.carried.all_versions))
        raise UnfollowableAnswer(rule.sentence(numbers, tasks=named, versions=versions))

    def in_group_numbers(self, numbered_by: Sequence[bytes]) -> tuple[Subtopology, ...]:
        """Return the member's subtopologies with the numbers that an answer uses."""
        numbers = own_numbers(numbered_by, self.carried.subtopologies)
        by_id = {part.id: part for part in self.carried.subtopologies}
        return tuple(replace(by_id[own], id=number) for number, own in sorted(numbers.items()))

    def _fits(self, native: NativeAssignment, assignment: Assignment) -> bool:
        """Whether the sizes of a native answer's standby tasks are those of this topology.

        Native answers name no partitions of standby tasks.
        """
        own = known_sizes(self.carried.subtopologies, native.partition_counts)
        if own is None or not native.sizes:
            return True
        numbers = {task.subtopology for task in assignment.standby_tasks}
        return all(
            n < len(own) and n < len(native.sizes) and own[n] == native.sizes[n] for n in numbers
        )
