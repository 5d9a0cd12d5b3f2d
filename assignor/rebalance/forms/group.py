"""Which subtopologies each member of a group can run, and how the group numbers them.

A number is of one topology only. A leader numbers the subtopologies of its own topology as that
does, and appends those that only other members have, in the order in which it first saw them.
Beside JVM members all members must have one topology, whose numbers hold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.rebalance.forms.admission import Admission
from assignor.rebalance.forms.asking import ASKS_MOST, TopologyMemory, asked_now
from assignor.rebalance.forms.numbering import Numbering, numbered
from assignor.rebalance.forms.programs import Programs, contents_of, read_programs
from assignor.rebalance.forms.reports import (
    ProgramKey,
    has_valid_version,
    key_of,
    reached_of,
    report_of,
)
from assignor.topology import (
    CarriedTopologies,
    Subtopology,
    content_fingerprint,
    exclusive_topics,
    with_sinks,
)
from encoding import Subscription, TaskId, shown
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
        table: the numbers of each member's subtopologies, of the members that can be given tasks.
        refused: member id -> why it gets no tasks.
        asked: members that have to describe their topology first.
        warnings: about contradicting descriptions of a program.
        carriers: the members that can be given tasks, for the rules.
        memory: for the next rebalance.
        ran: member id -> tasks, by its own numbers, that it ran until it was asked to describe its
            topology in the rebalance before; they are its tasks still.
    """

    is_mixed: bool
    numbering: tuple[Subtopology, ...]
    base_size: int
    table: Numbering
    refused: Mapping[str, str]
    asked: frozenset[str]
    carriers: tuple[Carrier, ...]
    memory: TopologyMemory
    warnings: tuple[str, ...] = ()
    ran: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)

    @property
    def planned(self) -> tuple[Subtopology, ...]:
        """The subtopologies that have tasks: those of the base, and those that a member can run.

        Each has the sink topics of all members: they decide how wide repartition topics are.
        """
        parts = (
            part
            for part in self.numbering
            if part.id < self.base_size or content_fingerprint(part) in self.table.live
        )
        return with_sinks(parts, self.memory.sinks)

    @property
    def waits_for_asked(self) -> bool:
        """Whether tasks stay where they are until the asked members have answered."""
        return bool(self.asked) and self.memory.asks <= ASKS_MOST

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
    subscriptions: Mapping[str, Subscription],
    memory: TopologyMemory,
    *,
    leader_id: str | None,
    partition_counts: Mapping[str, int],
    generation: int = -1,
    known: Mapping[bytes, Reached] | None = None,
) -> GroupTopologies:
    """Return who can run what.

    Args:
        own: what the leader carries.
        subscriptions: of every member that can be read.
        memory: of the rebalance before.
        leader_id: member id of the leader, whose memory of reached versions is believed.
        partition_counts: external topic -> number of partitions; others are not known.
        generation: of this rebalance; -1 if unknown.
        known: what the leader remembers besides its subscription. Entries of forms that no member
            carries or remembers are not used: anyone who may write beside the levels adds them.
    """
    subscriptions = dict(sorted(subscriptions.items()))
    programs = read_programs(own, subscriptions, memory.described)
    base = programs.base
    refusals = _not_admitted(programs, subscriptions, memory, partition_counts)
    treated = {
        member: _treatment(programs, member, value, refusals, memory)
        for member, value in subscriptions.items()
    }
    accepted = {m: programs.by_member[m] for m, (how, _) in treated.items() if how in _ACCEPTED}
    asked = frozenset(member for member, (how, _) in treated.items() if how == "ask")
    refused = {member: why for member, (how, why) in treated.items() if how == "refuse"}
    is_mixed = bool(asked) or _are_several(programs, accepted)
    is_own = base is own
    table = numbered(base, accepted, memory.appended if is_own else (), memory.live)
    carriers = _carriers(accepted, subscriptions, table, leader_id, known or {})
    return GroupTopologies(
        is_mixed=is_mixed,
        numbering=table.numbering if is_mixed else base.subtopologies,
        base_size=len(base.subtopologies),
        table=table,
        refused=refused,
        asked=asked,
        carriers=carriers,
        warnings=tuple(filter(None, programs.warnings)),
        ran=memory.ran if generation in {-1, memory.asked_in + 1} else {},
        memory=TopologyMemory(
            appended=table.numbering[len(base.subtopologies) :] if is_mixed and is_own else (),
            described=_described(programs, refusals),
            asked=asked_now(memory, asked, refused.keys(), generation),
            ran={member: subscriptions[member].prev_tasks for member in sorted(asked)},
            asked_in=generation if asked else -1,
            asks=memory.asks + 1 if asked else 0,
            live=table.live,
            sinks=_sinks(carriers) if is_mixed else {},
        ),
    )


