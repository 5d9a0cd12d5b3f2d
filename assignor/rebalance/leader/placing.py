"""From a generation to a placement: clients, strategy, threads.

A strategy sees processes; each of their threads is a member of the group. A strategy that fails or
breaks a rule is reported and called again later, so that a single mistake never stops a group.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from assignor.placement import (
    ClientInput,
    GroupState,
    TaskAssignment,
    group_state,
    is_stuck,
    share_warnings,
)
from assignor.rebalance.leader.claims import FIRST_CLAIM_BACKOFF_MS, Claims
from assignor.rebalance.leader.generation import Generation
from assignor.rebalance.leader.members import ReadMember, clients_of, endpoints_of
from assignor.rebalance.leader.placements import Placement, with_client_ids
from assignor.rebalance.leader.stalled_copies import (
    StalledCopies,
    news_of,
    remembered_lags,
    stalled_now,
)
from assignor.rebalance.leader.strategy_attempts import StrategyFailures, attempt, failed_again
from assignor.rebalance.threads import assign_actives, assign_threads
from encoding import TaskId, TopicPartition, shown

_LISTED = 3
_TasksByMember = dict[str, tuple[TaskId, ...]]


def place_tasks(generation: Generation) -> Placement:
    """Tasks to clients by the strategy, then to threads; quarantined members keep what they own.

    If the strategy fails, tasks stay where they ran, and it is called again later.

    Raises:
        TaskAssignmentError: the strategy failed, and tasks cannot stay where they are either.
    """
    memory, inputs, config = generation.memory, generation.inputs, generation.settings.config
    kept = held_by_quarantined(generation)
    able = generation.able_members()
    is_early = _is_early(generation)
    clients = _clients(generation, able, is_early=is_early)
    if not clients:
        return kept
    state = group_state(
        tasks=generation.plan.partitions_by_task.keys() - kept.unassigned,
        stateful_tasks=generation.plan.stateful_tasks,
        clients=clients,
        config=config,
        end_offset_sums=inputs.end_offset_sums,
    )
    assignment, failures = attempt(
        generation.settings.strategy, state, before=memory.failures, now_ms=inputs.now_ms
    )
    stalled, news = _stalled(state, assignment, failures, generation)
    # What a strategy could not have may come with the next client; a client that makes no progress
    # and a share that is not reached are reported once.
    shares = share_warnings(state, assignment) if news else ()
    active, standby, warmup = _by_thread(able, state, assignment, generation.claims)
    placement = replace(
        kept,
        active_by_member=active,
        standby_by_member=standby,
        warmup_by_member=warmup,
        endpoint_by_member=endpoints_of(able),
        next_rebalance_ms=_next_rebalance(
            assignment, failures, stalled, generation, frozen=kept.unassigned
        ),
        warnings=(*state.warnings, *news, *failures.warnings(inputs.now_ms), *kept.warnings),
        transient=frozenset((*state.warnings, *news)).difference(shares),
        memory=replace(
            memory,
            lags_before=remembered_lags(
                clients, state, assignment, memory.lags_before if is_early else None
            ),
            lags_at_ms=memory.lags_at_ms if is_early else inputs.now_ms,
            failures=failures,
            stalled=stalled,
        ),
    )
    return with_client_ids(placement, able)


def _is_early(generation: Generation) -> bool:
    """Whether lags were compared so recently that a copy without progress may be about to begin."""
    lags_at_ms = generation.memory.lags_at_ms
    age_ms = generation.inputs.now_ms - lags_at_ms
    # Below 0 the clock was set back.
    return bool(lags_at_ms) and (
        0 <= age_ms < generation.settings.config.probing_rebalance_interval_ms
    )


def _clients(
    generation: Generation, able: Sequence[ReadMember], *, is_early: bool
) -> list[ClientInput]:
    """The processes of the members; those whose copies made no progress are marked.

    While it is early, these are the copies that made none when lags were last compared.
    """
    memory, inputs = generation.memory, generation.inputs
    before = memory.lags_before
    if is_early:
        known = memory.stalled.copies
        before = {
            name: {task: lag for task, lag in lags.items() if (name, task) in known}
            for name, lags in before.items()
        }
    clients = clients_of(able, inputs.end_offset_sums or {}, before, generation.claims.ignored)
    was_stuck = memory.stalled.stuck_at(inputs.now_ms)
    limit = generation.settings.config.acceptable_recovery_lag
    return [
        replace(client, stuck=is_stuck(client, limit, was_stuck=client.process_id in was_stuck))
        for client in clients
    ]


def held_by_quarantined(generation: Generation) -> Placement:
    """Return what members keep whose bytes cannot be read, as far as their claims are believed.

    No other member can be given these tasks, which are `unassigned`. The warnings are about tasks
    that no member can run, since such a member has a part of their inputs.
    """
    plan, claims = generation.plan, generation.claims
    quarantined = generation.quarantined_ids
    kept: dict[str, tuple[TopicPartition, ...]] = {}
    frozen: set[TaskId] = set()
    warnings: list[str] = []
    for member in generation.members:
        if member.id not in quarantined:
            continue
        owned = [
            p
            for p in member.member.owned_partitions or ()
            if p in plan.task_by_partition
            and claims.is_believed(member.id, plan.task_by_partition[p])
        ]
        kept[member.id] = tuple(owned)
        tasks = sorted({plan.task_by_partition[p] for p in owned})
        halves = [t for t in tasks if not set(plan.partitions_by_task[t]) <= set(owned)]
        frozen.update(tasks)
        if halves:
            warnings.append(
                f"no member runs {', '.join(map(str, halves[:_LISTED]))} ({len(halves)} tasks): the"
                f" quarantined member {shown(member.id)} owns a part of their inputs"
            )
    return Placement(
        partitions_by_member=kept,
        unassigned=frozenset(frozen),
        warnings=tuple(warnings),
        memory=replace(generation.memory, lags_before={}, lags_at_ms=0),
    )


def _stalled(
    state: GroupState,
    answer: TaskAssignment,
    failures: StrategyFailures,
    generation: Generation,
) -> tuple[StalledCopies, tuple[str, ...]]:
    """The stalled copies to remember, and the strategy's warnings that the operator has not seen.

    While a strategy that failed is in its back-off, the memory stays as it was.
    """
    before = generation.memory.stalled
    if failures.count:
        return before, answer.warnings
    now = stalled_now(
        state,
        answer,
        before=before,
        now_ms=generation.inputs.now_ms,
        interval_ms=generation.settings.config.probing_rebalance_interval_ms,
    )
    return now, news_of(state, answer, before=before, now=now)


def _next_rebalance(
    assignment: TaskAssignment,
    failures: StrategyFailures,
    stalled: StalledCopies,
    generation: Generation,
    *,
    frozen: AbstractSet[TaskId],
) -> dict[str, int]:
    """When the leader asks for a follow-up rebalance, if at all."""
    inputs = generation.inputs
    interval_ms = generation.settings.config.probing_rebalance_interval_ms
    if inputs.leader_id is None:
        return {}
    times_ms = []
    if frozen:
        wait_ms = generation.memory.claims.backoff_ms(frozen) or FIRST_CLAIM_BACKOFF_MS
        times_ms.append(inputs.now_ms + wait_ms)
    if failures.count:
        times_ms.append(failures.retry_at_ms)
    elif assignment.followup:
        times_ms.append(inputs.now_ms + interval_ms)
    elif stalled.look_at_ms:
        times_ms.append(stalled.look_at_ms)
    return {inputs.leader_id: min(times_ms)} if times_ms else {}


def _by_thread(
    members: Sequence[ReadMember], state: GroupState, assignment: TaskAssignment, claims: Claims
) -> tuple[_TasksByMember, _TasksByMember, _TasksByMember]:
    """Active, standby (warm-ups included) and warm-up tasks of every member."""
    members_by_client: dict[str, list[ReadMember]] = {}
    for member in members:
        members_by_client.setdefault(member.client, []).append(member)
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
        names = [member.id for member in group]
        ran: dict[TaskId, str] = {}
        restored: dict[TaskId, str] = {}
        for member in group if len(group) > 1 else ():  # a single thread gets all there is
            ignored = claims.ignored.get(member.id, frozenset())
            ran |= dict.fromkeys(member.ran - ignored, member.id)
            restored |= dict.fromkeys(member.standbys, member.id)
        active |= assign_actives(
            stateful[number], stateless[number], threads=names, owner_by_task=ran
        )
        load = {name: len(active[name]) for name in names}
        dealt = assign_threads(
            copies[number], threads=names, owner_by_task=restored, load_by_thread=load
        )
        standby |= dealt
        for name, tasks in dealt.items():
            warm = tuple(task for task in tasks if (task, number) in warming)
            warmup |= {name: warm} if warm else {}
    return active, standby, warmup


def keep_tasks(generation: Generation, why: str) -> Placement:
    """Every task on the member that ran it; the others are dealt evenly, without standbys.

    Args:
        generation: the group.
        why: why there is no placement by the strategy; the caller reports it.
    """
    plan, claims, inputs = generation.plan, generation.claims, generation.inputs
    kept = held_by_quarantined(generation)
    able = generation.able_members()
    ran = {
        task: member.id
        for member in reversed(able)
        for task in sorted(member.ran)
        if task in plan.partitions_by_task
        and task not in kept.unassigned
        and claims.is_believed(member.id, task)
    }
    active: dict[str, list[TaskId]] = {}
    for task, name in ran.items():
        active.setdefault(name, []).append(task)
    unowned = sorted(plan.partitions_by_task.keys() - ran.keys() - kept.unassigned)
    names = [member.id for member in able]
    load = {name: len(active.get(name, ())) for name in names}
    dealt: Mapping[str, tuple[TaskId, ...]] = {}
    if names:
        dealt = assign_threads(unowned, threads=names, owner_by_task={}, load_by_thread=load)
    failures = failed_again(generation.memory.failures, now_ms=inputs.now_ms, why=why)
    next_ms = {} if inputs.leader_id is None else {inputs.leader_id: failures.retry_at_ms}
    return replace(
        kept,
        active_by_member={
            name: tuple(sorted((*active.get(name, ()), *dealt.get(name, ())))) for name in names
        },
        endpoint_by_member=endpoints_of(able),
        next_rebalance_ms=next_ms,
        memory=replace(kept.memory, failures=failures),
    )
