"""Which subtopologies each member of a group can run, and how the group numbers them.

A number is of one topology only. A leader numbers the subtopologies of its own topology as that
does, and appends those that only other members have, in the order in which it first saw them.
Beside JVM members all members must have one topology, whose numbers hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from assignor.rebalance.forms.admission import Admission
from assignor.rebalance.forms.asking import ASKS_MOST, Asked, TopologyMemory, asked_now
from assignor.rebalance.forms.numbering import MemberForms, Numbering, numbered
from assignor.rebalance.forms.programs import ProgramKey, Programs, key_of, read_programs
from assignor.rebalance.forms.reports import NOTHING_REACHED, TopologyReport
from assignor.topology import (
    HIGHEST_VERSION,
    CarriedTopologies,
    Subtopology,
    content_fingerprint,
    exclusive_topics,
    with_sinks,
)
from encoding import TaskId, shown
from probing import topologies
from probing.rules import first
from probing.topologies import Carrier, MemberNumbers, Reached, Treatment, greatest


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTopologies:
    """The topologies of a group.

    Attributes:
        is_mixed: members have different topologies, or carry several versions.
        numbering: every subtopology, by its number in the group.
        base_size: number of those of the leader, or of the JVM members' topology.
        by_member: members that can be given tasks.
        refused: member id -> why it gets no tasks.
        asked: members that have to describe their topology first.
        reused: numbers that were of another subtopology in the rebalance before.
        retired: subtopologies that members could run in the rebalance before, and none can now.
        warnings: about contradicting descriptions of a program.
        carriers: the members of `by_member`, for the rules.
        memory: for the next rebalance.
        ran: member id -> tasks, by its own numbers, that it ran until it was asked to describe its
            topology in the rebalance before; they are its tasks still.
    """

    is_mixed: bool
    numbering: tuple[Subtopology, ...]
    base_size: int
    by_member: Mapping[str, MemberForms]
    refused: Mapping[str, str]
    asked: frozenset[str]
    retired: tuple[Subtopology, ...]
    carriers: tuple[Carrier, ...]
    memory: TopologyMemory
    reused: frozenset[int] = frozenset()
    warnings: tuple[str, ...] = ()
    ran: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)

    @property
    def planned(self) -> tuple[Subtopology, ...]:
        """The subtopologies that have tasks: those of the base, and those that a member can run.

        Each has the sink topics of all members: they decide how wide repartition topics are.
        """
        live = {form for forms in self.by_member.values() for form in forms.versions}
        parts = (
            part
            for part in self.numbering
            if part.id < self.base_size or content_fingerprint(part) in live
        )
        return with_sinks(parts, self.memory.sinks)

    @property
    def waits_for_asked(self) -> bool:
        """Whether tasks stay where they are until the asked members have answered."""
        return bool(self.asked) and self.memory.asks <= ASKS_MOST

    def asked_after(
        self, ran: Mapping[str, tuple[TaskId, ...]], generation: int
    ) -> "GroupTopologies":
        """Return this with a memory of what the asked members ran.

        Args:
            ran: asked member -> tasks that it reports as running, by its own numbers.
            generation: of this rebalance; -1 if unknown.
        """
        return replace(self, memory=replace(self.memory, ran=ran, asked_in=generation))

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
    partition_counts: Mapping[str, int],
    generation: int = -1,
    known: Mapping[bytes, Reached] = NOTHING_REACHED,
) -> GroupTopologies:
    """Return who can run what.

    Args:
        own: what the leader carries.
        reports: of every member whose subscription can be read.
        memory: of the rebalance before.
        leader_id: member id of the leader, whose memory of reached versions is believed.
        partition_counts: external topic -> number of partitions; others are not known.
        generation: of this rebalance; -1 if unknown.
        known: what the leader remembers besides its subscription. Entries of forms that no member
            carries or remembers are not used: anyone who may write beside the levels adds them.
    """
    group = _read_group(own, reports, memory, partition_counts)
    base = group.base
    treated = {report.member_id: group.treatment(report) for report in sorted(reports, key=_by_id)}
    by_member = {
        report.member_id: carried
        for report in sorted(reports, key=_by_id)
        if (carried := group.carried_by(report)) is not None
        and treated[report.member_id][0] in {"carries", "jvm"}
    }
    asked = frozenset(member for member, (how, _) in treated.items() if how == "ask")
    refused = {
        report.member_id: f"{_versions_text(report)}: {treated[report.member_id][1]}"
        for report in reports
        if report.member_id not in by_member and report.member_id not in asked
    }
    is_mixed = bool(asked) or group.is_mixed({*by_member.values()})
    table = numbered(base, by_member, memory.appended if base is own else (), memory.live)
    return GroupTopologies(
        is_mixed=is_mixed,
        numbering=table.numbering if is_mixed else base.subtopologies,
        base_size=len(base.subtopologies),
        reused=table.reused,
        retired=table.retired,
        by_member=table.by_member,
        refused=refused,
        asked=asked,
        carriers=_carriers(reports, table.by_member, leader_id, known),
        warnings=tuple(filter(None, group.programs.warnings)),
        ran=memory.ran if generation in {-1, memory.asked_in + 1} else {},
        memory=TopologyMemory(
            appended=table.numbering[len(base.subtopologies) :] if is_mixed and base is own else (),
            described=group.remembered(),
            asked=asked_now(memory, asked, refused.keys(), generation),
            asks=memory.asks + 1 if asked else 0,
            live=table.live,
            sinks=_sinks(table, is_mixed=is_mixed),
        ),
    )


def _sinks(table: Numbering, *, is_mixed: bool) -> dict[bytes, frozenset[str]]:
    """Content of a subtopology -> topics that any member writes when it runs it."""
    found: dict[bytes, frozenset[str]] = {}
    for forms in table.by_member.values() if is_mixed else ():
        for form, topics in forms.writes.items():
            found[form] = topics | found.get(form, frozenset())
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """What the rule for a member depends on besides its report."""

    base: CarriedTopologies
    key: ProgramKey
    keys: frozenset[ProgramKey]
    has_jvm: bool
    programs: Programs
    contradictions: Mapping[CarriedTopologies, str]
    asked_before: Mapping[str, Asked]

    def remembered(self) -> dict[ProgramKey, CarriedTopologies]:
        """The programs of members, as they describe them; without those that contradict others."""
        known = self.programs.described
        return {
            key: known[key]
            for key in sorted(self.keys & known.keys())
            if known[key] not in self.contradictions
        }

    def is_mixed(self, programs: Iterable[CarriedTopologies]) -> bool:
        """Whether members have different topologies, or carry several versions."""
        if len(self.keys | {self.key}) > 1 or len(self.base.all_versions) > 1:
            return True
        return any(_contents(carried) != _contents(self.base) for carried in programs)

    def carried_by(self, report: TopologyReport) -> CarriedTopologies | None:
        """What a member can run; None: the leader does not know it."""
        return self.base if report.is_jvm else self.programs.by_member.get(report.member_id)

    def treatment(self, report: TopologyReport) -> tuple[Treatment, str]:
        """Return what the leader does with a member, and why."""
        carried = self.carried_by(report)
        fits = report.is_jvm or (
            key_of(report, self.programs.own_key) == self.key
            and (carried is None or _contents(carried) == _contents(self.base))
        )
        asked = self.asked_before.get(report.member_id)
        numbers = MemberNumbers(
            is_native=not report.is_jvm,
            beside_jvm=self.has_jvm,
            is_group_topology=fits,
            is_described=carried is not None,
            was_asked=asked is not None,
            missed=0 if asked is None else asked.missed(report),
            has_valid_version=_has_valid_version(report),
            contradiction=self.contradictions.get(carried, "") if carried else "",
        )
        rule = first(topologies.TOPOLOGY_MEMBER_RULES, numbers)
        return rule.says, rule.sentence(numbers)


def _read_group(
    own: CarriedTopologies,
    reports: Sequence[TopologyReport],
    memory: TopologyMemory,
    partition_counts: Mapping[str, int],
) -> _Group:
    """Read the programs of a group, choose the base, and check the others against it."""
    has_jvm = any(report.is_jvm for report in reports)
    programs = read_programs(own, reports, memory.described)
    own_key = programs.own_key
    keys = frozenset(key_of(r, own_key) for r in reports if r.is_native and _has_valid_version(r))
    # JVM members were there first: they have the lowest version of the topology.
    lowest = min(keys, key=lambda key: (key[1], key != own_key, key[0]), default=own_key)
    group_key = lowest if has_jvm else own_key
    base = programs.described.get(group_key, own)
    return _Group(
        base=base,
        key=group_key,
        keys=keys,
        has_jvm=has_jvm,
        programs=programs,
        contradictions=_not_admitted(base, reports, programs, memory, partition_counts),
        asked_before=memory.asked,
    )


def _not_admitted(
    base: CarriedTopologies,
    reports: Sequence[TopologyReport],
    programs: Programs,
    memory: TopologyMemory,
    partition_counts: Mapping[str, int],
) -> dict[CarriedTopologies, str]:
    """Programs that do not go together with others, and why.

    Of two programs that contradict each other, the one of more processes is admitted; of equally
    many, the one that was described in the rebalance before.
    """
    processes: dict[CarriedTopologies, set[str]] = {}
    first: dict[CarriedTopologies, str] = {}
    for report in sorted(reports, key=_by_id):
        carried = programs.by_member.get(report.member_id)
        if carried is not None and carried != base:
            processes.setdefault(carried, set()).add(report.process)
            first.setdefault(carried, report.member_id)
    remembered = set(memory.described.values())
    ordered = sorted(processes, key=lambda c: (-len(processes[c]), c not in remembered, first[c]))
    admission = Admission(own=base.subtopologies, partition_counts=partition_counts)
    return {carried: why for carried in ordered if (why := admission.admit(carried))}


def _contents(carried: CarriedTopologies) -> tuple[bytes, ...]:
    return tuple(map(content_fingerprint, carried.subtopologies))


def _by_id(report: TopologyReport) -> str:
    return report.member_id


def _has_valid_version(report: TopologyReport) -> bool:
    return 1 <= report.version <= HIGHEST_VERSION


def _carriers(
    reports: Sequence[TopologyReport],
    by_member: Mapping[str, MemberForms],
    leader_id: str | None,
    known: Mapping[bytes, Reached],
) -> tuple[Carrier, ...]:
    concerned = {form for forms in by_member.values() for form in forms.versions}
    concerned |= {form for report in reports for form in report.reached}
    added = {form: reached for form, reached in known.items() if form in concerned}
    return tuple(
        Carrier(
            member_id=report.member_id,
            process=report.process,
            forms=by_member[report.member_id].versions,
            reached=(
                greatest(report.reached, added) if report.member_id == leader_id else report.reached
            ),
            leads=report.member_id == leader_id,
            writes=by_member[report.member_id].writes,
        )
        for report in reports
        if report.member_id in by_member
    )


def _versions_text(report: TopologyReport) -> str:
    name = report.fingerprint.hex() or "none"
    return f"topology {shown(name)}, version {report.version}"
