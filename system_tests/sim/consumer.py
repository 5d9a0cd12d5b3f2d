"""What a thread's consumer does: poll, join, lead, sync, beat, and what the release makes of it.

Functions over a world and one of its threads; each is one thing that can happen, ends at once and
leaves messages on their way. How a member of a release forces a rebalance is in `behaviour`: by
leaving and joining anew before 2.6, with a plain rejoin after. That a plain rejoin with the same
bytes changes nothing (KAFKA-10455) is the coordinator's rule and nobody's special case.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from assignor import LeaderRefused, MemberRefused, Received, TaskAssignmentError, TasksHeld
from encoding import TaskId, encode_subscription
from probing import (
    FOLLOWUP_RULES,
    IgnoreTasks,
    RebalanceStarted,
    Refuse,
    RejoinNow,
    ScheduleRebalance,
    TimePassed,
    member_step,
)
from system_tests.coordinator import (
    UNKNOWN_MEMBER_ID,
    ErrorCode,
    Heartbeat,
    HeartbeatAnswer,
    JoinAnswer,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    Protocol,
    SyncAnswer,
    SyncGroup,
)
from system_tests.sim.happenings import Cause, Gave, Rejoined, Took, Wrote
from system_tests.sim.leading import lead
from system_tests.sim.thread import Partitions, Phase, StreamThread
from system_tests.sim.wire import (
    ConsumerSubscription,
    WireError,
    read_assignment,
    write_subscription,
)

if TYPE_CHECKING:
    from system_tests.sim.world import World

GROUP = "g"
_FOLLOWUPS = frozenset({*(rule.name for rule in FOLLOWUP_RULES), "follow-up is due"})
_REBALANCE_TIMEOUT_MS = 300_000
_RETRY_MS = 100


def poll(world: "World", thread: StreamThread) -> None:
    """Join if that is asked for; an answer that is awaited comes first."""
    if thread.phase in (Phase.IDLE, Phase.STABLE) and thread.rejoin_needed:
        join(world, thread)


def join(world: "World", thread: StreamThread) -> None:
    """Write a subscription and ask for a place in the next generation."""
    streams, behaviour = thread.streams, thread.behaviour
    streams.state, _ = member_step(streams.state, RebalanceStarted(now_ms=world.now_ms))
    if not behaviour.cooperative:
        give(world, thread, thread.owned)
    try:
        value, user_data = streams.subscription(world.disks[thread.process].report(world.now_ms))
    except MemberRefused as error:
        world.fail(thread, str(error))
        return
    if behaviour.forces_by_leaving:
        user_data = encode_subscription(value)  # such releases write no changing byte
    offer = ConsumerSubscription(world.topics, user_data, thread.owned)
    metadata = write_subscription(offer, version=behaviour.protocol_version)
    world.record(
        Wrote(
            world.now_ms, thread.name, value.version, value.latest_supported_version, len(metadata)
        )
    )
    thread.rejoin_needed = False
    thread.phase = Phase.JOINING
    request = JoinGroup(
        group_id=GROUP,
        protocol_type="consumer",
        protocols=(Protocol("stream", metadata),),
        session_timeout_ms=behaviour.session_timeout_ms,
        rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
        member_id=thread.member_id,
        instance_id=thread.instance_id,
        client_id=thread.name,
        needs_known_member_id=behaviour.needs_known_member_id,
        may_skip_assignment=behaviour.may_skip_assignment,
        reason=thread.cause,
    )
    world.send(thread, request)


def on_join(world: "World", thread: StreamThread, answer: JoinAnswer) -> None:
    """The coordinator has a place, or says why not."""
    match answer.error:
        case ErrorCode.NONE:
            _begin_generation(world, thread, answer)
        case ErrorCode.MEMBER_ID_REQUIRED:
            thread.member_id = answer.member_id
            _again(world, thread, thread.cause, delay_ms=0)
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            lose(world, thread)
        case ErrorCode.REBALANCE_IN_PROGRESS:
            _again(world, thread, Cause.REBALANCE)
        case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
            _again(world, thread, Cause.RETRY)
        case _:
            world.fail(thread, f"the coordinator refused it: {answer.error.name}")


def _begin_generation(world: "World", thread: StreamThread, answer: JoinAnswer) -> None:
    thread.member_id = answer.member_id
    thread.generation = answer.generation
    thread.phase = Phase.SYNCING
    thread.leads = answer.leader_id == answer.member_id and not answer.skip_assignment
    assignments: dict[str, bytes] = {}
    if thread.leads:
        try:
            led = lead(
                thread.behaviour,
                world.application,
                answer.members,
                end_offset_sums=world.end_offset_sums(),
                thread=thread.name,
                names=world.names,
                generation=answer.generation,
                now_ms=world.now_ms,
            )
        except (LeaderRefused, TaskAssignmentError, WireError) as error:
            world.fail(thread, str(error))
            return
        world.record(led.happening)
        thread.followup_remembered = led.remembers_followup
        assignments = led.assignments
    request = SyncGroup(
        group_id=GROUP,
        member_id=thread.member_id,
        generation=thread.generation,
        instance_id=thread.instance_id,
        assignments=assignments,
    )
    world.send(thread, request, thinks_ms=0 if thread.leads else thread.slow_ms)


def on_sync(world: "World", thread: StreamThread, answer: SyncAnswer) -> None:
    """The leader's answer came, or the generation is over before it began."""
    match answer.error:
        case ErrorCode.NONE:
            take(world, thread, answer.assignment)
        case ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.NOT_COORDINATOR:
            _again(world, thread, Cause.REBALANCE)
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            lose(world, thread)
        case _:
            world.fail(thread, f"the coordinator refused it: {answer.error.name}")


