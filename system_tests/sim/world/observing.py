"""What checkers of a group with dimensions get: each member's tasks, copies and routing.

Values are read from subscriptions, answers and members, not from what the leader says about them:
hosts and partitions are computed here again, by simpler code.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from assignor.rebalance import (
    GroupAnswer,
    GroupMember,
    HostMap,
    MemberAnswer,
    parse_endpoint,
)
from encoding import (
    DecodeError,
    Subscription,
    TaskId,
    decode_subscription,
    view_reference,
)
from probing import Release
from system_tests.sim.events import (
    AtRest,
    Decided,
    Followed,
    Given,
    Hosts,
    Partitions,
    Rested,
    Took,
    hosts_of,
)
from system_tests.sim.world.setup import GROUP
from system_tests.sim.world.state import WorldState
from system_tests.sim.world.thread import Phase, StreamThread
from system_tests.sim.world.wire import read_subscription

_ENDPOINT_SINCE, _FOLLOWUP_SINCE = 2, 7
KEPT_DECISIONS: Final = 4
"""Generations whose decisions are kept; members may take answers of earlier ones late."""


def decided_by(
    leader: Release,
    members: Sequence[GroupMember],
    answer: GroupAnswer,
    *,
    names: Mapping[str, str],
    threads: Sequence[StreamThread],
    inputs: Mapping[TaskId, Partitions],
    generation: int,
    now_ms: int,
) -> Decided:
    """Return what a leader decided for its group.

    Args:
        leader: the program that led.
        members: as it was shown them.
        answer: what it sends.
        names: member id -> thread.
        threads: all of them, for the views that they hold.
        inputs: task -> partitions that it reads.
        generation: that was decided.
        now_ms: the simulated time.
    """
    unread = {*answer.decision.future_members, *answer.quarantined}
    given = []
    for member in members:
        name = member.member_id
        read = None if name in unread else _read(member, leader)
        part = answer.answers[name]
        thread = next((t for t in threads if _wrote_last(t, member)), None)
        given.append(_given(names.get(name, name), member, read, part, thread))
    return Decided(
        at_ms=now_ms,
        generation=generation,
        leader_is_native=leader.is_native,
        members=tuple(given),
        active=hosts_of((member.endpoint, member.partitions) for member in given),
        standby=hosts_of(
            (member.endpoint, (p for task in member.standby_tasks for p in inputs[task]))
            for member in given
        ),
        names_stalled=any("made no progress" in warning for warning in answer.warnings),
    )


def _wrote_last(thread: StreamThread, member: GroupMember) -> bool:
    """Whether a thread waits for the answer to these bytes; a late duplicate is not its last."""
    if thread.phase not in (Phase.JOINING, Phase.SYNCING) or thread.member_id != member.member_id:
        return False
    asked = thread.asked
    if asked is None:
        return False
    return read_subscription(asked.protocols[0].metadata).user_data == member.user_data


def _given(
    name: str,
    member: GroupMember,
    read: Subscription | None,
    part: MemberAnswer,
    thread: StreamThread | None,
) -> Given:
    native = None if read is None else read.native
    endpoint = None if read is None or not read.user_endpoint else read.user_endpoint
    held = None
    if native is not None and native.view_epoch >= 0:
        held = (native.view_epoch, native.view_checksum)
    holds = held
    if native is not None and thread is not None:
        view = thread.streams.view
        holds = (
            None if view is None else (view_reference(view).epoch, view_reference(view).checksum)
        )
    return Given(
        thread=name,
        endpoint=None if endpoint is None else parse_endpoint(endpoint),
        owned=tuple(sorted(member.owned_partitions or ())),
        reported=held,
        holds=holds,
        partitions=part.partitions,
        standby_tasks=tuple(sorted(part.assignment.standby_tasks)),
        form=_form(part),
    )


def _form(part: MemberAnswer) -> str:
    """How routing travels in an answer."""
    native = part.assignment.native
    if native is None:
        return "maps" if part.assignment.partitions_by_host else "none"
    if native.view_full is not None:
        return "full"
    if native.view_delta is not None:
        return "delta"
    return "none" if native.view_reference is None else "reference"


def _read(member: GroupMember, leader: Release) -> Subscription | None:
    try:
        value = decode_subscription(member.user_data, leader.readable_versions)
    except DecodeError:
        return None
    return value if isinstance(value, Subscription) else None


def routed_by(hosts: HostMap) -> Hosts:
    """Return what a member routes by, as a value that can be compared."""
    return tuple((host, tuple(sorted(hosts[host]))) for host in sorted(hosts))


def followed(
    thread: StreamThread, decisions: Sequence[Decided], *, is_followed: bool, now_ms: int
) -> Followed:
    """Return a thread's tasks and routing after an answer.

    Args:
        thread: that took it.
        decisions: of leaders, the latest last.
        is_followed: the answer's tasks were taken.
        now_ms: the simulated time.
    """
    routing = thread.streams.routing
    matching = [decision for decision in decisions if decision.generation == thread.generation]
    return Followed(
        at_ms=now_ms,
        thread=thread.name,
        is_native=thread.behaviour.release.is_native,
        is_followed=is_followed,
        partitions=tuple(sorted(thread.owned)),
        has_view=thread.streams.view is not None,
        active=routed_by(routing.active),
        standby=routed_by(routing.standby),
        decided=matching[-1] if matching else None,
    )


def at_rest(thread: StreamThread, decisions: Sequence[Decided]) -> AtRest:
    """Return the tasks and the routing of a thread of a group at rest.

    Args:
        thread: that rests.
        decisions: of leaders; a member that wrote version 1 did not send its endpoint, unless it
            is native and has a trailer.
    """
    held, routing = thread.streams.held, thread.streams.routing
    answered, endpoint = thread.answered_version, thread.streams.identity.user_endpoint
    is_known = answered >= _ENDPOINT_SINCE or any(
        member.endpoint is not None
        for decision in decisions
        for member in decision.members
        if decision.generation == thread.generation and member.thread == thread.name
    )
    return AtRest(
        thread=thread.name,
        hears_of_warmups=thread.behaviour.release.is_native
        and any(d.leader_is_native for d in decisions if d.generation == thread.generation),
        process=thread.process,
        endpoint=parse_endpoint(endpoint) if endpoint and is_known else None,
        answered=answered,
        partitions=tuple(sorted(thread.owned)),
        active_tasks=tuple(sorted(held.active)),
        standby_tasks=tuple(sorted(held.standby)),
        warmup_tasks=tuple(sorted(held.warmup)),
        active=routed_by(routing.active),
        standby=routed_by(routing.standby),
    )


def rested(world: WorldState) -> Rested:
    """Return the tasks and the routing of all threads of a group at rest."""
    dimensions = world.setup.dimensions
    config = world.setup.config
    return Rested(
        at_ms=world.now_ms,
        members=tuple(at_rest(thread, world.decisions) for thread in world.threads if thread.is_up),
        standbys=config.num_standby_replicas if dimensions.has_copies else None,
        warmups=config.max_warmup_replicas,
        has_room=dimensions.record_limit is None,
        is_quiet=next_followup_ms(world) is None and _can_follow_up(world),
    )


def _can_follow_up(world: WorldState) -> bool:
    """Whether the leader of the group at rest asks for a follow-up where one is due."""
    decided = world.decisions[-1] if world.decisions else None
    if decided is not None and decided.names_stalled:
        return False
    is_native = decided is not None and decided.leader_is_native
    return is_native or all(
        thread.answered_version >= _FOLLOWUP_SINCE for thread in world.threads if thread.is_up
    )


def next_followup_ms(world: WorldState) -> int | None:
    """Return when the next follow-up of a member is due, None: none is."""
    return min(
        (
            pending.due_ms
            for pending in world.scheduler.unordered()
            if pending.kind == "followup"
            and pending.data
            == (world.threads[pending.target].incarnation, world.threads[pending.target].followup)
        ),
        default=None,
    )


def restoring_ms(world: WorldState) -> int:
    """Return how long members still restore state of active tasks that they took; 0: not at all."""
    took = (event for event in world.trace if isinstance(event, Took))
    return max(0, max((event.at_ms + event.restore_ms for event in took), default=0) - world.now_ms)


def has_forgotten(world: WorldState, *processes: int) -> bool:
    """Return whether the coordinator has no member of the processes any more."""
    threads = {thread.name for thread in world.threads if thread.process in processes}
    described = world.coordinator.describe(GROUP)
    return not any(world.member_ids.names[m.member_id] in threads for m in described.members)