_ACCEPTED = frozenset({"carries", "jvm"})


def _treatment(
    programs: Programs,
    member: str,
    value: Subscription,
    refusals: Mapping[CarriedTopologies, str],
    memory: TopologyMemory,
) -> tuple[Treatment, str]:
    """Return what the leader does with a member, and why."""
    carried, asked = programs.by_member.get(member), memory.asked.get(member)
    numbers = MemberNumbers(
        is_native=value.native is not None,
        beside_jvm=programs.has_jvm,
        is_group_topology=value.native is None
        or (
            key_of(value, programs.own_key) == programs.base_key
            and (carried is None or contents_of(carried) == contents_of(programs.base))
        ),
        is_described=carried is not None,
        was_asked=asked is not None,
        missed=0 if asked is None else asked.missed(report_of(value)),
        has_valid_version=has_valid_version(value),
        contradiction=refusals.get(carried, "") if carried else "",
    )
    rule, native = first(topologies.TOPOLOGY_MEMBER_RULES, numbers), report_of(value)
    name = shown(native.fingerprint.hex() or "none")
    why = f"topology {name}, version {native.topology_version}: {rule.sentence(numbers)}"
    return rule.says, why


def _not_admitted(
    programs: Programs,
    subscriptions: Mapping[str, Subscription],
    memory: TopologyMemory,
    partition_counts: Mapping[str, int],
) -> dict[CarriedTopologies, str]:
    """Programs that do not go together with others, and why.

    Of two programs that contradict each other, the one of more processes is admitted; of equally
    many, the one that was described in the rebalance before.
    """
    processes: dict[CarriedTopologies, set[str]] = {}  # in the order of their first members
    for member, value in subscriptions.items():
        carried = programs.by_member.get(member)
        if carried is not None and carried != programs.base:
            processes.setdefault(carried, set()).add(str(value.process_id))
    remembered = set(memory.described.values())
    ordered = sorted(processes, key=lambda c: (-len(processes[c]), c not in remembered))
    admission = Admission(own=programs.base.subtopologies, partition_counts=partition_counts)
    return {carried: why for carried in ordered if (why := admission.admit(carried))}


def _carriers(
    programs: Mapping[str, CarriedTopologies],
    subscriptions: Mapping[str, Subscription],
    table: Numbering,
    leader_id: str | None,
    known: Mapping[bytes, Reached],
) -> tuple[Carrier, ...]:
    reached = {m: reached_of(report_of(v).reached_versions) for m, v in subscriptions.items()}
    concerned = table.live.union(*reached.values())
    if leader_id in reached:
        added = {form: entry for form, entry in known.items() if form in concerned}
        reached[leader_id] = greatest(reached[leader_id], added)
    carriers = []
    for member, carried in programs.items():
        rows = zip(contents_of(carried), carried.subtopologies, carried.versions, strict=True)
        live = [row for row in rows if row[0] in table.live]
        carriers.append(
            Carrier(
                member_id=member,
                process=str(subscriptions[member].process_id),
                forms={form: versions for form, _, versions in live},
                reached=reached[member],
                leads=member == leader_id,
                writes={form: frozenset(part.sink_topics) for form, part, _ in live},
            )
        )
    return tuple(carriers)


def _sinks(carriers: tuple[Carrier, ...]) -> dict[bytes, frozenset[str]]:
    """Content of a subtopology -> topics that any member writes when it runs it."""
    found: dict[bytes, frozenset[str]] = {}
    for carrier in carriers:
        for form, topics in carrier.writes.items():
            found[form] = topics | found.get(form, frozenset())
    return found


def _are_several(programs: Programs, accepted: Mapping[str, CarriedTopologies]) -> bool:
    """Whether members have different topologies, or carry several versions."""
    if len(programs.keys | {programs.base_key}) > 1 or len(programs.base.all_versions) > 1:
        return True
    return any(
        contents_of(carried) != contents_of(programs.base) for carried in {*accepted.values()}
    )


def _described(
    programs: Programs, refusals: Mapping[CarriedTopologies, str]
) -> dict[ProgramKey, CarriedTopologies]:
    """The programs of members, as they describe them; without those that contradict others."""
    known = programs.described
    keys = sorted(programs.keys & known.keys())
    return {key: known[key] for key in keys if known[key] not in refusals}