def take(world: "World", thread: StreamThread, data: bytes) -> None:
    """Take an answer: give up what is not in it, open what is new, do what probing asks for."""
    try:
        partitions, user_data = read_assignment(data)
    except WireError as error:
        world.fail(thread, f"the answer is no assignment: {error}")
        return
    before, used_before = thread.owned, thread.streams.state.used_version
    copies = thread.streams.held.standby
    given = tuple(p for p in before if p not in partitions)
    received = thread.streams.receive(partitions, user_data, now_ms=world.now_ms)
    give(world, thread, given)
    ignores = any(isinstance(command, IgnoreTasks) for command in received.commands)
    runs = () if ignores or received.failure else partitions
    thread.phase = Phase.STABLE
    thread.cause = Cause.REBALANCE
    thread.owned = runs
    thread.followup += 1
    gained = tuple(p for p in runs if p not in before)
    _close(world, thread, copies)
    restored, restore_ms = _open(world, thread, gained)
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
            active_tasks=tuple(thread.streams.held.active) if runs else (),
            standby_tasks=tuple(thread.streams.held.standby),
            restored=restored,
            restore_ms=restore_ms,
            failure=received.failure,
        )
    )
    _follow(world, thread, received, revoked=bool(given), used_before=used_before)


def _open(world: "World", thread: StreamThread, gained: Partitions) -> tuple[int, int]:
    """Open the state of tasks that are new here; records to restore, and the longest wait in ms."""
    disk = world.disks[thread.process]
    costs = [disk.open(world.task_of[partition], world.now_ms) for partition in gained]
    for task in thread.streams.held.standby:
        disk.open(task, world.now_ms)
    return sum(lag for lag, _ in costs), max((ms for _, ms in costs), default=0)


def _close(world: "World", thread: StreamThread, copies: Iterable[TaskId]) -> None:
    """Close the standby tasks that no thread of the process holds any more."""
    gone = set(copies) - thread.streams.held.standby.keys()
    for other in world.threads if gone else ():
        if other.process == thread.process:
            gone -= other.streams.held.standby.keys() | other.streams.held.active.keys()
    for task in sorted(gone):
        world.disks[thread.process].close(task, world.now_ms)


def _follow(
    world: "World", thread: StreamThread, received: Received, *, revoked: bool, used_before: int
) -> None:
    """Carry out what the answer asks for: rejoin, come back later, or die of it."""
    native = thread.behaviour.release.is_native
    if received.failure and not native:
        world.fail(thread, received.failure)
        return
    if any(isinstance(command, Refuse) for command in received.commands):
        world.fail(thread, received.failure or "it was told to stop")
        return
    world.beat_later(thread)
    if received.failure:
        _again(world, thread, Cause.RETRY)
        return
    for command in received.commands:
        if isinstance(command, RejoinNow):
            _wish(world, thread, command, used_before=used_before)
        elif isinstance(command, ScheduleRebalance):
            delay_ms = max(0, command.at_ms - world.now_ms)
            world.later(thread, delay_ms, "followup", thread.followup)
    if thread.leads and thread.followup_remembered:
        cause = (Cause.FOLLOWUP, "the leader remembers a follow-up")
        world.poll_later(thread, kind="fire", data=(thread.followup, *cause))
    if revoked:
        # The consumer itself rejoins once it has revoked something (KIP-429).
        thread.rejoin_needed, thread.cause = True, Cause.REVOKED
    elif thread.rejoin_after:
        thread.rejoin_needed, thread.cause = True, thread.rejoin_after
    thread.rejoin_after = ""
    if thread.rejoin_needed:
        world.poll_later(thread)


