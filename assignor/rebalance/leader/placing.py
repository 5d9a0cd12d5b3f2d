"""From subscriptions to a placement: clients, strategy, threads.

A strategy sees processes; each of their threads is a member of the group. A strategy that fails or
breaks a rule is reported and asked again later, so that one mistake never stops a group.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from assignor.config import AssignmentConfig
from assignor.placement import (
    ClientInput,
    GroupState,
    Strategy,
    TaskAssignment,
    group_state,
    is_stuck,
)
from assignor.rebalance.leader.answer_bytes import Placement
from assignor.rebalance.leader.claims import FIRST_BACKOFF_MS, NO_CLAIMS, ClaimMemory, Claims
from assignor.rebalance.leader.stalled_copies import (
    NONE_STALLED,
    StalledCopies,
    news_of,
    remembered_lags,
    stalled_now,
)
from assignor.rebalance.leader.strategy_attempts import (
    NO_FAILURES,
    Attempt,
    StrategyFailures,
    attempt,
)
from assignor.rebalance.leader.subscriptions import (
    UNKNOWN_GENERATION,
    ReadMember,
    clients_of,
    endpoints_of,
    previous_standbys,
    previous_tasks,
)
from assignor.rebalance.leader.threads import assign_actives, assign_threads
from assignor.topology import SubtopologyWaits, TaskPlan
from encoding import TaskId, TopicPartition, shown
from probing import Content
from probing.features import UNKNOWN_LEVELS, FinalizedLevels

_LISTED = 3
_TasksByMember = dict[str, tuple[TaskId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A placement, what is to be said of it, and what to remember for the next one.

    `frozen` are the tasks of which a quarantined member keeps partitions.
    """

    placement: Placement
    warnings: tuple[str, ...] = ()
    frozen: frozenset[TaskId] = frozenset()
    lags: Mapping[str, Mapping[TaskId, int]] = field(default_factory=dict)
    failures: StrategyFailures = NO_FAILURES
    stalled: StalledCopies = NONE_STALLED


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderKnowledge:
    """What a leader has learnt outside the subscriptions; everything is optional.

    Attributes:
        end_offset_sums: stateful task -> sum of its changelogs' end offsets; None: not known now.
        lags_before: process id -> `least_lags` at the rebalance before; a warm-up that comes no
            nearer does not keep probing rebalances going.
        failures: what the rebalance before left to remember of a strategy that failed.
        stalled: what it left to remember of copies that came no nearer.
        levels: the newest finalized levels that this leader knows; a member that says newer ones
            corrects it (KIP-584).
        persistent_version: what this leader's own stores are written in (KIP-384); 0: it has none.
        leader_id: member id of this leader; its answer carries the time of the next look.
        now_ms: epoch milliseconds.
        claims: what this leader gave to whom and withheld for whom, if it led the one before.
        generation: of this rebalance; -1 where the client does not say.
        waits: subtopology id -> why its tasks cannot be handed out; tasks that ran already go on,
            unless the subtopology is refused.
    """

    end_offset_sums: Mapping[TaskId, int] | None = None
    lags_before: Mapping[str, Mapping[TaskId, int]] = field(default_factory=dict)
    failures: StrategyFailures = NO_FAILURES
    stalled: StalledCopies = NONE_STALLED
    levels: FinalizedLevels = UNKNOWN_LEVELS
    persistent_version: int = 0
    leader_id: str | None = None
    now_ms: int = 0
    claims: ClaimMemory = NO_CLAIMS
    generation: int = UNKNOWN_GENERATION
    waits: Mapping[int, SubtopologyWaits] = field(default_factory=dict)


