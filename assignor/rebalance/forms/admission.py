"""Which programs of other members a leader plans tasks for.

A program's rows must not change what is planned for programs that were admitted before it: the
leader's own, then those that most processes run. A program that contradicts them, that cannot be
planned, or that is larger than a program can reasonably be is refused with its members alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from assignor.errors import TaskAssignmentError
from assignor.topology import (
    CarriedTopologies,
    Subtopology,
    content_fingerprint,
    exclusive_topics,
    source_counts,
    with_sinks,
)

MOST_FORMS = 8
"""Subtopologies of one program that use the same topic: one for each version that it carries."""

MOST_NEW_PARTITIONS = 10_000
"""Partitions of a repartition topic that only other members have, unless more exist."""

MOST_NEW_TASKS = 10_000
"""Tasks that a program adds to those of the leader, unless four times the leader's are more."""

_TIMES_OWN = 4


class Admission:
    """The programs that are admitted so far; the leader's own is, whatever it contains.

    Args:
        own: subtopologies of the leader, or of the group beside JVM members.
        partition_counts: external topic -> number of partitions; others are not known.
    """

    def __init__(self, own: Sequence[Subtopology], partition_counts: Mapping[str, int]) -> None:
        self._partition_counts = partition_counts
        self._parts = {content_fingerprint(part): part for part in own}
        # The error of an own topology that cannot be planned is raised when it is planned.
        self._counts = self._planned(self._parts.values())[0] or {}
        self._most_tasks = max(MOST_NEW_TASKS, _TIMES_OWN * _tasks(own, self._counts))

    def admit(self, carried: CarriedTopologies) -> str:
        """Return why a program is refused; empty: it is admitted."""
        written = {content_fingerprint(p): {*p.sink_topics} for p in carried.subtopologies}
        new = [p for p in carried.subtopologies if content_fingerprint(p) not in self._parts]
        known = [self._parts[form] for form in written.keys() & self._parts.keys()]
        changed_parts = {*with_sinks(known, written)} - {*known}
        if not new and not changed_parts:
            return ""
        parts = {**self._parts, **{content_fingerprint(p): p for p in (*changed_parts, *new)}}
        why = _too_many_forms(carried) or self._too_wide(new) or self._other_kind(new)
        if why:
            return why
        counts, why = self._planned(parts.values())
        if counts is None:
            return why
        changed = sorted(t for t, n in self._counts.items() if counts.get(t) != n)
        if changed:
            topic = changed[0]
            found = counts.get(topic, "an unknown number of")
            return (
                f"it makes {found} partitions of {topic}, which has {self._counts[topic]} in the"
                " topology of other members"
            )
        added = _tasks(new, counts)
        if added > self._most_tasks:
            return f"it adds {added:,} tasks, and at most {self._most_tasks:,} are accepted"
        self._parts, self._counts = parts, counts
        return ""

    def _planned(self, parts: Iterable[Subtopology]) -> tuple[Mapping[str, int] | None, str]:
        try:
            return source_counts(tuple(parts), self._partition_counts)[0], ""
        except TaskAssignmentError as error:
            return None, str(error)

    def _too_wide(self, parts: Iterable[Subtopology]) -> str:
        for part in parts:
            for topic in part.repartition_topics:
                most = max(MOST_NEW_PARTITIONS, self._partition_counts.get(topic.name, 0))
                if topic.partitions is not None and topic.partitions > most:
                    return (
                        f"its repartition topic {topic.name} has {topic.partitions:,} partitions,"
                        f" and at most {most:,} are accepted"
                    )
        return ""

    def _other_kind(self, parts: Sequence[Subtopology]) -> str:
        """Topics that one program reads as its source and the other one as a repartition topic."""
        before, after = _kinds(self._parts.values()), _kinds(parts)
        topics = sorted(t for t, internal in after.items() if before.get(t, internal) != internal)
        if not topics:
            return ""
        words = {True: "a repartition topic", False: "an external source topic"}
        return (
            f"{topics[0]} is {words[after[topics[0]]]} of it, and {words[before[topics[0]]]} of"
            " other members"
        )


def _kinds(parts: Iterable[Subtopology]) -> dict[str, bool]:
    """Source topic -> whether it is a repartition topic."""
    return {
        topic: topic in {t.name for t in part.repartition_topics}
        for part in parts
        for topic in part.source_topics
    }


def _too_many_forms(carried: CarriedTopologies) -> str:
    """Why a program has more forms of a subtopology than versions of a topology can contain."""
    forms: Counter[str] = Counter()
    of_version: Counter[tuple[str, int]] = Counter()
    for part, versions in zip(carried.subtopologies, carried.versions, strict=True):
        topics = exclusive_topics(part)
        forms.update(topics)
        of_version.update((topic, version) for topic in topics for version in versions)
    contradicting = sorted(key for key, number in of_version.items() if number > 1)
    if contradicting:
        topic, version = contradicting[0]
        return f"two of its subtopologies of version {version} use {topic}"
    topics_over = sorted(topic for topic, number in forms.items() if number > MOST_FORMS)
    if not topics_over:
        return ""
    return (
        f"{forms[topics_over[0]]} of its subtopologies use {topics_over[0]}, and a program can"
        f" have at most {MOST_FORMS} forms of a subtopology"
    )


def _tasks(parts: Iterable[Subtopology], counts: Mapping[str, int]) -> int:
    return sum(
        max(counts[topic] for topic in part.source_topics)
        for part in parts
        if part.source_topics and all(topic in counts for topic in part.source_topics)
    )
