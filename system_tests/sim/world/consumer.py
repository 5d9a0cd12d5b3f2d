"""Steps of a thread's consumer: poll, join, lead, sync, heartbeat, leave.

Each step is a function on the state of the world and one of its threads. It takes no simulated time
and leaves messages on their way. What a thread does with its leader's answer is in `assignment`.
"""

from dataclasses import replace
from typing import Any

from assignor import MemberRefused
from assignor.errors import LeaderRefused, TaskAssignmentError
from assignor.rebalance import NO_CLAIMS, TasksHeld
from encoding import encode_subscription
from probing import (
    NO_REBALANCE,
    RebalanceStarted,
    member_step,
)
from probing.features import FinalizedLevels
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
from system_tests.sim.level_events import Adopted
from system_tests.sim.world.observing import KEPT_DECISIONS
from system_tests.sim.world.setup import GROUP
from system_tests.sim.world.state import LeaderPlace, Led, WorldState
from system_tests.sim.world.thread import Partitions, Phase, StreamThread
from system_tests.sim.world.transport import ask, beat_later, poll_later, send
from system_tests.sim.world.wire import ConsumerSubscription, WireError, write_subscription

_REBALANCE_TIMEOUT_MS = 300_000
_RETRY_MS = 100


def poll(world: WorldState, thread: StreamThread) -> None:
    """Join if a rejoin is needed and no answer is awaited."""
    if thread.phase in (Phase.IDLE, Phase.STABLE) and thread.rejoin_needed:
        join(world, thread)


def join(world: WorldState, thread: StreamThread) -> None:
    """Write a subscription and send JoinGroup."""
    streams, behaviour = thread.streams, thread.behaviour
    thread.answered = NO_CLAIMS
    levels_before = streams.state.levels
    if world.setup.levels is not None:
        streams.levels_polled(thread.found)
    if streams.state.next_rebalance_ms != NO_REBALANCE:  # nothing else asks for the flag
        streams.state, _ = member_step(streams.state, RebalanceStarted(now_ms=world.now_ms))
    if not behaviour.cooperative:
        give(world, thread, thread.owned)
    try:
        value, user_data = streams.subscription(
            world.application_of(thread).own(world.disks[thread.process].report(world.now_ms)),
            gave_up_tasks=not (behaviour.cooperative or behaviour.names_given_up_tasks),
            **_owned(thread),
        )
    except MemberRefused as error:
        world.fail(thread, str(error))
        return
    note_levels(world, thread, levels_before)
    if behaviour.forces_by_leaving:
        user_data = encode_subscription(value)  # such releases write no changing byte
    offer = ConsumerSubscription(world.application_of(thread).topics, user_data, thread.owned)
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
    send(world, thread, request)


def note_levels(world: WorldState, thread: StreamThread, before: FinalizedLevels) -> None:
    """Record the finalized levels that a thread goes by, if they are others than before."""
    levels = thread.streams.state.levels
    if levels != before:
        world.record(Adopted(world.now_ms, thread.name, levels))


def _owned(thread: StreamThread) -> dict[str, Any]:
    """What a cooperative native member still owns, and since which generation."""
    if not (thread.behaviour.cooperative and thread.behaviour.release.is_native):
        return {}
    return {"owned_partitions": thread.owned, "owned_generation": thread.taken}


def on_join(world: WorldState, thread: StreamThread, answer: JoinAnswer) -> None:
    """Handle the answer to JoinGroup: sync, try again, or fail."""
    match answer.error:
        case ErrorCode.NONE:
            _begin_generation(world, thread, answer)
        case ErrorCode.MEMBER_ID_REQUIRED:
            thread.member_id = answer.member_id
            if thread.asked is not None:
                send(world, thread, replace(thread.asked, member_id=answer.member_id))
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            lose(world, thread)
        case ErrorCode.REBALANCE_IN_PROGRESS:
            again(world, thread, Cause.REBALANCE)
        case ErrorCode.NOT_COORDINATOR | ErrorCode.COORDINATOR_NOT_AVAILABLE:
            again(world, thread, Cause.RETRY)
        case _:
            world.fail(thread, f"the coordinator refused it: {answer.error.name}")