def place_tasks(
    read: Sequence[ReadMember],
    plan: TaskPlan,
    *,
    strategy: Strategy,
    config: AssignmentConfig,
    quarantined: frozenset[str],
    knowledge: LeaderKnowledge,
    claims: Claims,
) -> Placed:
    """Tasks to clients by the strategy, then to threads; what a quarantined member owns stays.

    Args:
        read: every member of the generation.
        plan: all tasks.
        strategy: places tasks on clients; where it fails they stay, and it is asked again later.
        config: settings for the strategy.
        quarantined: ids of members whose bytes cannot be read or believed.
        knowledge: what the leader knows besides.
        claims: which of the members' claims are believed.

    Raises:
        TaskAssignmentError: the strategy failed, and tasks cannot stay where they are either.
    """
    kept = held_by_quarantined(read, plan, quarantined, claims)
    able = [one for one in read if one.member.member_id not in quarantined]
    clients = _clients(able, plan, config, knowledge, claims)
    if not clients:
        return _without_clients(kept, knowledge)
    state = group_state(
        tasks=plan.partitions_by_task.keys() - kept.tasks,
        stateful_tasks=plan.stateful_tasks,
        clients=clients,
        config=config,
        end_offset_sums=knowledge.end_offset_sums,
    )
    tried = attempt(strategy, state, before=knowledge.failures, now_ms=knowledge.now_ms)
    stalled, news = _stalled(state, tried, config, knowledge)
    active, standby, warmup = _by_thread(able, state, tried.assignment, plan, claims)
    return Placed(
        placement=Placement(
            active_by_member=active,
            standby_by_member=standby,
            warmup_by_member=warmup,
            partitions_by_member=kept.partitions_by_member,
            endpoint_by_member=endpoints_of(able),
            next_rebalance_ms=_next_look(tried, stalled, config, knowledge, kept.tasks),
        ),
        warnings=(*state.warnings, *news, *tried.warnings, *kept.warnings),
        frozen=kept.tasks,
        lags=remembered_lags(clients, state, tried.assignment),
        failures=tried.failures,
        stalled=stalled,
    )


