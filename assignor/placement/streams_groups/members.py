"""The members of a streams group for a group state, whose clients are processes."""

from typing import Final

from assignor.errors import TaskAssignmentError
from assignor.placement.state import NOBODY, GroupState
from assignor.placement.streams_groups.assign import MemberSpec
from encoding import TaskId

MEMBERS_MOST: Final = 100_000
"""Members, which are threads of all clients, of the largest streams group that is computed."""


def member_specs(state: GroupState) -> list[MemberSpec]:
    """The members that a broker would have for the group: one for each thread, by member id.

    The state tells which client had a task, not which thread: the former tasks of a client are
    dealt to its threads, first the active ones. Every copy besides that of the owner counts as a
    former standby, except those in `left_over`. A client without threads has no member.

    Raises:
        TaskAssignmentError: the clients have more than `MEMBERS_MOST` threads.
    """
    capacity = state.capacity().tolist()
    members = sum(capacity)
    if members > MEMBERS_MOST:
        raise TaskAssignmentError(
            f"the clients have {members:,} threads, and each is a member of the streams group; at"
            f" most {MEMBERS_MOST:,} are computed: give fewer threads"
        )
    active: list[list[TaskId]] = [[] for _ in state.clients]
    standby: list[list[TaskId]] = [[] for _ in state.clients]
    owners = state.owner.tolist()
    for task, owner in zip(state.tasks, owners, strict=True):
        if owner != NOBODY:
            active[owner].append(task)
    unknown = frozenset(state.left_over)
    held = zip(state.copy_task().tolist(), state.copy_client.tolist(), strict=True)
    for task, client in held:
        is_known = state.stateful[task] and (task, client) not in unknown
        if is_known and owners[task] != client:
            standby[client].append(state.tasks[task])
    specs = []
    for process_id, threads, ran, stood_by in zip(
        state.clients, capacity, active, standby, strict=True
    ):
        for thread in range(threads):
            # The standbys go on where the active tasks end, so that all threads have as many.
            first = (thread - len(ran)) % threads
            spec = MemberSpec(
                member_id=f"{process_id}-{thread + 1}",
                process_id=process_id,
                active=frozenset(ran[thread::threads]),
                standby=frozenset(stood_by[first::threads]),
            )
            specs.append(spec)
    return sorted(specs, key=lambda spec: spec.member_id)
