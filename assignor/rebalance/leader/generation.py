"""What a leader has decided about a generation before tasks are placed.

`read_generation` restricts the decoded subscriptions to what the group can contain and decides
versions, levels, runnable tasks and believed claims. Everything after it (placing, withholding,
writing) works with the `Generation`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from assignor.errors import LeaderRefused
from assignor.rebalance.forms import (
    GroupTopologies,
    Selection,
    reached_rows,
    restricted,
    retired_sentences,
    selected_plan,
)
from assignor.rebalance.leader.boundary import Bounds, Decoded, read_member
from assignor.rebalance.leader.claims import Claims, believed_tasks, check_claims
from assignor.rebalance.leader.finalized_levels import (
    lacking_members,
    levels_of_group,
    without_tasks,
)
from assignor.rebalance.leader.knowledge import LeaderKnowledge, LeaderSettings, unknown_topic
from assignor.rebalance.leader.members import (
    GroupMember,
    ReadMember,
    endpoints_of,
    kept_copies,
    of_plan,
    selection_of,
    view_to_refer_to,
    wants_shutdown,
)
from assignor.rebalance.leader.placements import Placement, merged_placements
from assignor.topology import TaskPlan, without_subtopologies
from encoding import (
    AssignorError,
    View,
    ViewReference,
    shown,
)
from encoding.native import ReachedRow
from probing import (
    EARLIEST_NATIVE_VERSION,
    Content,
    LeaderDecision,
    Release,
    decide_answers,
    protocol_level,
)
from probing.features import TOPOLOGY_VERSION, FinalizedLevels


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequest:
    """The arguments of `assign_group`, with what follows from them.

    ``decoded`` has the subscription of every member, or why it cannot be decoded. ``topologies`` is
    None under an emulated Kafka leader. ``plan_warnings`` are about subtopologies of other members.
    """

    settings: LeaderSettings
    members: tuple[GroupMember, ...]
    plan: TaskPlan
    knowledge: LeaderKnowledge
    held_view: View | None
    decoded: Mapping[str, Decoded]
    topologies: GroupTopologies | None = None
    plan_warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeMember:
    """What the leader needs to know of a native member to answer it.

    Attributes:
        version: native version of the body or trailer that it can read.
        held: the view that it reported, or None.
    """

    version: int
    held: ViewReference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A group as its leader has read it, with everything decided but the placement.

    Attributes:
        request: the arguments of `assign_group`.
        members: those that support the finalized levels, unreadable and excluded ones among them;
            `able_members` is without these two.
        plan: the tasks that can be assigned now.
        decision: versions and contents of the answers, by `probing`.
        levels: finalized levels that hold in the group from now on.
        natives: members that read native bodies, by id.
        claims: which claims of members are believed.
        quarantined: member id -> why its bytes are not used.
        joined: (member id, used version, latest supported version) of every readable member.
        warnings: for the operator.
        transient: see `GroupAnswer`.
        selection: which tasks run in which form; None: the group has one topology.
        excluded: members whose topology is refused or not known yet; they keep no tasks.
    """

    request: GroupRequest
    members: tuple[ReadMember, ...]
    plan: TaskPlan
    decision: LeaderDecision
    levels: FinalizedLevels
    natives: Mapping[str, NativeMember]
    claims: Claims
    quarantined: Mapping[str, str]
    joined: tuple[tuple[str, int, int], ...]
    warnings: tuple[str, ...]
    transient: frozenset[str] = frozenset()
    selection: Selection | None = None
    excluded: frozenset[str] = frozenset()

    @property
    def numbered_by(self) -> tuple[bytes, ...]:
        """Content of each subtopology, for answers; empty where all members run version 1."""
        topologies = self.request.topologies
        if topologies is None:
            return ()
        has_forms = topologies.is_mixed or not self.settings.carried.is_plain
        if not has_forms:
            return ()
        # A member need not know the numbers of subtopologies that have no tasks.
        needed = (task.subtopology + 1 for task in self.request.plan.partitions_by_task)
        return topologies.forms[: max(topologies.base_size, *needed, 0)]

    @property
    def reached(self) -> tuple[ReachedRow, ...]:
        """The memory of reached versions, for answers."""
        return () if self.selection is None else reached_rows(self.selection.reached)

    @property
    def describes(self) -> bool:
        """Whether members have to describe their topologies from now on."""
        topologies = self.request.topologies
        return topologies is not None and topologies.is_mixed

    def shares(self) -> list["Generation"]:
        """The generation once for each set of members that can run the same tasks."""
        selection = self.selection
        if selection is None:
            return [self]
        able = {member.id for member in self.able_members()}
        if selection.is_everything and all(able <= s.members for s in selection.shares):
            return [self]
        narrowed = []
        for share in selection.shares:
            plan = restricted(self.plan, share.tasks)
            members = tuple(
                of_plan(member, plan)
                for member in self.members
                if member.id in share.members or member.id not in able
            )
            narrowed.append(replace(self, plan=plan, members=members))
        return narrowed

    def joined_placement(self, placements: Sequence[Placement]) -> Placement:
        """The placement of the group: of its shares and pinned tasks; asked members join again."""
        asked = self.request.topologies.asked if self.request.topologies else ()
        if len(placements) == 1 and not asked and not (self.selection and self.selection.pinned):
            return placements[0]
        joined = merged_placements(placements)
        stateful, most = self.plan.stateful_tasks, self.settings.config.num_standby_replicas
        copies = kept_copies(self.able_members(), self.selection, stateful, most)
        active = dict(joined.active_by_member)
        for task, member in sorted(self.selection.pinned.items() if self.selection else ()):
            active[member] = tuple(sorted({*active.get(member, ()), task}))
        return replace(
            joined,
            active_by_member=active,
            standby_by_member={**joined.standby_by_member, **copies},
            endpoint_by_member=endpoints_of(self.able_members()),
            next_rebalance_ms={**joined.next_rebalance_ms, **dict.fromkeys(sorted(asked), 0)},
        )

    @property
    def knowledge(self) -> LeaderKnowledge:
        """What the leader knows besides the subscriptions."""
        return self.request.knowledge

    @property
    def settings(self) -> LeaderSettings:
        """Release, topology, configuration and strategy of the leader."""
        return self.request.settings

    @property
    def quarantined_ids(self) -> frozenset[str]:
        """Ids of the members whose bytes cannot be read or are not believed."""
        return frozenset(self.decision.quarantined_members)

    def able_members(self) -> list[ReadMember]:
        """The members that can be given tasks: all but quarantined and excluded ones."""
        left_out = self.quarantined_ids | self.excluded
        return [member for member in self.members if member.id not in left_out]