def _wish(world: "World", thread: StreamThread, command: RejoinNow, *, used_before: int) -> None:
    """Let the run loop force a rebalance the next time it comes round."""
    cause = Cause.FOLLOWUP if command.rule in _FOLLOWUPS else Cause.VERSION
    world.record(
        Rejoined(world.now_ms, thread.name, cause, command.rule, used_before, command.used_version)
    )
    world.poll_later(thread, kind="fire", data=(thread.followup, cause, command.rule))


def on_followup_due(world: "World", thread: StreamThread, schedule: int) -> None:
    """A rebalance that was asked for at this time: let the rules say whether it happens."""
    if schedule != thread.followup:
        return
    used = thread.streams.state.used_version
    thread.streams.state, commands = member_step(
        thread.streams.state, TimePassed(now_ms=world.now_ms)
    )
    for command in commands:
        if isinstance(command, RejoinNow):
            _wish(world, thread, command, used_before=used)


def fire(world: "World", thread: StreamThread, schedule: int, cause: str, rule: str) -> None:
    """Force a rebalance now, unless a newer answer made the wish void or one is running."""
    if schedule != thread.followup or thread.rejoin_needed:
        return
    behaviour = thread.behaviour
    if thread.phase is not Phase.STABLE:
        if behaviour.fires_during_rebalance:
            thread.rejoin_after = cause
        return
    waits = not (behaviour.fires_during_rebalance or behaviour.forces_by_leaving)
    if waits and not world.is_rebalance_over():
        world.poll_later(thread, kind="fire", data=(schedule, cause, rule))
        return
    thread.followup_remembered = False
    thread.rejoin_needed, thread.cause = True, cause
    if behaviour.forces_by_leaving:
        _leave(world, thread, cause)
    join(world, thread)


def _leave(world: "World", thread: StreamThread, reason: str) -> None:
    """Unsubscribe: everything is given up, and a dynamic member says that it leaves."""
    give(world, thread, thread.owned)
    if thread.instance_id is None:
        leaving = LeavingMember(thread.member_id, reason=reason)
        world.send(thread, LeaveGroup(group_id=GROUP, members=(leaving,)), awaited=False)
    thread.lose_membership()


def leave_on_close(world: "World", thread: StreamThread) -> None:
    """Say goodbye, for programs that do."""
    if thread.behaviour.leaves_on_close and thread.member_id != UNKNOWN_MEMBER_ID:
        if thread.instance_id is not None:
            return  # a static member keeps its place over a restart
        leaving = LeavingMember(thread.member_id, reason=Cause.STOPPED)
        world.send(thread, LeaveGroup(group_id=GROUP, members=(leaving,)), awaited=False)


def give(world: "World", thread: StreamThread, partitions: Partitions) -> None:
    """Stop processing these partitions and close their state."""
    if not partitions:
        return
    disk = world.disks[thread.process]
    tasks = tuple(sorted({world.task_of[partition] for partition in partitions}))
    for task in tasks:
        disk.close(task, world.now_ms)
    thread.owned = tuple(p for p in thread.owned if p not in partitions)
    world.record(Gave(world.now_ms, thread.name, partitions, tasks))


def lose(world: "World", thread: StreamThread) -> None:
    """The group went on without this member: what it had runs elsewhere, and it begins anew."""
    give(world, thread, thread.owned)
    for task in thread.streams.held.standby:
        world.disks[thread.process].close(task, world.now_ms)
    thread.streams.held = TasksHeld()
    thread.lose_membership()
    _again(world, thread, Cause.LOST)


def beat(world: "World", thread: StreamThread) -> None:
    """Say that the member lives; request and answer are one step, nothing depends on its parts."""
    if thread.phase is not Phase.STABLE:
        return
    request = Heartbeat(
        group_id=GROUP,
        member_id=thread.member_id,
        generation=thread.generation,
        instance_id=thread.instance_id,
    )
    answer = world.ask(thread, request)
    error = answer.error if isinstance(answer, HeartbeatAnswer) else ErrorCode.NONE
    match error:
        case ErrorCode.NONE | ErrorCode.NOT_COORDINATOR:
            world.beat_later(thread)
        case ErrorCode.REBALANCE_IN_PROGRESS:
            thread.rejoin_needed = True
            world.poll_later(thread)
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            lose(world, thread)
        case _:
            world.fail(thread, f"the coordinator refused it: {error.name}")


def on_connection_lost(world: "World", thread: StreamThread) -> None:
    """The request or its answer is gone; whether the coordinator heard it, nobody knows."""
    _again(world, thread, Cause.RETRY)


def _again(
    world: "World", thread: StreamThread, cause: str, *, delay_ms: int | None = None
) -> None:
    """Join at one of the next polls."""
    thread.phase = Phase.IDLE
    thread.rejoin_needed, thread.cause = True, cause
    world.poll_later(thread, delay_ms=_RETRY_MS if delay_ms is None else delay_ms)
