"""What a thread's consumer does: poll, join, lead, sync, beat, and what the release makes of it.

Functions over a world and one of its threads; each is one thing that can happen, ends at once and
leaves messages on their way. How a member of a release forces a rebalance is in `behaviour`: by
leaving and joining anew before 2.6, with a plain rejoin after. That a plain rejoin with the same
bytes changes nothing (KAFKA-10455) is the coordinator's rule and nobody's special case.
"""

from dataclasses import replace
from typing import Any

from assignor import LeaderRefused, MemberRefused, TaskAssignmentError, TasksHeld
from assignor.rebalance import NO_CLAIMS
from encoding import encode_subscription
from probing import (
    NO_REBALANCE,
    RebalanceStarted,
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
    SyncGroup,
)
from system_tests.sim.events import Cause, Gave, Wrote
from system_tests.sim.world.leading import LeaderPlace
from system_tests.sim.world.member_world import MemberWorld
from system_tests.sim.world.thread import Partitions, Phase, StreamThread
from system_tests.sim.world.wire import ConsumerSubscription, WireError, write_subscription

GROUP = "g"
_REBALANCE_TIMEOUT_MS = 300_000
_RETRY_MS = 100


def poll(world: MemberWorld, thread: StreamThread) -> None:
    """Join if that is asked for; an answer that is awaited comes first."""
    if thread.phase in (Phase.IDLE, Phase.STABLE) and thread.rejoin_needed:
        join(world, thread)


def join(world: MemberWorld, thread: StreamThread) -> None:
    """Write a subscription and ask for a place in the next generation."""
    streams, behaviour = thread.streams, thread.behaviour
    thread.answered = NO_CLAIMS
    if streams.state.next_rebalance_ms != NO_REBALANCE:  # nothing else asks for the flag
        streams.state, _ = member_step(streams.state, RebalanceStarted(now_ms=world.now_ms))
    if not behaviour.cooperative:
        give(world, thread, thread.owned)
    try:
        value, user_data = streams.subscription(
            world.disks[thread.process].report(world.now_ms),
            gave_up_tasks=not (behaviour.cooperative or behaviour.names_given_up_tasks),
            **_owned(thread),
        )
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
    thread.asked = request
    world.send(thread, request)


def _owned(thread: StreamThread) -> dict[str, Any]:
    """What a cooperative member of ours says that it has not given up, and since when."""
    if not (thread.behaviour.cooperative and thread.behaviour.release.is_native):
        return {}
    return {"owned_partitions": thread.owned, "owned_generation": thread.taken}


def on_join(world: MemberWorld, thread: StreamThread, answer: JoinAnswer) -> None:
    """The coordinator has a place, or says why not."""
    match answer.error:
        case ErrorCode.NONE:
            _begin_generation(world, thread, answer)
        case ErrorCode.MEMBER_ID_REQUIRED:
            thread.member_id = answer.member_id
            if thread.asked is not None:
                world.send(thread, replace(thread.asked, member_id=answer.member_id))
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            lose(world, thread)
        case ErrorCode.REBALANCE_IN_PROGRESS:
            again(world, thread, Cause.REBALANCE)
        case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
            again(world, thread, Cause.RETRY)
        case _:
            world.fail(thread, f"the coordinator refused it: {answer.error.name}")


def _begin_generation(world: MemberWorld, thread: StreamThread, answer: JoinAnswer) -> None:
    thread.member_id = answer.member_id
    thread.generation = answer.generation
    thread.phase = Phase.SYNCING
    thread.leads = answer.leader_id == answer.member_id and not answer.skip_assignment
    thread.led_supported = None
    assignments: dict[str, bytes] = {}
    if thread.leads:
        try:
            led = world.lead(
                thread.behaviour,
                answer.members,
                LeaderPlace(
                    thread=thread.name,
                    member_id=thread.member_id,
                    generation=answer.generation,
                    now_ms=world.now_ms,
                    end_offset_sums=world.end_offset_sums(),
                    lags_before=thread.lags,
                    claims=thread.claims,
                    names=world.names,
                    **world.known_by_leader(thread),
                ),
            )
        except (LeaderRefused, TaskAssignmentError, WireError) as error:
            world.fail(thread, str(error))
            return
        world.led_by(thread, led)
        thread.led_supported = led.lowest_supported
        thread.lags, thread.answered = led.lags, led.claims
        assignments = led.assignments
    request = SyncGroup(
        group_id=GROUP,
        member_id=thread.member_id,
        generation=thread.generation,
        instance_id=thread.instance_id,
        assignments=assignments,
    )
    world.send(thread, request, thinks_ms=0 if thread.leads else thread.slow_ms)


def leave_on_close(world: MemberWorld, thread: StreamThread) -> None:
    """Say goodbye, for programs that do."""
    if thread.behaviour.leaves_on_close and thread.member_id != UNKNOWN_MEMBER_ID:
        if thread.instance_id is not None:
            return  # a static member keeps its place over a restart
        leaving = LeavingMember(thread.member_id, reason=Cause.STOPPED)
        world.send(thread, LeaveGroup(group_id=GROUP, members=(leaving,)), awaited=False)


def give(world: MemberWorld, thread: StreamThread, partitions: Partitions) -> None:
    """Stop processing these partitions and close their state."""
    if not partitions:
        return
    disk = world.disks[thread.process]
    tasks = tuple(sorted({world.task_of[partition] for partition in partitions}))
    for task in tasks:
        disk.close(task, world.now_ms)
    thread.owned = tuple(p for p in thread.owned if p not in partitions)
    world.record(Gave(world.now_ms, thread.name, partitions, tasks))


def lose(world: MemberWorld, thread: StreamThread) -> None:
    """The group went on without this member: what it had runs elsewhere, and it begins anew."""
    give(world, thread, thread.owned)
    for task in thread.streams.held.standby:
        world.disks[thread.process].close(task, world.now_ms)
    thread.streams.held = TasksHeld()
    thread.lose_membership()
    again(world, thread, Cause.LOST)


def beat(world: MemberWorld, thread: StreamThread) -> None:
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


def on_connection_lost(world: MemberWorld, thread: StreamThread) -> None:
    """The request or its answer is gone; whether the coordinator heard it, nobody knows."""
    again(world, thread, Cause.RETRY)


def again(
    world: MemberWorld, thread: StreamThread, cause: str, *, delay_ms: int | None = None
) -> None:
    """Join at one of the next polls."""
    thread.phase = Phase.IDLE
    thread.rejoin_needed, thread.cause = True, cause
    world.poll_later(thread, delay_ms=_RETRY_MS if delay_ms is None else delay_ms)
