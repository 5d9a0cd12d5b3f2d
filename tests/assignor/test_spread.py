"""Copies of a task on different values of every key."""

import numpy as np

from assignor import AssignmentConfig, ClientInput, group_state
from assignor.spread import Spread
from encoding import TaskId


def spread(*tags, racks=None, threads=None):
    keys = tuple(sorted({key for one in tags for key in one}))
    return Spread.of(
        group_state(
            tasks=[TaskId(0, 0)],
            stateful_tasks=[TaskId(0, 0)],
            clients=[
                ClientInput(
                    process_id=f"c{i}",
                    tags=tuple(one.items()),
                    rack=racks[i] if racks else None,
                    threads=threads[i] if threads else 1,
                )
                for i, one in enumerate(tags)
            ],
            config=AssignmentConfig(rack_aware_assignment_tags=keys),
        )
    )


def fits(one, holders, room=None):
    has_room = np.ones(one.codes.shape[1], dtype=bool) if room is None else np.array(room)
    return np.flatnonzero(one.fits(holders, has_room)).tolist()


def test_one_value_is_no_spread():
    assert not spread({"zone": "a"}, {"zone": "a"}).is_needed
    # The value of a client that holds nothing does not count.
    assert not spread({"zone": "a"}, {"zone": "b"}, threads=[1, 0]).is_needed


def test_new_values_come_first_even_without_room():
    one = spread({"zone": "a"}, {"zone": "a"}, {"zone": "b"})
    assert fits(one, [0]) == [2]
    assert fits(one, [0], [True, True, False]) == [2]
    assert fits(one, [0, 2]) == [1]


def test_two_keys_count_together():
    one = spread(
        {"zone": "a", "cluster": "x"}, {"zone": "a", "cluster": "y"}, {"zone": "b", "cluster": "y"}
    )
    assert fits(one, [0]) == [2]


def test_copies_are_kept_while_the_greatest_spread_stays_within_reach():
    one = spread({"zone": "a"}, {"zone": "a"}, {"zone": "b"}, {"zone": "c"})
    assert one.keep([1, 2, 3], 0, 2) == [2, 3]
    assert sorted(one.keep([1, 2], 0, 3)) == [1, 2]
    assert one.keep([1], 0, 1) == []


def test_a_copy_may_move_when_no_value_is_lost():
    one = spread({"zone": "a"}, {"zone": "b"}, {"zone": "b"}, {"zone": "a"})
    assert one.may_replace([0, 1], 1, 2)
    assert not one.may_replace([0, 1], 1, 3)


def test_a_missing_tag_is_a_value_of_its_own():
    one = spread({"zone": "a"}, {}, {"zone": "a"})
    assert fits(one, [0]) == [1]
