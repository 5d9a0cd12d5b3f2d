"""Small groups: six tasks on three clients, and a client that joins another."""

from assignor import ClientInput, group_state
from assignor.config import AssignmentConfig
from encoding import TaskId

TASKS = [TaskId(0, p) for p in range(6)]


def state(owners="aabbcc", *, lags=None, clients="abc", standbys=0, **changes):
    """Six stateful tasks; each letter is the client that runs the task at its position, or `-`."""
    members = []
    for name in clients:
        own_tasks = [task for task, owner in zip(TASKS, owners, strict=True) if owner == name]
        reported = dict.fromkeys(own_tasks, -1) | dict((lags or {}).get(name, {}))
        members.append(
            ClientInput(
                process_id=name, active_tasks=frozenset(own_tasks), lags=reported, **changes
            )
        )
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=members,
        config=AssignmentConfig(num_standby_replicas=standbys),
        end_offset_sums=dict.fromkeys(TASKS, 1_000_000),
    )


JOIN = {
    "name": "join",
    "config": {"max.warmup.replicas": 1},
    "topics": {"t": {"partitions": 4}},
    "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
    # Small tasks leave first: 0_0 and 0_1.
    "end_offset_sums": {"0_0": 10**6, "0_1": 10**6, "0_2": 10**8, "0_3": 10**8},
    "clients": {
        "aaaaaaaa-1": {
            "active": ["0_0", "0_1", "0_2", "0_3"],
            "lags": {f"0_{p}": "running" for p in range(4)},
        },
        "bbbbbbbb-2": {},
    },
}
