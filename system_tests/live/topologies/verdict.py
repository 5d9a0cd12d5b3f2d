"""The oracle of a change of the topology: what the changelogs must contain, record by record.

Each record of a changelog names the offset of the input record that it counts. So the changelogs
show which form counted which input, whether any was counted twice or never, and in which order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from system_tests.topology_changes import STORES, ChangeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyVerdict:
    """What a change came to.

    Attributes:
        kind: of the change.
        broker: "embedded", or kafka: and the release.
        before, after: fingerprints of the subtopologies of the two programs, in hexadecimal.
        written: topic -> number of records.
        expected: store -> number of records that it must have counted; None: a part of the input.
        found: store -> number of records that it counted.
        broken: rules that do not hold, as sentences.
        killed: member that was killed with SIGKILL; "" if none was.
        taken_back: the group was bounced back to the old program at the end.
        lowered: version and epoch that the group remembers since; empty: it was not lowered.
        errors: what members reported, without repetitions.
    """

    kind: str
    broker: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    written: Mapping[str, int] = field(default_factory=dict)
    expected: Mapping[str, int | None] = field(default_factory=dict)
    found: Mapping[str, int] = field(default_factory=dict)
    broken: tuple[str, ...] = ()
    killed: str = ""
    taken_back: bool = False
    lowered: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all rules hold."""
        return not self.broken


Counted = Mapping[str, Mapping[int, Sequence[int]]]
"""Store -> partition -> offsets of the counted input records, in the order of the changelog."""


def expected_counts(
    kind: ChangeKind, written: Mapping[str, Mapping[int, int]], *, taken_back: bool = False
) -> dict[str, int | None]:
    """Return how many records each store must have counted; None: a part of them."""
    old, new = STORES[kind]
    expected: dict[str, int | None] = {}
    for topic in written:
        before, after = set(old.get(topic, ())), set(new.get(topic, ()))
        for store in (*old.get(topic, ()), *new.get(topic, ())):
            is_whole = _is_whole(store, before, after, taken_back=taken_back)
            expected[store] = sum(written[topic].values()) if is_whole else None
    return expected


def broken_rules(
    kind: ChangeKind,
    written: Mapping[str, Mapping[int, int]],
    counted: Counted,
    *,
    taken_back: bool = False,
) -> tuple[str, ...]:
    """Return the rules that do not hold.

    Args:
        kind: of the change.
        written: topic -> partition -> number of records that were written.
        counted: what the changelogs contain.
        taken_back: the group was bounced back to the old program at the end.
    """
    old, new = STORES[kind]
    broken: list[str] = []
    for topic in sorted({*old, *new}):
        partitions = written.get(topic, {})
        before, after = set(old.get(topic, ())), set(new.get(topic, ()))
        broken += _of_evidence(topic, sum(partitions.values()), counted, before, after)
        for partition, count in sorted(partitions.items()):
            for store in sorted(before | after):
                offsets = counted.get(store, {}).get(partition, ())
                # What the other form counted in between is checked with the records of both.
                has_gap = taken_back and bool(after) and store in before - after
                broken += _of_store(f"{store}-{partition}", offsets, has_gap=has_gap)
                if store in before and offsets and offsets[0]:
                    broken.append(f"{store}-{partition} left out records before {offsets[0]}")
                is_whole = _is_whole(store, before, after, taken_back=taken_back)
                if is_whole and len(offsets) != count:
                    broken.append(f"{store}-{partition} counted {len(offsets)} of {count} records")
            check = _of_return if taken_back else _of_switch
            broken += check(counted, partition, count, before, after)
    return tuple(broken)


def _of_evidence(
    topic: str, count: int, counted: Counted, before: set[str], after: set[str]
) -> list[str]:
    """Records were written, and each form counted some: both programs processed the topic."""
    if not count:
        return [f"no record was written to {topic}"]
    broken = []
    for store in sorted(before | after):
        if not any(counted.get(store, {}).values()):
            programs = [name for name, has in (("old", before), ("new", after)) if store in has]
            broken.append(
                f"{store} counted no record, as if no {' or '.join(programs)} program ran"
            )
    # A store that is added to a form begins where the form without it ended.
    added = sorted(after - before) if before and before <= after else ()
    for store in added:
        firsts = [offsets[0] for offsets in counted.get(store, {}).values() if offsets]
        if firsts and not any(firsts):
            broken.append(f"{store} begins at 0 everywhere, as if no old program ran")
    return broken


def _is_whole(store: str, before: set[str], after: set[str], *, taken_back: bool) -> bool:
    """Whether a store must have counted every record of its topic."""
    if taken_back:
        return store in before and (store in after or not after)
    return store in after and (store in before or not before)


def _of_store(name: str, offsets: Sequence[int], *, has_gap: bool) -> list[str]:
    """Each record is counted once, in order, without a gap: no two forms ran, none returned."""
    if list(offsets) != sorted(set(offsets)):
        return [f"{name} counted records twice or out of order: {_around(offsets)}"]
    if not has_gap and offsets and offsets[-1] - offsets[0] + 1 != len(offsets):
        return [f"{name} left out records between {offsets[0]} and {offsets[-1]}"]
    return []


def _around(offsets: Sequence[int]) -> str:
    for before, after in pairwise(offsets):
        if after <= before:
            return f"{after} follows {before}"
    return ""


def _of_switch(
    counted: Counted, partition: int, count: int, before: set[str], after: set[str]
) -> list[str]:
    """A renamed store counts on where the old one ended; a second one counts to the end."""
    broken = []
    for store in sorted(after - before) if before else ():
        offsets = counted.get(store, {}).get(partition, ())
        if not offsets or offsets[-1] != count - 1:
            broken.append(f"{store}-{partition} does not count to record {count - 1}")
        for gone in sorted(before - after):
            last = [*counted.get(gone, {}).get(partition, ())][-1:] or [-1]
            if offsets and offsets[0] != last[0] + 1:
                broken.append(
                    f"{store}-{partition} begins at {offsets[0]}, and {gone} ended at {last[0]}"
                )
    return broken


def _of_return(
    counted: Counted, partition: int, count: int, before: set[str], after: set[str]
) -> list[str]:
    """What the new program added ends; a renamed store counts what the other one has not."""
    broken = []
    for store in sorted(after - before):
        offsets = counted.get(store, {}).get(partition, ())
        if not before and offsets and offsets[0] != 0:
            broken.append(f"{store}-{partition} begins at {offsets[0]}")
        for former in sorted(before - after):
            own = counted.get(former, {}).get(partition, ())
            if sorted((*own, *offsets)) != list(range(count)):
                broken.append(
                    f"{former}-{partition} and {store}-{partition} counted"
                    f" {len(own)} + {len(offsets)} of {count} records, or one of them twice"
                )
            if offsets and not (own and own[-1] == count - 1):
                broken.append(f"{former}-{partition} does not count to record {count - 1}")
    if before and after - before and before & after and count:
        added = {s: counted.get(s, {}).get(partition, ()) for s in sorted(after - before)}
        broken += [
            f"{store}-{partition} counts to the end, and the old program has no {store}"
            for store, offsets in added.items()
            if offsets and offsets[-1] == count - 1
        ]
    return broken
