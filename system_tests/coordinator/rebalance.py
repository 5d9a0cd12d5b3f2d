"""The rebalance: its start, its end, and the members of the new generation.

```
Empty / Stable / CompletingRebalance --prepare--> PreparingRebalance
PreparingRebalance --all members joined, or the deadline--> CompletingRebalance (or Empty)
```
"""

from system_tests.coordinator.group import NEVER, Group, Member
from system_tests.coordinator.storage import store
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import ErrorCode, EventKind, GroupState, JoinAnswer, SyncAnswer


def maybe_prepare_rebalance(turn: Turn, group: Group, reason: str) -> None:
    """Start a rebalance, unless one is in PreparingRebalance already."""
    if group.can_rebalance:
        prepare_rebalance(turn, group, reason)


def prepare_rebalance(turn: Turn, group: Group, reason: str) -> None:
    """Move to PreparingRebalance; pending SyncGroups are answered REBALANCE_IN_PROGRESS.

    An empty group waits `initial_rebalance_delay_ms` for more members (KIP-134). Any other group
    waits for its members, at most the longest of their rebalance timeouts.
    """
    if group.state is GroupState.COMPLETING_REBALANCE:
        fail_syncs(turn, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.sync_deadline_ms = NEVER
    group.unsynced.clear()
    timeout_ms = group.rebalance_timeout_ms
    group.join_is_delayed = group.state is GroupState.EMPTY
    if group.join_is_delayed:
        delay_ms = turn.config.initial_rebalance_delay_ms
        group.join_delay_left_ms = max(timeout_ms - delay_ms, 0)
        timeout_ms = delay_ms
    group.join_deadline_ms = group.wake_at(turn.now_ms + timeout_ms)
    group.state = GroupState.PREPARING_REBALANCE
    turn.record(EventKind.REBALANCE_STARTED, group, reason=reason)
    try_complete_join(turn, group)


def try_complete_join(turn: Turn, group: Group) -> None:
    """End the joining phase early if all members have joined."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and not group.join_is_delayed
        and group.has_all_members
    ):
        complete_join(turn, group)


def on_join_deadline(turn: Turn, group: Group) -> None:
    """End the joining phase at its deadline; an initial one is extended if new members joined."""
    if group.join_is_delayed and group.new_member_added and group.join_delay_left_ms > 0:
        group.new_member_added = False
        wait_ms = min(turn.config.initial_rebalance_delay_ms, group.join_delay_left_ms)
        group.join_delay_left_ms -= wait_ms
        group.join_deadline_ms = group.wake_at(turn.now_ms + wait_ms)
        return
    complete_join(turn, group)


def complete_join(turn: Turn, group: Group) -> None:
    """End the joining phase: remove members that did not join, and start the next generation."""
    absent = [m for m in group.members.values() if m.join_token is None and m.instance_id is None]
    for member in absent:
        drop_member(turn, group, member)
        turn.record(
            EventKind.MEMBER_EXPIRED, group, member, reason="did not rejoin within the rebalance"
        )
    group.join_is_delayed = False
    if group.members and not _has_joined_leader(turn, group):
        # Only static members are left and none has rejoined: wait for one, or until they expire.
        wait_ms = max(group.rebalance_timeout_ms, 1)
        group.join_deadline_ms = group.wake_at(turn.now_ms + wait_ms)
        return
    group.join_deadline_ms = NEVER
    group.new_member_added = False
    group.generation += 1
    if not group.members:
        _become_empty(turn, group)
        return
    group.protocol_name = group.elect_protocol()
    group.state = GroupState.COMPLETING_REBALANCE
    turn.record(
        EventKind.GENERATION_COMPLETED,
        group,
        group.members[group.leader_id or ""],
        reason=f"protocol {group.protocol_name}",
        all_members=True,
    )
    for member in group.members.values():
        turn.answer_join(member, generation_answer(group, member))
        turn.touch(group, member)
        member.is_new = False
    group.unsynced = set(group.members)
    group.sync_deadline_ms = group.wake_at(turn.now_ms + max(group.rebalance_timeout_ms, 1))


def on_sync_deadline(turn: Turn, group: Group) -> None:
    """Remove members that joined but sent no SyncGroup (KAFKA-13450)."""
    group.sync_deadline_ms = NEVER
    silent = [group.members[i] for i in group.members if i in group.unsynced]
    if not silent:
        return
    for member in silent:
        drop_member(turn, group, member)
        turn.record(
            EventKind.MEMBER_EXPIRED, group, member, reason="did not sync within the rebalance"
        )
    prepare_rebalance(turn, group, f"{len(silent)} members did not sync")


def generation_answer(group: Group, member: Member) -> JoinAnswer:
    """Return the JoinGroup response for the current generation; the leader's has all members."""
    is_leader = group.leader_id == member.member_id
    return JoinAnswer(
        error=ErrorCode.NONE,
        member_id=member.member_id,
        generation=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader_id=group.leader_id or "",
        members=group.joined_members() if is_leader else (),
    )


def fail_syncs(turn: Turn, group: Group, error: ErrorCode) -> None:
    """Answer every pending SyncGroup with an error, and drop the assignment of the generation."""
    for member in group.members.values():
        member.assignment = b""
        had_waited = member.sync_token is not None
        turn.answer_sync(member, SyncAnswer(error=error))
        if had_waited:
            turn.touch(group, member)


def drop_member(turn: Turn, group: Group, member: Member) -> None:
    """Remove a member; its pending requests are answered UNKNOWN_MEMBER_ID."""
    turn.answer_join(member, JoinAnswer(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=""))
    turn.answer_sync(member, SyncAnswer(error=ErrorCode.UNKNOWN_MEMBER_ID))
    group.discard(member)
    if group.leader_id == member.member_id:
        leader_id = turn.choose_leader(tuple(group.members)) if group.members else None
        turn.elect_leader(group, leader_id, "the former leader is gone")


def remove_member(turn: Turn, group: Group, member: Member, kind: EventKind, reason: str) -> None:
    """Remove a member and start a rebalance."""
    drop_member(turn, group, member)
    turn.record(kind, group, member, reason=reason)
    settle_after_removal(turn, group, f"{kind.value}: {reason}")


def settle_after_removal(turn: Turn, group: Group, reason: str) -> None:
    """After a member or pending id was removed: start a rebalance, or complete the running one."""
    if group.state is GroupState.PREPARING_REBALANCE:
        try_complete_join(turn, group)
    elif group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        prepare_rebalance(turn, group, reason)


def _has_joined_leader(turn: Turn, group: Group) -> bool:
    """Ensure that the leader has joined, by electing another one; False if no member has."""
    leader = group.members.get(group.leader_id or "")
    if leader is not None and leader.join_token is not None:
        return True
    joined = tuple(m.member_id for m in group.members.values() if m.join_token is not None)
    if not joined:
        return False
    turn.elect_leader(group, turn.choose_leader(joined), "the former leader did not rejoin")
    return True


def _become_empty(turn: Turn, group: Group) -> None:
    group.state = GroupState.EMPTY
    group.protocol_name = None
    group.leader_id = None
    store(turn, group, {})
    turn.record(EventKind.GROUP_EMPTIED, group)
