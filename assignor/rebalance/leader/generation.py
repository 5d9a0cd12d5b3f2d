"""What a leader has decided about a generation before tasks are placed.

`read_group` decodes the subscriptions and plans the tasks. `decide_versions` restricts the
subscriptions to what the group can contain and decides versions, levels, runnable tasks and
believed claims. Everything after it (placing, withholding, writing) works with the `Generation`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter

from assignor.errors import LeaderRefused
from assignor.rebalance.leader.boundary import Decoded, decode_members, restrict_members
from assignor.rebalance.leader.claims import Claims, believed_tasks, check_claims
from assignor.rebalance.leader.knowledge import (
    LeaderInputs,
    LeaderMemory,
    LeaderSettings,
    unknown_topic,
)
from assignor.rebalance.leader.members import GroupMember, ReadMember, of_plan, wants_shutdown
from assignor.rebalance.leader.parts.absent import GroupLevels, LeaderParts, OneTopology
from assignor.topology import SubtopologyWaits, TaskPlan, only_tasks
from encoding import AssignorError, Subscription, shown
from probing import Content, LeaderDecision, Release, decide_answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group with its subscriptions decoded once, and the tasks of all its subtopologies.

    Attributes:
        settings, parts: of the leader.
        members: every member of the generation, sorted.
        decoded: member id -> its subscription, in its own task numbers, or why it cannot be read.
        topologies: which member can run what.
        plan: the tasks; plan_warnings: about subtopologies that have none.
        memory, inputs: as given, without what is about other tasks.
    """

    settings: LeaderSettings
    parts: LeaderParts
    members: tuple[GroupMember, ...]
    decoded: Mapping[str, Decoded]
    topologies: OneTopology
    plan: TaskPlan
    plan_warnings: tuple[str, ...]
    memory: LeaderMemory
    inputs: LeaderInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A group with everything decided but the placement.

    Attributes:
        group: what the leader has read.
        members: those that support the finalized levels, unreadable and excluded ones among them;
            `able_members` is without these two.
        natives: members that read native bodies, by id.
        plan: the tasks that can be assigned now.
        decision: versions and contents of the answers, by `probing`.
        levels: what finalized levels mean in the group.
        topologies: which tasks run, and who can run them.
        claims: which claims of members are believed.
        quarantined: member id -> why its bytes are not used.
        joined: (member id, used version, latest supported version) of every readable member.
        warnings: for the operator.
        transient: see `Replies`.
    """

    group: Group
    members: tuple[ReadMember, ...]
    natives: Mapping[str, ReadMember]
    plan: TaskPlan
    decision: LeaderDecision
    levels: GroupLevels
    topologies: OneTopology
    claims: Claims
    quarantined: Mapping[str, str]
    joined: tuple[tuple[str, int, int], ...]
    warnings: tuple[str, ...]
    transient: frozenset[str] = frozenset()

    @property
    def settings(self) -> LeaderSettings:
        """Release, topology, configuration and strategy of the leader."""
        return self.group.settings

    @property
    def memory(self) -> LeaderMemory:
        """What the leader remembers of the rebalances before."""
        return self.group.memory

    @property
    def inputs(self) -> LeaderInputs:
        """What is true now."""
        return self.group.inputs

    @property
    def quarantined_ids(self) -> frozenset[str]:
        """Ids of the members whose bytes cannot be read or are not believed."""
        return frozenset(self.decision.quarantined_members)

    def able_members(self) -> list[ReadMember]:
        """The members that can be given tasks: all but quarantined and excluded ones."""
        left_out = self.quarantined_ids | self.topologies.excluded.keys()
        return [member for member in self.members if member.id not in left_out]


def read_group(
    settings: LeaderSettings,
    parts: LeaderParts,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    memory: LeaderMemory,
    inputs: LeaderInputs,
) -> Group:
    """Decode the subscriptions and plan the tasks.

    Args:
        settings: release, topology, configuration and strategy.
        parts: what differs between leaders.
        members: every member of the generation, this leader included.
        partition_counts: source topic -> partitions; subtopologies of a missing topic wait.
        memory: what the leader remembers of the rebalance before.
        inputs: what is true now.

    Raises:
        TaskAssignmentError: the leader's topology does not fit the partition counts.
    """
    decoded = decode_members(members, settings.release)
    topologies = OneTopology(settings.subtopologies)
    if parts.topologies is not None:
        readable = {m: value for m, value in decoded.items() if isinstance(value, Subscription)}
        topologies = parts.topologies(readable, partition_counts)
    plan, plan_warnings = topologies.plan(partition_counts)
    memory, inputs = topologies.usable(memory, inputs)
    return Group(
        settings=settings,
        parts=parts,
        members=tuple(sorted(members, key=attrgetter("member_id"))),
        decoded=decoded,
        topologies=topologies,
        plan=plan,
        plan_warnings=plan_warnings,
        memory=memory,
        inputs=inputs,
    )


def decide_versions(group: Group, ignored: Mapping[str, str]) -> Generation:
    """Restrict what the members wrote, and decide everything but the placement.

    Args:
        group: as read.
        ignored: member id -> why its bytes are not used, whatever they contain.

    Raises:
        LeaderRefused: a leader of this release fails on the group's versions, as Kafka's did.
    """
    memory, inputs = group.memory, group.inputs
    everyone = _restricted(group, ignored)
    levels = group.parts.levels(everyone)
    taskless = {**levels.lacking, **group.topologies.excluded}
    decision = _decided_answers(group.settings.release, everyone, levels, taskless)
    members = tuple(member for member in everyone if member.id not in levels.lacking)
    waiting = _waiting_subtopologies(members, inputs.waits)
    runnable = {t for t in group.plan.partitions_by_task if t.subtopology not in waiting}
    running = partial(believed_tasks, members, memory.claims, generation=inputs.generation)
    topologies, plan = group.topologies.select(
        only_tasks(group.plan, runnable), members, running, levels.topology
    )
    if plan is not group.plan:
        members = tuple(of_plan(member, plan) for member in members)
    quarantined = {
        member.id: member.why_quarantined for member in members if member.why_quarantined
    }
    claims = check_claims(members, memory.claims, generation=inputs.generation)
    waits, transient = _waits(plan, waiting, inputs.waits)
    return Generation(
        group=group,
        members=members,
        natives={m.id: m for m in everyone if m.versions.native_version is not None},
        plan=plan,
        decision=decision,
        levels=levels,
        topologies=topologies,
        claims=claims,
        quarantined=quarantined,
        joined=tuple(
            (member.id, member.subscription.version, member.supported)
            for member in everyone
            if member.subscription is not None
        ),
        warnings=(
            *waits,
            *_left_out(group, quarantined, taskless),
            *(warning for member in everyone for warning in member.warnings),
            *levels.warnings,
            *claims.warnings,
        ),
        transient=transient,
    )


def _restricted(group: Group, ignored: Mapping[str, str]) -> list[ReadMember]:
    """The members, with tasks in the group's numbers."""
    decoded: dict[str, Decoded] = {**group.decoded, **ignored}
    for member, value in decoded.items():
        if isinstance(value, Subscription):
            decoded[member] = group.topologies.numbered(member, value)
    return restrict_members(group.members, decoded, group.plan, group.inputs.generation)


