import itertools

import numpy as np
import pytest

from assignor import AssignmentConfig
from assignor.kafka import kafka_high_availability
from assignor.state import ClientInput, group_state
from assignor.tags import TagCells, repair, shortfalls, tag_warnings
from encoding import TaskId
from tests.assignor.rack_worlds import seeded

VALUES = {"zone": "abcd", "cluster": "xyz", "size": "12"}


def group(tags, *, keys, tasks=1, replicas=1, held=None, threads=None):
    names = [TaskId(0, number) for number in range(tasks)]
    return group_state(
        tasks=names,
        stateful_tasks=names,
        clients=[
            ClientInput(
                process_id=f"c{number}",
                tags=tuple(sorted(given.items())),
                lags={names[task]: 0 for task in (held or {}).get(number, ())},
                threads=threads[number] if threads else 1,
            )
            for number, given in enumerate(tags)
        ],
        end_offset_sums=dict.fromkeys(names, 5),
        config=AssignmentConfig(num_standby_replicas=replicas, rack_aware_assignment_tags=keys),
    )


def draw(rng, keys):
    values = {key: VALUES[key][: rng.randint(2, len(VALUES[key]))] for key in keys}
    tags = [{key: rng.choice(values[key]) for key in keys} for _ in range(rng.randint(3, 9))]
    return group(tags, keys=keys, tasks=rng.randint(3, 16), replicas=rng.randint(1, 3))


def best_by_trying_all(state, cells, active):
    others = [client for client in range(len(state.clients)) if client != active]
    wanted = min(state.config.num_standby_replicas, len(others))
    return max(cells.spread([active, *some]) for some in itertools.combinations(others, wanted))


@pytest.mark.parametrize("keys", [("zone",), ("zone", "cluster"), ("zone", "cluster", "size")])
def test_copies_are_as_far_apart_as_any_choice_could_put_them(keys):
    kafka = ours = 0
    for seed in range(60):
        state = draw(seeded(seed), keys)
        cells = TagCells.of(state)
        theirs = kafka_high_availability(state)
        placed, _ = repair(state, theirs.active, theirs.standbys)
        assert len(set(placed)) == len(placed) == len(theirs.standbys)
        for task, active in enumerate(theirs.active.tolist()):
            mine = [active, *(c for t, c in placed if t == task)]
            assert len(set(mine)) == len(mine), "no client holds two copies"
            best = best_by_trying_all(state, cells, active)
            wanted = len(mine) - 1
            chosen = cells.choose([active], wanted, [0.0] * len(state.clients))
            assert cells.spread(mine) == cells.spread([active, *chosen]) == best
            ours += best
            kafka += cells.spread([active, *(c for t, c in theirs.standbys if t == task)])
    assert ours == kafka if len(keys) == 1 else ours > kafka


def test_choose_takes_the_least_loaded_of_equally_good_clients():
    tags = [{"zone": zone} for zone in "abbb"]
    cells = TagCells.of(group(tags, keys=("zone",)))
    assert cells.choose([0], 1, [0, 2.0, 1.0, 1.0]) == [2]


def test_choose_looks_ahead_where_the_next_step_alone_would_err():
    # From (a, x) the client (b, y) differs in both keys, but leaves nobody with a new zone and c
    # only in cluster x; going by (b, x) or (c, x) first is no worse.
    tags = [
        {"zone": "a", "cluster": "x"},
        {"zone": "b", "cluster": "y"},
        {"zone": "b", "cluster": "z"},
        {"zone": "c", "cluster": "y"},
    ]
    cells = TagCells.of(group(tags, keys=("zone", "cluster"), replicas=2))
    chosen = cells.choose([0], 2, [0.0, 0.0, 9.0, 9.0])
    assert sorted(chosen) == [2, 3], "the idle client 1 leads nowhere better than five values"
    assert cells.spread([0, *chosen]) == 6


def test_fewer_clients_than_copies_give_fewer_copies():
    cells = TagCells.of(group([{"zone": "a"}, {"zone": "b"}], keys=("zone",), replicas=3))
    assert cells.choose([0], 3, [0.0, 0.0]) == [1]


def test_clients_without_threads_are_never_chosen():
    tags = [{"zone": "a"}, {"zone": "b"}, {"zone": "a"}]
    cells = TagCells.of(group(tags, keys=("zone",), threads=[1, 0, 1]))
    assert cells.choose([0], 1, [0.0] * 3) == [2]


def test_a_copy_may_be_replaced_only_without_loss():
    tags = [{"zone": zone} for zone in "abbc"]
    cells = TagCells.of(group(tags, keys=("zone",)))
    assert cells.may_replace([0, 1], 1, 3)
    assert not cells.may_replace([0, 3, 1], 3, 2)
    assert cells.may_replace([0, 3, 1], 1, 2)


def test_repair_exchanges_copies_so_that_no_client_gets_more():
    tags = [{"zone": zone} for zone in "aabb"]
    state = group(tags, keys=("zone",), tasks=2)
    placed, warnings = repair(state, np.array([0, 2]), ((0, 1), (1, 3)))
    assert placed == ((0, 3), (1, 1))
    assert warnings == ()


def test_repair_keeps_the_copies_that_have_state_where_it_can():
    tags = [{"zone": zone} for zone in "abbb"]
    state = group(tags, keys=("zone",), replicas=2, held={2: [0]})
    assert repair(state, np.array([0]), ((0, 2), (0, 3)))[0] == ((0, 2), (0, 3))
    tags = [{"zone": zone} for zone in "aabc"]
    state = group(tags, keys=("zone",), replicas=2, held={2: [0]})
    assert repair(state, np.array([0]), ((0, 1), (0, 2)))[0] == ((0, 2), (0, 3))


def test_what_cannot_be_had_is_said_with_task_and_key():
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


def test_a_key_that_no_client_has_is_said():
    state = group([{"zone": "a"}, {"zone": "b"}], keys=("zone", "rack"))
    (warning,) = tag_warnings(state, np.array([0]), ((0, 1),))
    assert "no client has the tag rack" in warning


def test_without_tags_nothing_is_moved_or_said():
    state = group([{"zone": "a"}, {"zone": "b"}], keys=())
    assert repair(state, np.array([0]), ((0, 1),)) == (((0, 1),), ())
