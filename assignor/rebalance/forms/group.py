"""Which subtopologies each member of a group can run, and how the group numbers them.

A number is of one topology only. A leader numbers the subtopologies of its own topology as that
does, and appends those that only other members have, in the order in which it first saw them.
Beside JVM members all members must have one topology, whose numbers hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from assignor.rebalance.forms.carried import carried_from, plain, program_fingerprint
from assignor.topology import (
    CarriedTopologies,
    Subtopology,
    content_fingerprint,
    exclusive_topics,
)
from encoding import Subscription, shown
from encoding.native import ReachedRow, SubtopologyRow
from probing.topologies import (
    HIGHEST_EPOCH,
    Carrier,
    MemberNumbers,
    MemberRule,
    Reached,
    newest_memory,
    topology_member_rule,
)

MOST_NUMBERED = 1024
"""Subtopologies of all members of a group together."""

NOT_HERE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyReport:
    """What a member reports about its topology; a JVM member reports nothing.

    Attributes:
        member_id: of the member.
        process: its process.
        is_native: its native fields can be read.
        is_jvm: it is a member of Kafka's.
        fingerprint: of all that it carries; empty: it has no topology.
        version: the highest version that it carries.
        rows: description of what it carries; empty: it does not describe it.
        reached: what it remembers.
    """

    member_id: str
    process: str
    is_native: bool = False
    is_jvm: bool = False
    fingerprint: bytes = b""
    version: int = 1
    rows: tuple[SubtopologyRow, ...] = ()
    reached: Mapping[bytes, Reached] = field(default_factory=dict)


def report_of(member_id: str, value: Subscription) -> TopologyReport:
    """Return what a subscription says about the topology of its writer."""
    native, process = value.native, str(value.process_id)
    if native is None:
        return TopologyReport(member_id=member_id, process=process, is_jvm=True)
    return TopologyReport(
        member_id=member_id,
        process=process,
        is_native=native.is_readable,
        fingerprint=native.fingerprint,
        version=native.topology_version,
        rows=native.carried,
        reached=reached_of(native.reached_versions),
    )


def reached_of(rows: Sequence[ReachedRow]) -> dict[bytes, Reached]:
    """Return the memory that a peer reports, without impossible entries."""
    return newest_memory(
        {
            form: Reached(epoch, version)
            for form, epoch, version in rows
            if epoch < HIGHEST_EPOCH and 1 <= version < 2**31
        }
    )


def reached_rows(memory: Mapping[bytes, Reached]) -> tuple[ReachedRow, ...]:
    """Return the rows of a memory."""
    return tuple(ReachedRow(form, *memory[form]) for form in sorted(memory))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyMemory:
    """What a leader remembers of its members' topologies for the next rebalance.

    Attributes:
        appended: subtopologies that its own topology has not, with their numbers.
        described: (fingerprint, version) of a program -> what it carries.
        asked: members that were asked to describe their topology.
        live: content of the subtopologies that members could run.
    """

    appended: tuple[Subtopology, ...] = ()
    described: Mapping[tuple[bytes, int], CarriedTopologies] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    live: frozenset[bytes] = frozenset()


NO_TOPOLOGIES = TopologyMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberForms:
    """What a member can run, and how it numbers it.

    Attributes:
        to_group: number in the group of each of its numbers; -1: the group does not number it.
        versions: content of each subtopology -> versions of the topology that contain it.
    """

    to_group: tuple[int, ...]
    versions: Mapping[bytes, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTopologies:
    """The topologies of a group.

    Attributes:
        is_mixed: members have different topologies, or carry several versions.
        numbering: every subtopology, by its number in the group.
        by_member: members that can be given tasks.
        refused: member id -> why it gets no tasks.
        asked: members that have to describe their topology first.
        retired: subtopologies that members could run in the rebalance before, and none can now.
        carriers: the members of `by_member`, for the rules.
        memory: for the next rebalance.
    """

    is_mixed: bool
    numbering: tuple[Subtopology, ...]
    by_member: Mapping[str, MemberForms]
    refused: Mapping[str, str]
    asked: frozenset[str]
    retired: tuple[Subtopology, ...]
    carriers: tuple[Carrier, ...]
    memory: TopologyMemory

    @property
    def forms(self) -> tuple[bytes, ...]:
        """Content of each subtopology, by its number in the group."""
        return tuple(map(content_fingerprint, self.numbering))

    @property
    def excluded(self) -> dict[str, str]:
        """Member id -> why it gets no tasks: refused members, and those that are asked first."""
        why = "it is asked to describe its topology, which is not the leader's"
        return {**self.refused, **dict.fromkeys(sorted(self.asked), why)}

    @property
    def topics(self) -> dict[bytes, frozenset[str]]:
        """Content -> topics of which one task at a time may use a partition."""
        return {content_fingerprint(part): exclusive_topics(part) for part in self.numbering}


def read_topologies(
    own: CarriedTopologies,
    reports: Sequence[TopologyReport],
    memory: TopologyMemory,
    *,
    leader_id: str | None,
) -> GroupTopologies:
    """Return who can run what.

    Args:
        own: what the leader carries.
        reports: of every member whose subscription can be read.
        memory: of the rebalance before.
        leader_id: member id of the leader, whose memory of reached versions is believed.
    """
    own_key = (program_fingerprint(own), _newest(own))
    has_jvm = any(report.is_jvm for report in reports)
    known = _described(own, own_key, reports, memory)
    keys = {_key(report, own_key) for report in reports if report.is_native}
    # JVM members were there first: they have the lowest version of the topology.
    group_key = min(keys, key=lambda key: (key[1], key != own_key, key[0]), default=own_key)
    group_key = group_key if has_jvm else own_key
    base = known.get(group_key, own)
    numbering = [*base.subtopologies, *(memory.appended if base is own else ())]
    places = {content_fingerprint(part): part.id for part in numbering}
    by_member: dict[str, MemberForms] = {}
    refused: dict[str, str] = {}
    asked: set[str] = set()
    for report in sorted(reports, key=_by_id):
        key = group_key if report.is_jvm else _key(report, own_key)
        carried = known.get(key)
        rule = _rule(report, memory, carried, fits=key == group_key if has_jvm else None)
        if rule.treatment == "ask":
            asked.add(report.member_id)
        elif rule.treatment == "refuse" or carried is None:
            refused[report.member_id] = f"{_versions_text(report)}: {rule.why}"
        else:
            by_member[report.member_id] = _numbered(carried, numbering, places)
    live = frozenset(form for forms in by_member.values() for form in forms.versions)
    is_mixed = len(keys | {group_key}) > 1 or len(base.all_versions) > 1 or bool(asked)
    gone = memory.live - live
    kept = len(own.subtopologies) if is_mixed and base is own else len(numbering)
    return GroupTopologies(
        is_mixed=is_mixed,
        numbering=tuple(numbering) if is_mixed else base.subtopologies,
        retired=tuple(part for part in numbering if content_fingerprint(part) in gone),
        by_member=by_member,
        refused=refused,
        asked=frozenset(asked),
        carriers=_carriers(reports, by_member, leader_id),
        memory=TopologyMemory(
            appended=tuple(numbering[kept:]),
            described={key: known[key] for key in sorted(keys & known.keys())},
            asked=frozenset(asked | refused.keys() & memory.asked),
            live=live,
        ),
    )


def _rule(
    report: TopologyReport,
    memory: TopologyMemory,
    carried: CarriedTopologies | None,
    *,
    fits: bool | None,
) -> MemberRule:
    """The rule for a member; `fits` is None where the group has no JVM member."""
    return topology_member_rule(
        MemberNumbers(
            is_native=not report.is_jvm,
            beside_jvm=fits is not None,
            is_group_topology=fits is not False,
            is_described=carried is not None,
            was_asked=report.member_id in memory.asked,
        )
    )


def _by_id(report: TopologyReport) -> str:
    return report.member_id


def _newest(carried: CarriedTopologies) -> int:
    return max(carried.all_versions, default=1)


def _key(report: TopologyReport, own_key: tuple[bytes, int]) -> tuple[bytes, int]:
    """What identifies a member's program; a member that names no topology has the leader's."""
    return (report.fingerprint, report.version) if report.fingerprint else own_key


def _described(
    own: CarriedTopologies,
    own_key: tuple[bytes, int],
    reports: Sequence[TopologyReport],
    memory: TopologyMemory,
) -> dict[tuple[bytes, int], CarriedTopologies]:
    """What each program carries, as far as the leader knows it; its own topology before others."""
    known = dict(memory.described)
    for report in reports:
        carried = carried_from(report.rows) if report.rows else None
        if carried is not None:
            known[_key(report, own_key)] = carried
    for report in reports:
        # The same topology under another version number needs no description.
        if report.fingerprint == own_key[0] and len(own.all_versions) <= 1:
            known[report.fingerprint, report.version] = plain(own.subtopologies, report.version)
    return known | {own_key: own}


def _numbered(
    carried: CarriedTopologies, numbering: list[Subtopology], places: dict[bytes, int]
) -> MemberForms:
    """What a member can run; subtopologies that the group does not number yet are appended."""
    to_group: list[int] = []
    versions: dict[bytes, tuple[int, ...]] = {}
    for part, contained in zip(carried.subtopologies, carried.versions, strict=True):
        form = content_fingerprint(part)
        if form not in places and len(numbering) < MOST_NUMBERED:
            places[form] = len(numbering)
            numbering.append(replace(part, id=len(numbering)))
        to_group.append(places.get(form, NOT_HERE))
        if form in places:
            versions[form] = contained
    return MemberForms(to_group=tuple(to_group), versions=versions)


def _carriers(
    reports: Sequence[TopologyReport], by_member: Mapping[str, MemberForms], leader_id: str | None
) -> tuple[Carrier, ...]:
    return tuple(
        Carrier(
            member_id=report.member_id,
            process=report.process,
            forms=by_member[report.member_id].versions,
            reached=report.reached,
            leads=report.member_id == leader_id,
        )
        for report in reports
        if report.member_id in by_member
    )


def _versions_text(report: TopologyReport) -> str:
    name = report.fingerprint.hex() or "none"
    return f"topology {shown(name)}, version {report.version}"
