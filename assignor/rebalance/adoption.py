"""What an answer makes of a member: which tasks it holds, what it writes next, what it asks for.

Nothing is raised for what a leader sent: an answer that cannot be read or followed becomes a
`failure`, a sentence.
"""

from collections.abc import Sequence
from dataclasses import replace

from assignor.logs import line_logger
from assignor.rebalance.blobs import read_answer
from assignor.rebalance.forms.own import OwnTopology
from assignor.rebalance.held_tasks import (
    NO_TASKS,
    UnfollowableAnswer,
    held_tasks,
    known_sizes,
    view_after,
    view_routing,
)
from assignor.rebalance.member_facts import (
    Adopted,
    MemberIdentity,
    Received,
    is_unlisted,
    other_topology,
    outdated_answer,
    read_native_answer,
)
from assignor.rebalance.routing_view import Routing, routing_of
from encoding import Assignment, DecodeError, TopicPartition, shown
from probing import (
    AssignmentReceived,
    IgnoreTasks,
    KeepVersion,
    Refuse,
    RejoinNow,
    Release,
    WriteNextTime,
    member_step,
)

_HEADER_BYTES = 8
_log = line_logger(__name__)


def adopt(
    before: Adopted,
    partitions: Sequence[TopicPartition],
    user_data: bytes,
    *,
    now_ms: int,
    led_supported_version: int | None,
    release: Release,
    identity: MemberIdentity,
    topology: OwnTopology,
) -> tuple[Adopted, Received]:
    """Return what a member has after an answer, and what probing asks for.

    Args:
        before: what it had.
        partitions: what the consumer protocol assigned.
        user_data: the assignment blob.
        now_ms: epoch milliseconds, the clock of `next_rebalance_ms`.
        led_supported_version: as `Member.receive` takes it.
        release: whose rules it follows.
        identity: what it reports about itself.
        topology: what it can run; learns reached versions from the answer.
    """
    try:
        assignment = read_answer(user_data, release.readable_versions)
    except DecodeError as error:
        return _adopt_unreadable(before, user_data, error, release, now_ms)
    after = _with_routing(before, assignment, topology)
    event = AssignmentReceived(
        received_version=assignment.version,
        commonly_supported_version=assignment.commonly_supported_version,
        error_code=assignment.error_code,
        host_missing=is_unlisted(identity.user_endpoint, after.routing),
        next_rebalance_ms=assignment.next_rebalance_ms,
        now_ms=now_ms,
        led_supported_version=led_supported_version,
        native=read_native_answer(assignment),
    )
    state, commands = member_step(before.state, event)
    # The routing of an answer counts once its tasks are followed.
    kept = replace(after, state=state, routing=before.routing)
    for_version = not any(isinstance(c, KeepVersion | WriteNextTime) for c in commands)
    received = Received(assignment=assignment, commands=commands, for_version=for_version)
    if any(isinstance(command, IgnoreTasks) for command in commands):
        return kept, received
    refusals = [command.why for command in commands if isinstance(command, Refuse)]
    if refusals:
        return replace(kept, held=NO_TASKS), replace(received, failure=refusals[0])
    try:
        if release.is_native:
            assignment = topology.taken(assignment)
            received = replace(received, assignment=assignment)
        held = held_tasks(assignment, partitions, topology.carried.subtopologies)
    except UnfollowableAnswer as error:
        return replace(kept, held=NO_TASKS), replace(received, failure=str(error))
    return replace(kept, held=held, routing=after.routing), received


def adopt_as_first(
    before: Adopted, after: Adopted, received: Received, topology: OwnTopology
) -> tuple[Adopted, Received]:
    """Return the same for the first answer of a static member, which may be from before a restart.

    The coordinator keeps the answer of a static member. If it cannot be read or followed, is about
    another topology, or is not about the newest of several that the member carries, it asks for a
    new answer.

    Args:
        before: what the member had.
        after: what it has by `adopt`.
        received: by `adopt`.
        topology: of the member.
    """
    outdated = received.failure or outdated_answer(received.assignment, topology)
    if not outdated:
        return after, received
    if received.failure:
        after = replace(after, state=before.state)
    rejoin = RejoinNow(
        used_version=after.state.used_version,
        rule="answer from before the restart",
        why=f"{outdated}; this may be what the group kept for this member's former self, so it"
        " asks for a new answer",
    )
    commands = (*received.commands, rejoin)
    return after, Received(assignment=received.assignment, commands=commands)


def unexpected(error: Exception) -> Received:
    """Return what any other error makes of an answer: it cannot be followed."""
    _log.error("an answer of the leader caused an unexpected error", exc_info=error)
    what = shown(f"{type(error).__name__}: {error}")
    failure = f"the leader's answer caused an unexpected error ({what})"
    return Received(assignment=None, failure=failure)


def _adopt_unreadable(
    before: Adopted, data: bytes, error: DecodeError, release: Release, now_ms: int
) -> tuple[Adopted, Received]:
    """Follow the two numbers that an answer of a later version begins with, by probing."""
    after = replace(before, held=NO_TASKS)
    failure = f"the leader's answer is unreadable: {error}"
    version, common = (int.from_bytes(data[i : i + 4], signed=True) for i in (0, 4))
    if len(data) < _HEADER_BYTES or version <= max(release.known_versions):
        return after, Received(assignment=None, failure=failure)
    event = AssignmentReceived(
        received_version=version, commonly_supported_version=common, now_ms=now_ms
    )
    state, commands = member_step(before.state, event)
    after = replace(after, state=state)
    if any(isinstance(command, RejoinNow) for command in commands):
        return after, Received(assignment=None, commands=commands, for_version=True)
    return after, Received(assignment=None, commands=commands, failure=failure)


def _with_routing(before: Adopted, assignment: Assignment, topology: OwnTopology) -> Adopted:
    """Return what a member has with the view that an answer carries, if it fits."""
    native, parts = assignment.native, topology.carried.subtopologies
    if native is None:
        active, standby = assignment.partitions_by_host, assignment.standby_partitions_by_host
        return replace(before, routing=Routing(active=active, standby=standby))
    sizes = known_sizes(parts, native.partition_counts)
    routing = Routing()
    if native.numbered_by:
        view = view_after(before.view, native, native.sizes)
        if view is not None:
            numbered = topology.in_group_numbers(native.numbered_by)
            routing = routing_of(view, numbered, native.partition_counts)
        return replace(before, sizes=sizes or (), view=view, routing=routing)
    view = view_after(before.view, native, sizes)
    if view is not None:
        routing = view_routing(view, parts, native.partition_counts)
    # Numbers the tasks of the next subscription, if the answer is about this topology.
    own = () if other_topology(assignment, parts) else native.sizes
    return replace(before, sizes=own, view=view, routing=routing)
