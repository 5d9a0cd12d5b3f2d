"""A strategy of your own: even partitions in the first zone, odd ones in the second.

Run it on a problem file: assignor assign --strategy own_strategy:by_zone --problem FILE
"""

import numpy as np

from assignor import (
    ClientInput,
    GroupState,
    TaskAssignment,
    TaskId,
    default_standbys,
    group_state,
    identity,
)


def by_zone(state: GroupState) -> TaskAssignment:
    """Keep a task on its owner if that is in the task's zone, else use the zone's least loaded."""
    zone_of = [dict(tags).get("zone", "") for tags in state.tags]
    zones = sorted(set(zone_of))
    active = identity(state).active.copy()
    for index, task in enumerate(state.tasks):
        zone = zones[task.partition % len(zones)]
        in_zone = [client for client, own in enumerate(zone_of) if own == zone]
        if active[index] not in in_zone:
            load = np.bincount(active, minlength=len(state.clients))
            active[index] = min(in_zone, key=lambda c: (load[c] / max(state.threads[c], 1), c))
    return TaskAssignment(active=active, standbys=default_standbys(state, active))


if __name__ == "__main__":
    tasks = [TaskId(0, partition) for partition in range(6)]
    zones = {"ada": "east", "bob": "west", "cyd": "east"}
    clients = [ClientInput(process_id=name, tags=(("zone", z),)) for name, z in zones.items()]
    group = group_state(tasks=tasks, stateful_tasks=tasks, clients=clients)
    for task, client in zip(group.tasks, by_zone(group).active.tolist(), strict=True):
        print(task, "runs on", group.clients[client])
