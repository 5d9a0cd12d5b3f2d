"""`kafka_high_availability`: the default assignor of Kafka Streams 3.x (KIP-441, 708, 925), ported.

It computes the assignment of a JVM leader: the same steps in the same order, with the same
tie-breaks, so that placements are equal task by task. This package's own strategies are in
`assignor.placement.builtin`.
"""

import numpy as np

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.lags import KafkaLags
from assignor.placement.jvm.movements import Warmups, move_actives, move_standbys
from assignor.placement.jvm.racks import KafkaRacks
from assignor.placement.jvm.standbys import assign_standbys
from assignor.placement.jvm.targets import assign_stateful, assign_stateless
from assignor.placement.state import GroupState, IntArray, TaskAssignment
from assignor.placement.trace import Record, Trace


def kafka_high_availability(state: GroupState, *, record: Record | None = None) -> TaskAssignment:
    """Place every task as a JVM leader would.

    Clients without threads get no tasks while another client has threads: a JVM without stream
    threads has no member in the group. Process ids that are UUIDs are sorted as in Java.

    Args:
        state: the group.
        record: called with the trace of the assignment, if given.

    Returns:
        The assignment. `standbys` contains the warm-ups, as Kafka's own result does; `warmups`
        lists those that exist only until they have caught up. `warnings` corresponds to Kafka's log
        messages.
    """
    group = KafkaGroup.of(state)
    racks = KafkaRacks.of(state, group)
    assign_stateful(state, group, racks)
    assigned = [sorted(tasks) for tasks in group.active] if record is not None else []
    warnings = [*racks.warnings, *assign_standbys(state, group, racks)]
    lags = KafkaLags.of(state, group)
    warmups = Warmups(left=state.config.max_warmup_replicas)
    moves = move_actives(group, lags, warmups) + move_standbys(group, lags, warmups)
    assign_stateless(state, group, racks)
    active = np.zeros(len(state.tasks), dtype=np.int64)
    pairs: list[tuple[int, int]] = []
    for rank, client in enumerate(group.clients):
        active[sorted(group.active[rank])] = client
        pairs += [(task, client) for task in group.standby[rank]]
    if record is not None:
        record(_trace(state, group, assigned, active))
    return TaskAssignment(
        active=active,
        standbys=tuple(sorted(pairs)),
        warmups=tuple(sorted((task, group.clients[rank]) for task, rank in warmups.pairs)),
        followup=moves > 0,
        warnings=tuple(warnings),
    )


def _trace(
    state: GroupState, group: KafkaGroup, assigned: list[list[int]], active: IntArray
) -> Trace:
    """The trace of an assignment: Kafka's targets, before tasks start on clients with their state.

    Args:
        state: the group.
        group: its clients, by rank.
        assigned: stateful tasks of each client in the target, by rank.
        active: int [T], the assignment, for the stateless tasks.
    """
    target = active.copy()
    for tasks, client in zip(assigned, group.clients, strict=True):
        target[tasks] = client
    return Trace(
        home=state.owner,
        balanced=target,
        target=target,
        standbys=None,
        why="Kafka assigns all tasks anew, wherever they ran, and balances the clients",
    )
