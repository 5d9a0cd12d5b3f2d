"""Families of forms: subtopologies that may not run for the same partition at the same time."""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def families(topics: Mapping[Key, frozenset[str]]) -> tuple[frozenset[Key], ...]:
    """Return the connected sets of keys: those that share a topic, directly or through others."""
    found: list[tuple[set[Key], set[str]]] = []
    for key, names in topics.items():
        keys, joined = {key}, set(names)
        apart = []
        for others, other_names in found:
            if joined.isdisjoint(other_names):
                apart.append((others, other_names))
            else:
                keys |= others
                joined |= other_names
        found = [*apart, (keys, joined)]
    return tuple(frozenset(keys) for keys, _ in found)


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
