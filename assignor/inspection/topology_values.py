"""Result values about the topologies of a group's members."""

from collections.abc import Mapping
from dataclasses import dataclass

from encoding import TopicPartition
from probing.topologies import Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class FormLook:
    """A form of a subtopology: its content in some versions of the topology.

    Attributes:
        fingerprint: of its content, in hexadecimal digits.
        number: its number in the group's task ids; None: the leader numbers no such subtopology.
        sources, changelogs: its topics, as far as known.
        versions: versions of the topology that contain it.
        carriers: processes that can run it, sorted.
        running: process -> partitions of its tasks there, sorted.
        wanted: whether partitions move to it; None: not known.
    """

    fingerprint: str
    number: int | None
    sources: tuple[str, ...]
    changelogs: tuple[str, ...]
    versions: tuple[int, ...]
    carriers: tuple[str, ...]
    running: Mapping[str, tuple[int, ...]]
    wanted: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyLook:
    """Forms that may not run for the same partition at the same time.

    Attributes:
        forms: in order of their versions.
        version: the wanted version of the topology; None: every one will do, or it waits.
        epoch: in which that version was reached; None: nothing is remembered.
        reached: the version that is remembered; None: nothing is.
        why: the sentence of the rule that decides (docs/topologies.md).
        held_by: processes that run partitions in another form than the wanted one.
        waiting: source partitions that no member reads; those of repartition topics only if members
            write to them.
    """

    forms: tuple[FormLook, ...]
    version: int | None
    epoch: int | None
    why: str
    reached: int | None = None
    held_by: tuple[str, ...] = ()
    waiting: tuple[TopicPartition, ...] = ()

    @property
    def is_changing(self) -> bool:
        """Whether it has several forms, or a form that not all partitions run in."""
        return len(self.forms) > 1 or bool(self.held_by or self.waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologiesLook:
    """The topologies of a group during a rolling change.

    Attributes:
        processes: version of the topology -> processes whose highest version it is.
        undescribed: processes that do not describe their subtopologies; JVM members never do.
        families: by the numbers of their first forms.
        reached: the latest remembered version of a subtopology that all live members are older
            than, with its epoch; None: members carry all that is remembered.
    """

    processes: Mapping[int, tuple[str, ...]]
    undescribed: tuple[str, ...]
    families: tuple[FamilyLook, ...]
    reached: Reached | None = None
