"""`kafka_high_availability`: the default assignor of Kafka Streams 3.x (KIP-441, 708, 925), ported.

It answers "what will the JVM leader do": the same steps in the same order, ties broken the same
way, so that a placement is equal task by task. Read `assignor.placement.builtin` for how we place.
"""

import numpy as np

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.lags import KafkaLags
from assignor.placement.jvm.movements import Warmups, move_actives, move_standbys
from assignor.placement.jvm.racks import KafkaRacks
from assignor.placement.jvm.standbys import assign_standbys
from assignor.placement.jvm.targets import assign_stateful, assign_stateless
from assignor.placement.state import GroupState, TaskAssignment


def kafka_high_availability(state: GroupState) -> TaskAssignment:
    """Place every task as a JVM leader would.

    Clients without threads are left out while another has some: a JVM without stream threads has
    no member in the group. Process ids that are UUIDs are ordered as Java orders them.

    Returns:
        The placement. `standbys` holds warm-ups too, as Kafka's own result does; `warmups` says
        which of them exist only for the time that they need to catch up. `warnings` holds what
        Kafka would write to its log.
    """
    group = KafkaGroup.of(state)
    racks = KafkaRacks.of(state, group)
    assign_stateful(state, group, racks)
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
    return TaskAssignment(
        active=active,
        standbys=tuple(sorted(pairs)),
        warmups=tuple(sorted((task, group.clients[rank]) for task, rank in warmups.pairs)),
        followup=moves > 0,
        warnings=tuple(warnings),
    )
