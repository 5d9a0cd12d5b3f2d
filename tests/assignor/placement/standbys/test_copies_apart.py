"""Copies of a task on different values of every key."""

from itertools import combinations

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, group_state
from assignor.placement.jvm import kafka_high_availability
from assignor.placement.standbys.copies_apart import Spread
from assignor.placement.standbys.final_copies import target_standbys
from encoding import TaskId
from tests.assignor.placement.racks.groups import seeded

VALUES = {"zone": "abcd", "cluster": "xyz", "size": "12"}


def spread(*tags, racks=None, threads=None):
    keys = tuple(sorted({key for own_tags in tags for key in own_tags}))
    return Spread.of(
        group_state(
            tasks=[TaskId(0, 0)],
            stateful_tasks=[TaskId(0, 0)],
            clients=[
                ClientInput(
                    process_id=f"c{i}",
                    tags=tuple(own_tags.items()),
                    rack=racks[i] if racks else None,
                    threads=threads[i] if threads else 1,
                )
                for i, own_tags in enumerate(tags)
            ],
            config=AssignmentConfig(rack_aware_assignment_tags=keys),
        )
    )


def fits(apart, holders, free=None):
    has_space = np.ones(apart.codes.shape[1], dtype=bool) if free is None else np.array(free)
    return np.flatnonzero(apart.fits(holders, has_space)).tolist()


def test_one_value_is_no_spread():
    assert not spread({"zone": "a"}, {"zone": "a"}).is_needed
    # The value of a client that holds nothing does not count.
    assert not spread({"zone": "a"}, {"zone": "b"}, threads=[1, 0]).is_needed


def test_new_values_come_first_even_without_free_capacity():
    apart = spread({"zone": "a"}, {"zone": "a"}, {"zone": "b"})
    assert fits(apart, [0]) == [2]
    assert fits(apart, [0], [True, True, False]) == [2]
    assert fits(apart, [0, 2]) == [1]


def test_two_keys_count_together():
    apart = spread(
        {"zone": "a", "cluster": "x"}, {"zone": "a", "cluster": "y"}, {"zone": "b", "cluster": "y"}
    )
    assert fits(apart, [0]) == [2]


def test_copies_are_kept_while_the_greatest_spread_stays_within_reach():
    apart = spread({"zone": "a"}, {"zone": "a"}, {"zone": "b"}, {"zone": "c"})
    assert apart.keep([1, 2, 3], 0, 2) == [2, 3]
    assert sorted(apart.keep([1, 2], 0, 3)) == [1, 2]
    assert apart.keep([1], 0, 1) == []


def test_a_copy_may_move_when_no_value_is_lost():
    apart = spread({"zone": "a"}, {"zone": "b"}, {"zone": "b"}, {"zone": "a"})
    assert apart.may_replace([0, 1], 1, 2)
    assert not apart.may_replace([0, 1], 1, 3)


def test_a_missing_tag_is_a_value_of_its_own():
    apart = spread({"zone": "a"}, {}, {"zone": "a"})
    assert fits(apart, [0]) == [1]


def test_the_next_copy_is_the_one_that_leads_furthest():
    # From (a, x), all others can differ in both keys; (b, y) would leave either no new zone or no
    # new cluster to the copy after it.
    apart = spread(
        {"zone": "a", "cluster": "x"},
        {"zone": "b", "cluster": "y"},
        {"zone": "b", "cluster": "z"},
        {"zone": "c", "cluster": "y"},
    )
    everyone = np.ones(4, dtype=bool)
    assert np.flatnonzero(apart.fits([0], everyone, left=2)).tolist() == [2, 3]


def test_a_copy_moves_on_only_where_those_still_to_come_reach_as_far():
    apart = spread(
        {"zone": "a", "cluster": "x"},
        {"zone": "b", "cluster": "y"},
        {"zone": "b", "cluster": "z"},
        {"zone": "c", "cluster": "y"},
    )
    # Both are a zone and a cluster more than (a, x); but (b, z) and (c, y) go together.
    assert apart.may_replace([0, 2], 2, 1)
    assert not apart.may_replace([0, 2], 2, 1, left=1)


def a_group(rng, keys):
    names = [TaskId(0, number) for number in range(rng.randint(3, 16))]
    values = {key: VALUES[key][: rng.randint(2, len(VALUES[key]))] for key in keys}
    return group_state(
        tasks=names,
        stateful_tasks=names,
        clients=[
            ClientInput(process_id=f"c{n}", tags=tuple((k, rng.choice(values[k])) for k in keys))
            for n in range(rng.randint(3, 9))
        ],
        end_offset_sums=dict.fromkeys(names, 5),
        config=AssignmentConfig(
            num_standby_replicas=rng.randint(1, 3), rack_aware_assignment_tags=keys
        ),
    )


def different_values(apart, clients):
    return sum(len({int(code[client]) for client in clients}) for code in apart.codes)


@pytest.mark.parametrize("keys", [("zone",), ("zone", "cluster"), ("zone", "cluster", "size")])
def test_copies_are_as_far_apart_as_any_choice_could_put_them(keys):
    kafka = native = 0
    for seed in range(60):
        state = a_group(seeded(seed), keys)
        apart = Spread.of(state)
        kafka_answer = kafka_high_availability(state)
        placed = target_standbys(state, kafka_answer.active)
        for task, active in enumerate(kafka_answer.active.tolist()):
            own_clients = placed.client[placed.task == task].tolist()
            others = [client for client in range(len(state.clients)) if client != active]
            best = max(
                different_values(apart, [active, *some])
                for some in combinations(others, len(own_clients))
            )
            assert different_values(apart, [active, *own_clients]) == best
            native += best
            kafka += different_values(
                apart, [active, *(c for t, c in kafka_answer.standbys if t == task)]
            )
    assert native == kafka if len(keys) == 1 else native > kafka
