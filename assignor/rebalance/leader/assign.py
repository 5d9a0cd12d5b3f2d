"""The group leader's half of a rebalance: subscriptions in, one answer per member out.

A pure function: metadata, end offsets and settings are handed in. The *version* of the answers is
decided by `probing`, the *tasks* by a strategy; this module joins the two. One member's bytes hurt
no other member: what they say is cut down to what can be (`boundary`), a member whose bytes cannot
be decoded is quarantined and reported, what members claim to own is believed for a few rebalances
(`claims`), and whatever a step raises nevertheless is traced to the member that causes it
(`suspects`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignor.config import AssignmentConfig
from assignor.errors import LeaderRefused, TaskAssignmentError
from assignor.placement import Strategy, high_availability
from assignor.rebalance.leader.answer_bytes import (
    GroupRequest,
    MemberAnswer,
    NativeMember,
    Placement,
)
from assignor.rebalance.leader.boundary import Bounds, read_member
from assignor.rebalance.leader.claims import NO_CLAIMS, ClaimMemory, Claims, judge_claims
from assignor.rebalance.leader.finalized_levels import (
    lacking_members,
    levels_of_group,
    without_tasks,
)
from assignor.rebalance.leader.group_answers import Answered, answer_group
from assignor.rebalance.leader.placing import LeaderKnowledge, Placed, keep_previous, place_tasks
from assignor.rebalance.leader.record_budget import GROUP_RECORD_LIMIT
from assignor.rebalance.leader.stalled_copies import NONE_STALLED, StalledCopies
from assignor.rebalance.leader.strategy_attempts import NO_FAILURES, StrategyFailures
from assignor.rebalance.leader.subscriptions import (
    GroupMember,
    ReadMember,
    previous_standbys,
    previous_tasks,
    versions_of,
    wants_shutdown,
)
from assignor.rebalance.leader.suspects import without_suspects
from assignor.topology import Subtopology, TaskPlan, plan_tasks, without_subtopologies
from encoding import AssignorError, TaskId, TopicPartition, View, ViewReference, shown
from probing import (
    EARLIEST_NATIVE_VERSION,
    Content,
    LeaderDecision,
    RebalanceProtocol,
    Release,
    decide_answers,
    protocol_level,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """What a leader knows besides the subscriptions.

    Attributes:
        release: whose versions it reads and whose rules it follows.
        subtopologies: of its own topology.
        config: settings for the strategy.
        strategy: places tasks on clients; `high_availability` by default.
        group_record_limit: bytes that the broker takes for all blobs of a group together.
    """

    release: Release
    subtopologies: tuple[Subtopology, ...]
    config: AssignmentConfig
    strategy: Strategy = high_availability
    group_record_limit: int = GROUP_RECORD_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """What the leader sends.

    Attributes:
        answers: member id -> partitions and user data; one entry for every member.
        decision: the versions, and the rule that fired.
        quarantined: member id -> why its bytes could not be read.
        joined: (member id, used version, latest supported version) of every readable member.
        warnings: what the operator should hear of.
        withheld: member id -> partitions that it waits for until their owners give them up.
        moved_tasks: active tasks that leave the process they ran on.
        lags: process id -> least lags, to be handed in as `LeaderKnowledge.lags_before` next time.
        claims: to be handed in as `LeaderKnowledge.claims` next time, if this answer was delivered
            and this leader leads the next generation, too.
        faults: what the leader failed at and how it went on: defects.
        failures, stalled: of the strategy and of copies that come no nearer; handed in next time.
    """

    answers: Mapping[str, MemberAnswer]
    decision: LeaderDecision
    quarantined: Mapping[str, str]
    joined: tuple[tuple[str, int, int], ...]
    warnings: tuple[str, ...]
    lags: Mapping[str, Mapping[TaskId, int]]
    withheld: Mapping[str, tuple[TopicPartition, ...]]
    failures: StrategyFailures = NO_FAILURES
    stalled: StalledCopies = NONE_STALLED
    moved_tasks: int = 0
    claims: ClaimMemory = NO_CLAIMS
    faults: tuple[str, ...] = ()


NOTHING_KNOWN = LeaderKnowledge()


def assign_group(
    settings: LeaderSettings,
    members: Sequence[GroupMember],
    partition_counts: Mapping[str, int],
    *,
    knowledge: LeaderKnowledge = NOTHING_KNOWN,
    held_view: View | None = None,
) -> GroupAnswer:
    """Decide the versions, place the tasks, write the answers.

    Args:
        settings: release, topology, configuration and strategy.
        members: every member of the generation, this leader included.
        partition_counts: source topic -> partitions; subtopologies of a missing one wait.
        knowledge: end offsets, lags of the rebalance before, the time: what the leader knows.
        held_view: the routing view that this leader got as a member, for deltas against it.

    Raises:
        LeaderRefused: a leader of this release dies of the group's versions, as Kafka's did.
        TaskAssignmentError: the topology does not fit the partition counts.
    """
    plan = plan_tasks(settings.subtopologies, partition_counts)
    call = _Call(
        settings=settings,
        members=tuple(sorted(members, key=_by_id)),
        plan=plan,
        knowledge=knowledge if settings.release.is_native else replace(knowledge, claims=NO_CLAIMS),
        held_view=held_view,
    )
    if not settings.release.is_native:
        return _assigned(call, {})
    answer, fault = without_suspects(
        lambda suspects: _assigned(call, suspects),
        [one.member_id for one in call.members if one.member_id != knowledge.leader_id],
        otherwise=lambda why: _assigned(call, {}, keeps_because=why),
    )
    return replace(answer, faults=(fault,)) if fault else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """The arguments of `assign_group`, with the plan that follows from them."""

    settings: LeaderSettings
    members: tuple[GroupMember, ...]
    plan: TaskPlan
    knowledge: LeaderKnowledge
    held_view: View | None


def _assigned(call: _Call, suspects: Mapping[str, str], *, keeps_because: str = "") -> GroupAnswer:
    """The answers of a generation.

    Args:
        call: the group.
        suspects: member id -> why its bytes are not used, whatever they say.
        keeps_because: why the strategy is not asked, and tasks stay where they run; empty: it is.
    """
    settings, knowledge = call.settings, call.knowledge
    bounds = Bounds(plan=call.plan, generation=knowledge.generation, suspects=suspects)
    read = [read_member(member, settings.release, bounds) for member in call.members]
    group_levels = levels_of_group(settings.release, read, knowledge.levels)
    levels = group_levels.levels
    decision = decide_answers(
        settings.release, [versions_of(one) for one in read], level=protocol_level(levels)
    )
    if decision.refusal is not None:
        raise LeaderRefused(decision.refusal.why)
    if any(wants_shutdown(one) for one in read):
        decision = _shut_down(decision)
    natives, joined = _natives(settings.release, read), _joined(read)
    lacking = lacking_members(read, levels)
    decision = without_tasks(decision, lacking.keys())
    doubts = [warning for one in read for warning in one.warnings]
    read = [one for one in read if one.member.member_id not in lacking]
    waiting = _waiting(read, call.plan, knowledge)
    plan = without_subtopologies(call.plan, waiting)
    quarantined = {one.member.member_id: one.unreadable for one in read if one.unreadable}
    request = GroupRequest(
        decision=decision,
        plan=plan,
        natives=natives,
        subscription_bytes={m.member_id: len(m.user_data) for m in call.members},
        known_versions=settings.release.readable_versions,
        held_view=call.held_view,
        limit=settings.group_record_limit,
        levels=levels,
        persistent_version=knowledge.persistent_version,
    )
    claims = judge_claims(read, plan, knowledge.claims, generation=knowledge.generation)
    answered = _answer(call, read, request, claims, keeps_because)
    return GroupAnswer(
        answers=answered.answers,
        decision=decision,
        quarantined=quarantined,
        joined=joined,
        warnings=(
            *_gaps(plan, waiting, quarantined, lacking),
            *doubts,
            *group_levels.warnings,
            *claims.warnings,
            *answered.warnings,
        ),
        lags=answered.placed.lags,
        withheld=answered.withheld,
        failures=answered.placed.failures,
        stalled=answered.placed.stalled,
        moved_tasks=_moved(read, plan, answered.placed.placement),
        claims=answered.claims,
    )


def _answer(
    call: _Call,
    read: Sequence[ReadMember],
    request: GroupRequest,
    claims: Claims,
    keeps_because: str,
) -> Answered:
    def place() -> Placed:
        if keeps_because:
            raise TaskAssignmentError(keeps_because)
        return _placed(call, read, request, claims)

    return answer_group(
        request,
        read,
        place,
        withholds=_withholds(call.settings.release),
        checks=call.settings.release.is_native,
        knowledge=call.knowledge,
        claims=claims,
    )


def _moved(read: Sequence[ReadMember], plan: TaskPlan, placement: Placement) -> int:
    """How many active tasks leave the process they ran on; withheld ones are on their way."""
    ran: dict[TaskId, set[str]] = {}
    for one in read:
        for task in previous_tasks(one, plan.task_by_partition):
            ran.setdefault(task, set()).add(one.client)
    return sum(
        one.client not in ran.get(task, {one.client})
        for one in read
        for task in placement.active_by_member.get(one.member.member_id, ())
    )


def _waiting(
    read: Sequence[ReadMember], plan: TaskPlan, knowledge: LeaderKnowledge
) -> dict[int, str]:
    """Subtopologies without tasks this time; one that ran goes on while nothing speaks against."""
    if not knowledge.waits:
        return {}
    ran = {t.subtopology for one in read for t in previous_tasks(one, plan.task_by_partition)}
    ran |= {t.subtopology for one in read for t in previous_standbys(one)}
    return {
        part: one.why for part, one in knowledge.waits.items() if one.refused or part not in ran
    }


def _gaps(
    plan: TaskPlan,
    waiting: Mapping[int, str],
    quarantined: Mapping[str, str],
    lacking: Mapping[str, str],
) -> list[str]:
    """What the operator should hear of topics, subtopologies and members that are left out."""
    told = [f"partition count of {topic} is not known yet" for topic in plan.unknown_topics]
    told += [f"subtopology {part} waits: {why}" for part, why in sorted(waiting.items())]
    told += [f"quarantined {shown(m)}: {shown(why)}" for m, why in sorted(quarantined.items())]
    return told + [f"{shown(member)} gets no tasks: {why}" for member, why in lacking.items()]


def _joined(read: Sequence[ReadMember]) -> tuple[tuple[str, int, int], ...]:
    return tuple(
        (one.member.member_id, one.subscription.version, one.supported)
        for one in read
        if one.subscription is not None
    )


def _placed(
    call: _Call, read: Sequence[ReadMember], request: GroupRequest, claims: Claims
) -> Placed:
    """Tasks by the strategy, or as old leaders kept them while a future member was there."""
    decision, plan = request.decision, request.plan
    content = {a.member_id: a.content for a in decision.answers}
    readable = content.keys() - set(decision.quarantined_members)
    if any(content[member] is Content.PREVIOUS for member in readable):
        return Placed(placement=keep_previous(read, plan, content))
    return place_tasks(
        read,
        plan,
        strategy=call.settings.strategy,
        config=call.settings.config,
        quarantined=frozenset(decision.quarantined_members),
        knowledge=call.knowledge,
        claims=claims,
    )


def _withholds(release: Release) -> bool:
    """Leaders since 2.4, and ours, wait for cooperative owners; eager members own nothing."""
    return release.is_native or release.rebalance_protocol is RebalanceProtocol.COOPERATIVE


def _natives(release: Release, read: Sequence[ReadMember]) -> dict[str, NativeMember]:
    """Members that read native bodies, as a leader of ours sees them; a JVM leader sees none."""
    natives = {}
    for one in read:
        versions = versions_of(one)
        theirs = versions.native_version
        if release.is_native and theirs is not None:
            version = max(
                (v for v in release.native_versions if v <= theirs), default=EARLIEST_NATIVE_VERSION
            )
            held, said = None, one.native
            # A static member, or one whose layout leaves that open, gets the view whole: after a
            # restart it gets these bytes again, and holds none that a change could be about.
            is_dynamic = said and said.instance_id is None and said.carries("instance_id")
            if said is not None and said.view_epoch >= 0 and is_dynamic:
                held = ViewReference(said.view_epoch, said.view_checksum)
            natives[one.member.member_id] = NativeMember(version=version, held=held)
    return natives


def _by_id(member: GroupMember) -> str:
    return member.member_id


def _shut_down(decision: LeaderDecision) -> LeaderDecision:
    """Everybody stops: error 4 and no tasks, in the version that all can read (KIP-671)."""
    return replace(
        decision,
        error_code=int(AssignorError.SHUTDOWN_REQUESTED),
        answers=tuple(replace(one, content=Content.ERROR) for one in decision.answers),
    )