def _clients(
    able: Sequence[ReadMember],
    plan: TaskPlan,
    config: AssignmentConfig,
    knowledge: LeaderKnowledge,
    claims: Claims,
) -> list[ClientInput]:
    """The processes of the members, those marked whose copies came no nearer."""
    clients = clients_of(
        able,
        plan.task_by_partition,
        knowledge.end_offset_sums or {},
        knowledge.lags_before,
        claims.ignored,
    )
    was_stuck = knowledge.stalled.stuck_at(knowledge.now_ms)
    limit = config.acceptable_recovery_lag
    return [
        replace(one, stuck=is_stuck(one, limit, was_stuck=one.process_id in was_stuck))
        for one in clients
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptByQuarantined:
    """What members keep whose bytes cannot be read.

    Attributes:
        partitions_by_member: of believed claims, by member id; one entry for each of them.
        tasks: those that nobody else can be given therefore.
        warnings: of tasks that nobody can run, since such a member has a part of their inputs.
    """

    partitions_by_member: Mapping[str, tuple[TopicPartition, ...]]
    tasks: frozenset[TaskId]
    warnings: tuple[str, ...]


def held_by_quarantined(
    read: Sequence[ReadMember], plan: TaskPlan, quarantined: AbstractSet[str], claims: Claims
) -> KeptByQuarantined:
    """Partitions that members with unreadable bytes keep, as far as they are believed."""
    kept: dict[str, tuple[TopicPartition, ...]] = {}
    frozen: set[TaskId] = set()
    warnings: list[str] = []
    for one in read:
        if (member := one.member.member_id) not in quarantined:
            continue
        owned = [
            p
            for p in one.member.owned_partitions or ()
            if p in plan.task_by_partition and claims.is_believed(member, plan.task_by_partition[p])
        ]
        kept[member] = tuple(owned)
        tasks = sorted({plan.task_by_partition[p] for p in owned})
        halves = [t for t in tasks if not set(plan.partitions_by_task[t]) <= set(owned)]
        frozen.update(tasks)
        if halves:
            warnings.append(
                f"nobody runs {', '.join(map(str, halves[:_LISTED]))} ({len(halves)} tasks): the"
                f" quarantined member {shown(member)} owns a part of their inputs"
            )
    return KeptByQuarantined(
        partitions_by_member=kept, tasks=frozenset(frozen), warnings=tuple(warnings)
    )


def _without_clients(kept: KeptByQuarantined, knowledge: LeaderKnowledge) -> Placed:
    """Nobody can be given tasks; what quarantined members have stays there."""
    return Placed(
        placement=Placement(partitions_by_member=kept.partitions_by_member),
        failures=knowledge.failures,
        stalled=knowledge.stalled,
        warnings=kept.warnings,
        frozen=kept.tasks,
    )


def _stalled(
    state: GroupState, tried: Attempt, config: AssignmentConfig, knowledge: LeaderKnowledge
) -> tuple[StalledCopies, tuple[str, ...]]:
    """What to remember of stalled copies, and the strategy's warnings that are news.

    While a strategy that failed is not asked, what is remembered stays as it was.
    """
    answer, before = tried.assignment, knowledge.stalled
    if tried.failures.count:
        return before, answer.warnings
    now = stalled_now(
        state,
        answer,
        before=before,
        now_ms=knowledge.now_ms,
        interval_ms=config.probing_rebalance_interval_ms,
    )
    return now, news_of(state, answer, before=before, now=now)


def _next_look(
    tried: Attempt,
    stalled: StalledCopies,
    config: AssignmentConfig,
    knowledge: LeaderKnowledge,
    frozen: AbstractSet[TaskId],
) -> dict[str, int]:
    """When the leader asks for a follow-up rebalance, if at all."""
    if knowledge.leader_id is None:
        return {}
    looks = []
    if frozen:
        wait_ms = knowledge.claims.backoff_ms(frozen) or FIRST_BACKOFF_MS
        looks.append(knowledge.now_ms + wait_ms)
    if tried.failures.count:
        looks.append(tried.failures.retry_at_ms)
    elif tried.assignment.followup:
        looks.append(knowledge.now_ms + config.probing_rebalance_interval_ms)
    elif stalled.look_at_ms:
        looks.append(stalled.look_at_ms)
    return {knowledge.leader_id: min(looks)} if looks else {}


def _by_thread(
    read: Sequence[ReadMember],
    state: GroupState,
    assignment: TaskAssignment,
    plan: TaskPlan,
    claims: Claims,
) -> tuple[_TasksByMember, _TasksByMember, _TasksByMember]:
    """Active, standby (warm-ups included) and warm-up tasks of every member."""
    members_by_client: dict[str, list[ReadMember]] = {}
    for one in read:
        members_by_client.setdefault(one.client, []).append(one)
    stateful: list[list[TaskId]] = [[] for _ in state.clients]
    stateless: list[list[TaskId]] = [[] for _ in state.clients]
    kinds = state.stateful.tolist()
    for task, number, kind in zip(state.tasks, assignment.active.tolist(), kinds, strict=True):
        (stateful if kind else stateless)[number].append(task)
    copies: list[list[TaskId]] = [[] for _ in state.clients]
    for index, number in assignment.standbys:
        copies[number].append(state.tasks[index])
    warming = {(state.tasks[index], number) for index, number in assignment.warmups}
    active: _TasksByMember = {}
    standby: _TasksByMember = {}
    warmup: _TasksByMember = {}
    for number, process_id in enumerate(state.clients):
        group = members_by_client[process_id]
        names = [one.member.member_id for one in group]
        ran: dict[TaskId, str] = {}
        held: dict[TaskId, str] = {}
        for one in group if len(group) > 1 else ():  # a single thread gets all there is
            name = one.member.member_id
            previous = previous_tasks(one, plan.task_by_partition)
            ran |= dict.fromkeys(previous - claims.ignored.get(name, set()), name)
            held |= dict.fromkeys(previous_standbys(one), name)
        active |= assign_actives(
            stateful[number], stateless[number], threads=names, owner_by_task=ran
        )
        load = {name: len(active[name]) for name in names}
        dealt = assign_threads(
            copies[number], threads=names, owner_by_task=held, load_by_thread=load
        )
        standby |= dealt
        for name, tasks in dealt.items():
            warm = tuple(task for task in tasks if (task, number) in warming)
            warmup |= {name: warm} if warm else {}
    return active, standby, warmup


def keep_previous(
    read: Sequence[ReadMember], plan: TaskPlan, content: Mapping[str, Content]
) -> Placement:
    """Probing as leaders up to 2.5 answered it: old members keep, future ones get the rest or none.

    Up to 2.3 every thread of a client was given all tasks that the client ran.
    """
    task_by_partition = plan.task_by_partition
    by_client: dict[str, set[TaskId]] = {}
    for one in read:
        by_client.setdefault(one.client, set()).update(previous_tasks(one, task_by_partition))
    takers = sorted(member for member, kind in content.items() if kind is Content.NORMAL)
    active: dict[str, tuple[TaskId, ...]] = {}
    given: set[TaskId] = set()
    for one in read:
        if content[one.member.member_id] is Content.PREVIOUS:
            # Who hands tasks to future members is a leader of 2.4 or 2.5, which told threads apart.
            ran = previous_tasks(one, task_by_partition) if takers else by_client[one.client]
            mine = ran & plan.partitions_by_task.keys() - (given if takers else set())
            active[one.member.member_id] = tuple(sorted(mine))
            given |= mine
    rest = sorted(plan.partitions_by_task.keys() - given)
    for place, member in enumerate(takers):
        active[member] = tuple(rest[place :: len(takers)])
    return Placement(active_by_member=active, endpoint_by_member=endpoints_of(read))
