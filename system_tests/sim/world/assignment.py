"""Steps after a leader's answer: give up and open tasks, rejoin now, later or not at all.

A member before 2.6 forces a rebalance by leaving and joining again, a later one by a plain rejoin
(`behaviour`). The coordinator ignores a plain rejoin with the same bytes (KAFKA-10455).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from assignor.rebalance import (
    NO_CLAIMS,
    AskAgain,
    End,
    Received,
    Rejoin,
    RejoinLater,
    steps_after,
)
from encoding import TaskId, TopicPartition
from probing import (
    FOLLOWUP_RULES,
    IgnoreTasks,
    RejoinNow,
    TimePassed,
    member_step,
)
from probing.topologies import newest_memory
from system_tests.coordinator import ErrorCode, LeaveGroup, LeavingMember, SyncAnswer
from system_tests.sim.events import Cause, Rejoined, Took
from system_tests.sim.world.consumer import again, give, join, lose, note_levels
from system_tests.sim.world.observing import followed
from system_tests.sim.world.setup import GROUP, Application
from system_tests.sim.world.state import WorldState
from system_tests.sim.world.thread import Partitions, Phase, StreamThread
from system_tests.sim.world.transport import beat_later, later, poll_later, send
from system_tests.sim.world.wire import WireError, read_assignment

_NEXT_ANSWER_MS = 1_000
_OUTDATED = "answer from before the restart"
_FOLLOWUPS = frozenset({*(rule.name for rule in FOLLOWUP_RULES), "follow-up is due"})


def on_sync(world: WorldState, thread: StreamThread, answer: SyncAnswer) -> None:
    """Handle the answer to SyncGroup: take the assignment, or join again."""
    match answer.error:
        case ErrorCode.NONE:
            take(world, thread, answer.assignment)
        case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.NOT_COORDINATOR:
            again(world, thread, Cause.REBALANCE)
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            lose(world, thread)
        case _:
            world.fail(thread, f"the coordinator refused it: {answer.error.name}")


def take(world: WorldState, thread: StreamThread, data: bytes) -> None:
    """Take an assignment: give up what is not in it, open what is new, rejoin if it asks for it."""
    try:
        partitions, user_data = read_assignment(data)
    except WireError as error:
        world.fail(thread, f"the answer is no assignment: {error}")
        return
    thread.claims, thread.answered = thread.answered, NO_CLAIMS
    application = world.application_of(thread)
    before, used_before = thread.owned, thread.streams.state.used_version
    copies, levels_before = thread.streams.held.standby, thread.streams.state.levels
    received = thread.streams.receive(
        partitions,
        user_data,
        now_ms=world.now_ms,
        led_supported_version=thread.led_supported,
    )
    thread.led_supported = None
    note_levels(world, thread, levels_before)
    running = _running(application, thread)
    given = tuple(p for p in before if p not in partitions or _is_another(thread, running, p))
    give(world, thread, given)
    ignores = any(isinstance(command, IgnoreTasks) for command in received.commands)
    is_followed = not (ignores or received.failure)
    runs = _runs(application, partitions, running) if is_followed else ()
    thread.phase, thread.taken, thread.cause = Phase.STABLE, thread.generation, Cause.REBALANCE
    gained = tuple(p for p in runs if p not in before or _is_another(thread, running, p))
    thread.owned, thread.running = runs, running
    thread.followup += 1
    _close(world, thread, copies)
    opened = _open(world, thread, gained)
    assignment = received.assignment
    world.record(
        Took(
            at_ms=world.now_ms,
            thread=thread.name,
            member_id=thread.member_id,
            generation=thread.generation,
            received_version=assignment.version if assignment else 0,
            commonly_supported_version=assignment.commonly_supported_version if assignment else 0,
            used_before=used_before,
            used_after=thread.streams.state.used_version,
            error_code=assignment.error_code if assignment else 0,
            partitions=runs,
            gained=gained,
            active_tasks=application.all_recorded(thread.streams.held.active if runs else ()),
            standby_tasks=application.all_recorded(thread.streams.held.standby),
            restored=opened.records,
            restore_ms=opened.ms,
            restore_limit_ms=opened.limit_ms,
            failure=received.failure,
        )
    )
    thread.answered_version = assignment.version if assignment else 0
    _remember_reached(world, thread, received)
    if world.setup.is_observed:
        world.record(
            followed(thread, world.decisions, is_followed=is_followed, now_ms=world.now_ms)
        )
    _follow(world, thread, received, revoked=bool(given), used_before=used_before)


def _running(application: Application, thread: StreamThread) -> dict[TopicPartition, TaskId]:
    """The task of each partition of a thread, where the topology is changed."""
    if not application.numbers:
        return {}
    return {
        partition: application.recorded(task)
        for task, partitions in thread.streams.held.active.items()
        for partition in partitions
    }


def _remember_reached(world: WorldState, thread: StreamThread, received: Received) -> None:
    """Keep the reached versions of the topology in the state directory, where it is changed."""
    if world.setup.change is not None and received.assignment is not None and not received.failure:
        disk = world.disks[thread.process]
        disk.reached = newest_memory(disk.reached, thread.streams.topology.reached)


def _runs(
    application: Application, partitions: Partitions, running: Mapping[TopicPartition, TaskId]
) -> Partitions:
    """The partitions that a thread runs: of a change, those of tasks that it can number."""
    if not application.numbers:
        return partitions
    return tuple(partition for partition in partitions if partition in running)


def _is_another(
    thread: StreamThread, running: Mapping[TopicPartition, TaskId], partition: TopicPartition
) -> bool:
    """Whether a partition that a thread keeps changes its form."""
    return partition in running and thread.running.get(partition) != running[partition]


_JOINED_BEFORE_MS = 15_000  # of a group with members that answer late


class _Opened(NamedTuple):
    """State of tasks that were opened: records to restore, for how long, and how long at most."""

    records: int
    ms: int
    limit_ms: int


def _open(world: WorldState, thread: StreamThread, gained: Partitions) -> _Opened:
    """Open the state of tasks that are new here."""
    disk = world.disks[thread.process]
    tasks = [world.task_at(thread, partition) for partition in gained]
    limit_ms = max((_restore_limit_ms(world, thread, task) for task in tasks), default=0)
    costs = [disk.open(task, world.now_ms) for task in tasks]
    for task in thread.streams.held.standby:
        disk.open(world.application_of(thread).recorded(task), world.now_ms)
    ms = max((ms for _, ms in costs), default=0)
    return _Opened(sum(lag for lag, _ in costs), ms, min(ms, limit_ms))


def _restore_limit_ms(world: WorldState, thread: StreamThread, task: TaskId) -> int:
    """Return how long a task is restored at most, if leaders prefer processes that are caught up.

    Such a process is in this generation and lacks at most acceptable.recovery.lag records; if there
    is none, the state is restored wherever the task goes. The leader knows the lags of when members
    joined; records written since are added.
    """
    rates = world.disks[thread.process].rates
    end = rates.end_offset_sum(task, world.now_ms)
    acceptable = world.application.config.acceptable_recovery_lag
    processes = {
        other.process
        for other in world.threads
        if other.is_up and other.generation == thread.generation
    }
    lag = end - world.disks[thread.process].offset_sum(task, world.now_ms)
    if any(
        end - world.disks[process].offset_sum(task, world.now_ms) <= acceptable
        for process in processes
    ):
        lag = min(lag, acceptable + rates.growth_of(task) * _JOINED_BEFORE_MS // 1000)
    return -(-lag * 1000 // rates.restore)


def _close(world: WorldState, thread: StreamThread, copies: Iterable[TaskId]) -> None:
    """Close the standby tasks that no thread of the process holds any more."""
    gone = set(copies) - thread.streams.held.standby.keys()
    for other in world.threads if gone else ():
        if other.process == thread.process:
            gone -= other.streams.held.standby.keys() | other.streams.held.active.keys()
    for task in sorted(gone):
        recorded = world.application_of(thread).recorded(task)
        world.disks[thread.process].close(recorded, world.now_ms)


def _follow(
    world: WorldState, thread: StreamThread, received: Received, *, revoked: bool, used_before: int
) -> None:
    """Do what the answer asks for: rejoin now or later, or fail."""
    is_native = thread.behaviour.release.is_native
    pace, steps = steps_after(
        received,
        thread.pace if is_native else None,
        now_ms=world.now_ms,
        survives=is_native and thread.streams.state.refusal is None,
    )
    thread.pace = pace or thread.pace
    ends = next((step for step in steps if isinstance(step, End)), None)
    if ends is not None:
        world.fail(thread, ends.why)
        return
    beat_later(world, thread)
    for step in steps:
        match step:
            case Rejoin(command=command, wait_ms=wait_ms):
                _wish(world, thread, command, used_before=used_before, wait_ms=wait_ms)
            case RejoinLater(delay_ms=delay_ms):
                later(world, thread, int(delay_ms), "followup", thread.followup)
            case AskAgain(why=why, wait_ms=wait_ms) if wait_ms:
                wish = (thread.followup, Cause.RETRY, why)
                poll_later(world, thread, kind="fire", data=wish, delay_ms=wait_ms)
            case _:
                pass
    _rejoin_at_once(world, thread, Cause.REVOKED if revoked else thread.rejoin_after)


def _rejoin_at_once(world: WorldState, thread: StreamThread, cause: str) -> None:
    """Rejoin as soon as the answer is taken, if there is a cause.

    The consumer itself rejoins once it has revoked something (KIP-429); and a follow-up that fired
    while the rebalance was running makes the next one (KAFKA-14382).
    """
    thread.rejoin_after = ""
    if cause:
        thread.rejoin_needed, thread.cause = True, cause
        poll_later(world, thread)


def ask_for_rebalance(world: WorldState, thread: StreamThread, cause: str) -> None:
    """Let a thread join again: at its next poll, or right after the running rebalance."""
    if thread.phase in (Phase.JOINING, Phase.SYNCING):
        thread.rejoin_after = cause
    else:
        _rejoin_at_once(world, thread, cause)


def _wish(
    world: WorldState,
    thread: StreamThread,
    command: RejoinNow,
    *,
    used_before: int,
    wait_ms: int = 0,
) -> None:
    """Let the thread force a rebalance at its next poll, or after a wait."""
    is_followup = command.rule in _FOLLOWUPS or (
        world.setup.change is not None and command.rule == _OUTDATED
    )
    cause = Cause.FOLLOWUP if is_followup else Cause.VERSION
    world.record(
        Rejoined(world.now_ms, thread.name, cause, command.rule, used_before, command.used_version)
    )
    wish = (thread.followup, cause, command.rule)
    poll_later(world, thread, kind="fire", data=wish, delay_ms=wait_ms or None)


def on_followup_due(world: WorldState, thread: StreamThread, schedule: int) -> None:
    """Rejoin if a follow-up rebalance is due; an older schedule is ignored."""
    if schedule != thread.followup:
        return
    used = thread.streams.state.used_version
    thread.streams.state, commands = member_step(
        thread.streams.state, TimePassed(now_ms=world.now_ms)
    )
    for command in commands:
        if isinstance(command, RejoinNow):
            _wish(world, thread, command, used_before=used)


def fire(world: WorldState, thread: StreamThread, schedule: int, cause: str, rule: str) -> None:
    """Force a rebalance now, unless a newer answer replaced the request or one is running."""
    if schedule != thread.followup or thread.rejoin_needed:
        return
    behaviour = thread.behaviour
    if thread.phase is not Phase.STABLE:
        if behaviour.fires_during_rebalance:
            thread.rejoin_after = cause
        return
    waits = not (behaviour.fires_during_rebalance or behaviour.forces_by_leaving)
    if waits and not world.is_rebalance_over():
        # Others are about to get the same answer, or the next one replaces this request.
        delay_ms = None if world.is_stable else _NEXT_ANSWER_MS
        poll_later(world, thread, kind="fire", data=(schedule, cause, rule), delay_ms=delay_ms)
        return
    thread.rejoin_needed, thread.cause = True, cause
    if behaviour.forces_by_leaving:
        _leave(world, thread, cause)
    join(world, thread)


def _leave(world: WorldState, thread: StreamThread, reason: str) -> None:
    """Unsubscribe: give everything up; a dynamic member sends LeaveGroup."""
    give(world, thread, thread.owned)
    if thread.instance_id is None:
        leaving = LeavingMember(thread.member_id, reason=reason)
        send(world, thread, LeaveGroup(group_id=GROUP, members=(leaving,)), awaited=False)
    thread.lose_membership()
