"""Whole placements of small groups with racks, compared with every placement that keeps the counts.

A task costs traffic, and one move if it leaves its places; so an exchange of two tasks costs two
moves, whatever copies are left over from other placements.
"""

from itertools import permutations

import numpy as np

from assignor import AssignmentConfig
from assignor.placement.final_places import targets
from assignor.placement.state import LAG_RUNNING, ClientInput, group_state
from encoding import TaskId
from tests.assignor.placement.racks.groups import active_cost, draw_replicas, seeded

END = 1_000_000


def draw(rng):
    """A group in which each task runs, and other clients have copies of it, late or caught up."""
    clients, racks = rng.randint(2, 4), ["r0", "r1", "r2"][: rng.randint(2, 3)]
    tasks = [TaskId(0, number) for number in range(rng.randint(2, 6))]
    owner = {task: rng.randrange(clients) for task in tasks}
    lags = {client: {} for client in range(clients)}
    for task in tasks:
        for client in range(clients):
            if client == owner[task]:
                lags[client][task] = LAG_RUNNING
            elif rng.random() < 0.5:
                lags[client][task] = rng.choice([0, 0, 20_000, END // 2])
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=f"c{client}",
                active_tasks=frozenset(task for task in tasks if owner[task] == client),
                lags=lags[client],
                rack=rng.choice(racks),
            )
            for client in range(clients)
        ],
        config=AssignmentConfig(
            num_standby_replicas=rng.choice([0, 0, 1]),
            rack_aware_assignment_strategy="min_traffic",
            rack_aware_assignment_traffic_cost=rng.choice([1, 5, 10]),
            rack_aware_assignment_non_overlap_cost=rng.choice([0, 1, 3, 10]),
        ),
        end_offset_sums=dict.fromkeys(tasks, END),
        partition_racks={task: draw_replicas(rng, racks) for task in tasks},
    )


def test_no_placement_with_the_same_counts_costs_less():
    for seed in range(800):
        state = draw(seeded(seed))
        found = targets(state)
        config = state.config
        costs = (
            config.rack_aware_assignment_traffic_cost,
            config.rack_aware_assignment_non_overlap_cost,
        )
        balanced, tasks = found.balanced, np.arange(len(state.tasks))
        table = np.array(
            [
                [active_cost(state, task, c, costs, balanced) for c in range(len(state.clients))]
                for task in tasks.tolist()
            ]
        )
        others = np.array(list(set(permutations(balanced.tolist()))))
        least = int(table[tasks, others].sum(axis=1).min())
        assert sorted(found.active.tolist()) == sorted(balanced.tolist()), seed
        assert int(table[tasks, found.active].sum()) == least, seed