def _begin_generation(world: WorldState, thread: StreamThread, answer: JoinAnswer) -> None:
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
                world.application_of(thread),
                answer.members,
                LeaderPlace(
                    thread=thread.name,
                    member_id=thread.member_id,
                    generation=answer.generation,
                    now_ms=world.now_ms,
                    end_offset_sums=world.end_offset_sums(),
                    lags_before=thread.lags,
                    claims=thread.claims,
                    names=world.member_ids.names,
                    **_known_by_leader(world, thread),
                ),
            )
        except (LeaderRefused, TaskAssignmentError, WireError) as error:
            world.fail(thread, str(error))
            return
        _led(world, thread, led)
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
    send(world, thread, request, thinks_ms=0 if thread.leads else thread.slow_ms)


def _known_by_leader(world: WorldState, thread: StreamThread) -> dict[str, Any]:
    """Return what a leader knows in a group with dimensions, by the names of `LeaderPlace`."""
    dimensions = world.setup.dimensions
    if world.setup.change is not None:
        return {"stalled": thread.stalled, "topologies": thread.topologies}
    if world.setup.levels is not None:
        return {"levels": thread.streams.state.known_levels}
    if dimensions.is_default:
        return {}
    return {
        "stalled": thread.stalled,
        "held_view": thread.streams.view if dimensions.views else None,
        "observed": world.threads,
    }


def _led(world: WorldState, thread: StreamThread, led: Led) -> None:
    """Record what a leader decided."""
    world.record(led.happening)
    world.support = led.support
    if world.setup.change is not None:
        thread.stalled, thread.topologies = led.stalled, led.topologies
    if led.decided is not None:
        thread.stalled = led.stalled
        world.decisions = (*world.decisions[1 - KEPT_DECISIONS :], led.decided)
        world.record(led.decided)


def leave_on_close(world: WorldState, thread: StreamThread) -> None:
    """Send LeaveGroup, for programs that do."""
    if thread.behaviour.leaves_on_close and thread.member_id != UNKNOWN_MEMBER_ID:
        if thread.instance_id is not None:
            return  # a static member keeps its place over a restart
        leaving = LeavingMember(thread.member_id, reason=Cause.STOPPED)
        send(world, thread, LeaveGroup(group_id=GROUP, members=(leaving,)), awaited=False)


def give(world: WorldState, thread: StreamThread, partitions: Partitions) -> None:
    """Stop processing these partitions and close their state."""
    if not partitions:
        return
    disk = world.disks[thread.process]
    tasks = tuple(sorted({world.task_at(thread, partition) for partition in partitions}))
    for task in tasks:
        disk.close(task, world.now_ms)
    thread.owned = tuple(p for p in thread.owned if p not in partitions)
    world.record(Gave(world.now_ms, thread.name, partitions, tasks))


def lose(world: WorldState, thread: StreamThread) -> None:
    """Give everything up and join as a new member: the group has removed this one."""
    give(world, thread, thread.owned)
    for task in thread.streams.held.standby:
        world.disks[thread.process].close(world.application_of(thread).recorded(task), world.now_ms)
    thread.streams.held = TasksHeld()
    thread.lose_membership()
    again(world, thread, Cause.LOST)


def beat(world: WorldState, thread: StreamThread) -> None:
    """Send a heartbeat and handle its answer, in one step."""
    if thread.phase is not Phase.STABLE:
        return
    request = Heartbeat(
        group_id=GROUP,
        member_id=thread.member_id,
        generation=thread.generation,
        instance_id=thread.instance_id,
    )
    answer = ask(world, thread, request)
    error = answer.error if isinstance(answer, HeartbeatAnswer) else ErrorCode.NONE
    match error:
        case ErrorCode.NONE | ErrorCode.NOT_COORDINATOR:
            beat_later(world, thread)
        case ErrorCode.REBALANCE_IN_PROGRESS:
            thread.rejoin_needed = True
            poll_later(world, thread)
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:
            lose(world, thread)
        case _:
            world.fail(thread, f"the coordinator refused it: {error.name}")


def on_connection_lost(world: WorldState, thread: StreamThread) -> None:
    """Join again: a request or its answer is lost."""
    again(world, thread, Cause.RETRY)


def again(
    world: WorldState, thread: StreamThread, cause: str, *, delay_ms: int | None = None
) -> None:
    """Join at one of the next polls, for this cause."""
    thread.phase = Phase.IDLE
    thread.rejoin_needed, thread.cause = True, cause
    poll_later(world, thread, delay_ms=_RETRY_MS if delay_ms is None else delay_ms)