def read_generation(request: GroupRequest, ignored: Mapping[str, str]) -> Generation:
    """Read a group and decide everything but the placement.

    Args:
        request: the group.
        ignored: member id -> why its bytes are not used, whatever they contain.

    Raises:
        LeaderRefused: a leader of this release fails on the group's versions, as Kafka's did.
    """
    settings, knowledge, bounds = request.settings, request.knowledge, _bounds(request, ignored)
    everyone = [read_member(member, bounds) for member in request.members]
    group_levels = levels_of_group(settings.release, everyone, knowledge.levels)
    levels = group_levels.levels
    lacking = lacking_members(everyone, levels)
    members = tuple(member for member in everyone if member.id not in lacking)
    excluded = {} if request.topologies is None else request.topologies.excluded
    decision = without_tasks(
        _decide_versions(settings.release, everyone, levels), lacking.keys() | excluded.keys()
    )
    waiting = _waiting_subtopologies(members, knowledge)
    plan = without_subtopologies(request.plan, waiting)
    believed = partial(believed_tasks, members, knowledge.claims, generation=knowledge.generation)
    level = levels.level_of(TOPOLOGY_VERSION) or None
    selection = selection_of(request.topologies, plan, members, believed, level=level)
    plan = plan if selection is None else selected_plan(plan, selection)
    if plan is not request.plan:
        members = tuple(of_plan(member, plan) for member in members)
    quarantined = {
        member.id: member.why_quarantined for member in members if member.why_quarantined
    }
    claims = check_claims(members, knowledge.claims, generation=knowledge.generation)
    waits, transient = _waits(plan, waiting, knowledge)
    return Generation(
        request=request,
        members=members,
        plan=plan,
        decision=decision,
        levels=levels,
        natives=_native_members(settings.release, everyone),
        claims=claims,
        quarantined=quarantined,
        joined=tuple(
            (member.id, member.subscription.version, member.supported)
            for member in everyone
            if member.subscription is not None
        ),
        warnings=(
            *waits,
            *_left_out(request, quarantined, lacking | excluded),
            *(warning for member in everyone for warning in member.warnings),
            *group_levels.warnings,
            *claims.warnings,
        ),
        transient=transient,
        selection=selection,
        excluded=frozenset(excluded),
    )


