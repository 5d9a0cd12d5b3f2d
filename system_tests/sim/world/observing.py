"""What the judges of a group with dimensions see: who was given what, who routes by what.

Values are taken from subscriptions, answers and members as they are, never from what the leader
says of them: hosts and partitions are put together here once more, by simpler means.
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
from system_tests.sim.events import AtRest, Decided, Followed, Given, Hosts, Partitions, hosts_of
from system_tests.sim.world.thread import Phase, StreamThread
from system_tests.sim.world.wire import read_subscription

_ENDPOINT_SINCE = 2
KEPT_DECISIONS: Final = 4
"""Generations whose decisions are known; members are answered of the last one, or a few late."""


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
    """Return what a leader made of its group.

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
        active=hosts_of((one.endpoint, one.partitions) for one in given),
        standby=hosts_of(
            (one.endpoint, (p for task in one.standby_tasks for p in inputs[task])) for one in given
        ),
        names_stalled=any("came no nearer" in warning for warning in answer.warnings),
    )


def _wrote_last(thread: StreamThread, member: GroupMember) -> bool:
    """Whether a thread waits for the answer to these bytes; a late copy of a request is older."""
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
    """Return what a thread goes by after an answer.

    Args:
        thread: that took it.
        decisions: of leaders, the latest last.
        is_followed: the answer's tasks were taken.
        now_ms: the simulated time.
    """
    routing = thread.streams.routing
    matching = [one for one in decisions if one.generation == thread.generation]
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
    """Return what a thread of a group at rest runs and goes by.

    Args:
        thread: that rests.
        decisions: of leaders; who wrote version 1 told none of its endpoint, but for members of
            ours, who have a trailer.
    """
    held, routing = thread.streams.held, thread.streams.routing
    answered, endpoint = thread.answered_version, thread.streams.identity.user_endpoint
    is_known = answered >= _ENDPOINT_SINCE or any(
        member.endpoint is not None
        for one in decisions
        for member in one.members
        if one.generation == thread.generation and member.thread == thread.name
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
