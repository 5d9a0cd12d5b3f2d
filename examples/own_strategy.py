"""A strategy of your own: keep everything in place, but give each zone its own leaders.

Run it on a problem file: assignor assign --strategy own_strategy:by_zone --problem FILE
"""

import numpy as np

from assignor import (
    AssignmentConfig,
    ClientInput,
    GroupState,
    TaskAssignment,
    default_standbys,
    group_state,
    identity,
)
from encoding import TaskId


def by_zone(state: GroupState) -> TaskAssignment:
    """Even partitions run in the first zone, odd ones in the second; standbys as usual."""
    zones = sorted({dict(tags).get("zone", "") for tags in state.tags})
    active = identity(state).active.copy()
    for index, task in enumerate(state.tasks):
        zone = zones[task.partition % len(zones)]
        here = [c for c, tags in enumerate(state.tags) if dict(tags).get("zone", "") == zone]
        if active[index] not in here:
            load = np.bincount(active, minlength=len(state.clients))
            active[index] = min(here, key=lambda c: (load[c] / max(state.threads[c], 1), c))
    return TaskAssignment(active=active, standbys=default_standbys(state, active))


tasks = [TaskId(0, partition) for partition in range(6)]
group = group_state(
    tasks=tasks,
    stateful_tasks=tasks,
    clients=[
        ClientInput(process_id=name, tags=(("zone", zone),))
        for name, zone in [("ada", "east"), ("bob", "west"), ("cyd", "east")]
    ],
    config=AssignmentConfig(num_standby_replicas=1, rack_aware_assignment_tags=("zone",)),
)
answer = by_zone(group)
for task, client in zip(group.tasks, answer.active.tolist(), strict=True):
    print(task, "runs on", group.clients[client])