def _decided_answers(
    release: Release,
    members: Sequence[ReadMember],
    levels: GroupLevels,
    taskless: Collection[str],
) -> LeaderDecision:
    """The versions and contents of all answers; those of `taskless` members have no tasks."""
    decision = decide_answers(
        release, [member.versions for member in members], level=levels.protocol
    )
    if decision.ends:
        raise LeaderRefused(decision.why)
    contents = dict.fromkeys(taskless, Content.EMPTY)
    if any(map(wants_shutdown, members)):
        # Every member stops: each answer keeps its version and has error 4 and no tasks (KIP-671).
        decision = replace(decision, error_code=int(AssignorError.SHUTDOWN_REQUESTED))
        contents = {**dict.fromkeys((m.id for m in members), Content.ERROR), **contents}
    if not contents:
        return decision
    answers = (
        replace(answer, content=contents.get(answer.member_id, answer.content))
        for answer in decision.answers
    )
    return replace(decision, answers=tuple(answers))


def _waiting_subtopologies(
    members: Sequence[ReadMember], waits: Mapping[int, SubtopologyWaits]
) -> dict[int, str]:
    """Subtopologies without tasks this time; one that ran keeps running unless it is refused."""
    if not waits:
        return {}
    ran = {t.subtopology for member in members for t in (*member.ran, *member.standbys)}
    return {
        subtopology: reason.why
        for subtopology, reason in waits.items()
        if reason.refused or subtopology not in ran
    }


def _waits(
    plan: TaskPlan, waiting: Mapping[int, str], reasons: Mapping[int, SubtopologyWaits]
) -> tuple[list[str], frozenset[str]]:
    """Warnings about topics and subtopologies without tasks, and the temporary ones of them."""
    unknown = [unknown_topic(topic) for topic in plan.unknown_topics]
    waits = {number: f"subtopology {number} waits: {why}" for number, why in waiting.items()}
    passing = (waits[number] for number in waits if not reasons[number].refused)
    return [*unknown, *(waits[number] for number in sorted(waits))], frozenset((*unknown, *passing))


def _left_out(
    group: Group, quarantined: Mapping[str, str], taskless: Mapping[str, str]
) -> list[str]:
    """Warnings about members and subtopologies that are left out."""
    return [
        *(f"quarantined {shown(m)}: {shown(why)}" for m, why in sorted(quarantined.items())),
        *(f"{shown(member)} gets no tasks: {why}" for member, why in taskless.items()),
        *group.plan_warnings,
    ]
