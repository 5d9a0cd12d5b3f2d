"""Final places of all tasks: a running move is not decided again."""

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, group_state, high_availability, run_strategy
from assignor.placement import LAG_RUNNING, NOBODY
from assignor.placement.final_places import _moves_under_way
from encoding import TaskId

TASKS = [TaskId(0, number) for number in range(3)]


def crossed(warming, *, overlap=1, standbys=0):
    """Client a (rack r0) runs 0_0 of r1; b and c (r1) run 0_1 and 0_2 of r0; one warms 0_0 up."""
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=[
            ClientInput(
                process_id=name,
                active_tasks=frozenset({task}),
                lags={task: LAG_RUNNING} | ({TASKS[0]: 500_000} if name == warming else {}),
                rack="r0" if name == "a" else "r1",
            )
            for name, task in zip("abc", TASKS, strict=True)
        ],
        config=AssignmentConfig(
            rack_aware_assignment_strategy="min_traffic",
            rack_aware_assignment_traffic_cost=10,
            rack_aware_assignment_non_overlap_cost=overlap,
            max_warmup_replicas=1,
            num_standby_replicas=standbys,
        ),
        end_offset_sums=dict.fromkeys(TASKS, 1_000_000),
        partition_racks={
            task: (frozenset({rack}),) for task, rack in zip(TASKS, ("r1", "r0", "r0"), strict=True)
        },
    )


@pytest.mark.parametrize(("warming", "client"), [("b", 1), ("c", 2)])
def test_of_two_placements_as_cheap_the_one_that_warms_up_is_kept(warming, client):
    answer = run_strategy(crossed(warming), high_availability)
    assert answer.warmups == ((0, client),)
    assert answer.active.tolist() == [0, 1, 2]


def test_a_move_is_under_way_where_an_extra_copy_reads_less_from_other_racks():
    assert _moves_under_way(crossed("c")).tolist() == [2, NOBODY, NOBODY]
    nowhere = np.full(3, NOBODY).tolist()
    assert _moves_under_way(crossed("")).tolist() == nowhere
    # A configured standby is no move, nor is a copy that costs as much as it saves.
    assert _moves_under_way(crossed("c", standbys=1)).tolist() == nowhere
    assert _moves_under_way(crossed("c", overlap=10)).tolist() == nowhere


def test_kafka_15022_leftover_copies_are_no_moves_and_two_hand_offs_for_less_traffic_are_none():
    """Both clients have both tasks: a swap saves a traffic of 5, and costs twice 3."""
    tasks = TASKS[:2]
    state = group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=name,
                active_tasks=frozenset({task}),
                lags=dict.fromkeys(tasks, 0) | {task: LAG_RUNNING},
                rack=rack,
            )
            for name, task, rack in zip("ab", tasks, ("r1", "r0"), strict=True)
        ],
        config=AssignmentConfig(
            rack_aware_assignment_strategy="min_traffic",
            rack_aware_assignment_traffic_cost=5,
            rack_aware_assignment_non_overlap_cost=3,
        ),
        end_offset_sums=dict.fromkeys(tasks, 1_000_000),
        partition_racks={
            tasks[0]: (frozenset({"r0", "r1"}),),
            tasks[1]: (frozenset({"r1"}),),
        },
    )
    assert run_strategy(state, high_availability).active.tolist() == [0, 1]
