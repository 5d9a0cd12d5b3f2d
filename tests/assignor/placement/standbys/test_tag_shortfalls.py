"""Spread over tag values that a placement does not reach, reported with task and key."""

import numpy as np

from assignor import AssignmentConfig
from assignor.placement.standbys.tag_shortfalls import shortfalls, tag_warnings
from assignor.placement.state import ClientInput, group_state
from encoding import TaskId


def group(tags, *, keys, tasks=1, replicas=1, threads=None):
    names = [TaskId(0, number) for number in range(tasks)]
    return group_state(
        tasks=names,
        stateful_tasks=names,
        clients=[
            ClientInput(
                process_id=f"c{number}",
                tags=tuple(sorted(given.items())),
                threads=threads[number] if threads else 1,
            )
            for number, given in enumerate(tags)
        ],
        end_offset_sums=dict.fromkeys(names, 5),
        config=AssignmentConfig(num_standby_replicas=replicas, rack_aware_assignment_tags=keys),
    )


def test_what_cannot_be_had_is_reported_with_task_and_key():
    tags = [
        {"zone": "a", "cluster": "x"},
        {"zone": "a", "cluster": "y"},
        {"zone": "b", "cluster": "x"},
    ]
    state = group(tags, keys=("zone", "cluster"))
    pairs = ((0, 1),)
    assert shortfalls(state, np.array([0]), pairs) == ((0, "zone", 1, 2),)
    (warning,) = tag_warnings(state, np.array([0]), pairs)
    assert "tag zone" in warning
    assert "0_0 on 1 of 2" in warning


def test_a_key_that_no_client_has_is_reported():
    state = group([{"zone": "a"}, {"zone": "b"}], keys=("zone", "rack"))
    (warning,) = tag_warnings(state, np.array([0]), ((0, 1),))
    assert "no client has the tag rack" in warning


def test_one_value_for_all_is_no_warning():
    state = group([{"zone": "a"}, {"zone": "a"}], keys=("zone",))
    assert shortfalls(state, np.array([0]), ((0, 1),)) == ()
    assert tag_warnings(state, np.array([0]), ((0, 1),)) == ()


def test_the_value_of_a_client_without_threads_is_not_asked_for():
    tags = [{"zone": zone} for zone in "aab"]
    state = group(tags, keys=("zone",), threads=[1, 1, 0])
    assert shortfalls(state, np.array([0]), ((0, 1),)) == ()


def test_without_tags_there_is_no_warning():
    state = group([{"zone": "a"}, {"zone": "b"}], keys=())
    assert tag_warnings(state, np.array([0]), ((0, 1),)) == ()