def _bounds(request: GroupRequest, ignored: Mapping[str, str]) -> Bounds:
    return Bounds(
        plan=request.plan,
        generation=request.knowledge.generation,
        ignored=ignored,
        decoded=request.decoded,
        topologies=request.topologies,
    )


def _decide_versions(
    release: Release, members: Sequence[ReadMember], levels: FinalizedLevels
) -> LeaderDecision:
    decision = decide_answers(
        release, [member.versions for member in members], level=protocol_level(levels)
    )
    if decision.refusal is not None:
        raise LeaderRefused(decision.refusal.why)
    if not any(map(wants_shutdown, members)):
        return decision
    # Every member stops: each answer keeps its version and has error 4 and no tasks (KIP-671).
    return replace(
        decision,
        error_code=int(AssignorError.SHUTDOWN_REQUESTED),
        answers=tuple(replace(answer, content=Content.ERROR) for answer in decision.answers),
    )


def _waiting_subtopologies(
    members: Sequence[ReadMember], knowledge: LeaderKnowledge
) -> dict[int, str]:
    """Subtopologies without tasks this time; one that ran keeps running unless it is refused."""
    if not knowledge.waits:
        return {}
    ran = {t.subtopology for member in members for t in (*member.ran, *member.standbys)}
    return {
        subtopology: reason.why
        for subtopology, reason in knowledge.waits.items()
        if reason.refused or subtopology not in ran
    }


def _waits(
    plan: TaskPlan, waiting: Mapping[int, str], knowledge: LeaderKnowledge
) -> tuple[list[str], frozenset[str]]:
    """Warnings about topics and subtopologies without tasks, and those of them that will pass."""
    unknown = [unknown_topic(topic) for topic in plan.unknown_topics]
    waits = {number: f"subtopology {number} waits: {why}" for number, why in waiting.items()}
    passing = (waits[number] for number in waits if not knowledge.waits[number].refused)
    return [*unknown, *(waits[number] for number in sorted(waits))], frozenset((*unknown, *passing))


def _left_out(
    request: GroupRequest, quarantined: Mapping[str, str], taskless: Mapping[str, str]
) -> list[str]:
    """Warnings about members and subtopologies that are left out."""
    return [
        *(f"quarantined {shown(m)}: {shown(why)}" for m, why in sorted(quarantined.items())),
        *(f"{shown(member)} gets no tasks: {why}" for member, why in taskless.items()),
        *request.plan_warnings,
        *(retired_sentences(request.topologies) if request.topologies else ()),
    ]


def _native_members(release: Release, members: Sequence[ReadMember]) -> dict[str, NativeMember]:
    """Members that read native bodies, as a native leader sees them; a JVM leader sees none."""
    natives: dict[str, NativeMember] = {}
    for member in members if release.is_native else ():
        latest = member.versions.native_version
        if latest is not None:
            version = max(
                (v for v in release.native_versions if v <= latest), default=EARLIEST_NATIVE_VERSION
            )
            natives[member.id] = NativeMember(version=version, held=view_to_refer_to(member))
    return natives
