"""Families of forms: subtopologies that may not run for the same partition at the same time."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def families(topics: Mapping[Key, frozenset[Hashable]]) -> tuple[frozenset[Key], ...]:
    """Return the connected sets of keys: those that share a topic, directly or through others."""
    # Number of a family -> its keys and topics; the smaller of two families joins the larger one.
    found: dict[int, tuple[list[Key], list[Hashable]]] = {}
    family_of: dict[Hashable, int] = {}
    last: dict[int, int] = {}
    for place, (key, names) in enumerate(topics.items()):
        joined = {family_of[name] for name in names if name in family_of}
        new = [name for name in names if name not in family_of]
        largest = max(joined, key=lambda number: len(found[number][1]), default=place)
        keys, own_names = found.setdefault(largest, ([], []))
        for number in joined - {largest}:
            other_keys, other_names = found.pop(number)
            keys += other_keys
            new += other_names
        keys.append(key)
        own_names += new
        family_of |= dict.fromkeys(new, largest)
        last[largest] = place
    # By the last key of each family.
    return tuple(frozenset(found[number][0]) for number in sorted(found, key=last.__getitem__))


def without_overlaps(
    ordered: Iterable[Key], topics: Mapping[Key, frozenset[str]]
) -> tuple[frozenset[Key], frozenset[Key]]:
    """Return the keys that can run together, the first of each conflict, and those left out."""
    kept: set[Key] = set()
    used: set[str] = set()
    left: set[Key] = set()
    for key in ordered:
        if used.isdisjoint(topics[key]):
            kept.add(key)
            used |= topics[key]
        else:
            left.add(key)
    return frozenset(kept), frozenset(left)
