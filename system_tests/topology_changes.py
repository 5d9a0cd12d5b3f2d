"""The changes of a topology that are tried: the old and the new program of each.

Every program counts the words of its topics, in the stores that it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assignor import Topology
from assignor.topology import CarriedTopologies, content_fingerprint
from assignor.topology.changes import carried_topologies

WORDS, EXTRA = "words", "extra"
OLD_VERSION, NEW_VERSION = 1, 2
"""Versions of the topology: of the old program and of the new one."""


class ChangeKind(StrEnum):
    """What the new program changes."""

    ADD = "add"
    REMOVE = "remove"
    CHANGE = "change"
    RENAME = "rename"


def counting(version: int, stores: Mapping[str, tuple[str, ...]]) -> Topology:
    """Return a topology that counts the words of each topic in the stores that are given."""
    topology = Topology(version=version)
    for topic, names in stores.items():
        # The source of `extra` sorts first, so that adding it renumbers the others.
        source = f"{'a' if topic == EXTRA else 'b'}-{topic}"
        topology.add_source(source, topics=[topic])
        topology.add_processor(f"count-{topic}", parents=[source])
        for name in names:
            topology.add_state_store(name, processors=[f"count-{topic}"])
    return topology


STORES: Final[Mapping[ChangeKind, tuple[Mapping[str, tuple[str, ...]], ...]]] = {
    ChangeKind.ADD: (
        {WORDS: ("counts",)},
        {EXTRA: ("extras",), WORDS: ("counts",)},
    ),
    ChangeKind.REMOVE: (
        {EXTRA: ("extras",), WORDS: ("counts",)},
        {WORDS: ("counts",)},
    ),
    ChangeKind.CHANGE: (
        {WORDS: ("counts",)},
        {WORDS: ("counts", "totals")},
    ),
    ChangeKind.RENAME: (
        {WORDS: ("counts",)},
        {WORDS: ("totals",)},
    ),
}
"""Stores by topic, of the old program and of the new one."""


def program(kind: ChangeKind, version: int) -> Topology:
    """Return the topology of the old program (1) or of the new one (2)."""
    return counting(version, STORES[kind][version - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyChange:
    """A change that a group is bounced through.

    Attributes:
        kind: of the change.
        carries_both: the new program carries the old topology as well, so that the group changes
            together; otherwise each program carries one.
    """

    kind: ChangeKind
    carries_both: bool = False

    @property
    def versions(self) -> tuple[tuple[int, ...], ...]:
        """Versions of the topology that the old and the new program carry."""
        new = (OLD_VERSION, NEW_VERSION) if self.carries_both else (NEW_VERSION,)
        return (OLD_VERSION,), new

    @property
    def text(self) -> str:
        """The change in a few words."""
        programs = "programs that carry both" if self.carries_both else "one topology a program"
        return f"{self.kind}, {programs}"

    def carried(self, version: int, application_id: str) -> CarriedTopologies:
        """Return what a program carries: the old one (1) or the new one (2)."""
        topologies = [program(self.kind, number) for number in self.versions[version - 1]]
        return carried_topologies(topologies, application_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A subtopology by its content, in the numbering of a change.

    Attributes:
        topic: that it reads; forms that read one topic are a family.
        versions: of the topology that contain it.
        content: its fingerprint.
    """

    topic: str
    versions: tuple[int, ...]
    content: bytes


def forms_of(kind: ChangeKind, application_id: str) -> tuple[Form, ...]:
    """Return the forms of both programs; their places in the result number them."""
    both = carried_topologies(
        [program(kind, v) for v in (OLD_VERSION, NEW_VERSION)], application_id
    )
    return tuple(
        Form(topic=part.source_topics[0], versions=versions, content=content_fingerprint(part))
        for part, versions in zip(both.subtopologies, both.versions, strict=True)
    )
