"""Quotas, even distribution, and the tasks that a client gives up."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from assignor import ClientInput, group_state
from assignor.placement import NOBODY
from assignor.placement.bands import deal, fill, place_stateless, quotas, released, thread_bands
from encoding import TaskId

clients = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=6
)


def group(sizes, threads=(1,), *, ends=None, owners=()):
    tasks = [TaskId(s, p) for s, n in enumerate(sizes) for p in range(n)]
    held = [[t for t, o in zip(tasks, owners, strict=False) if o == c] for c in range(len(threads))]
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks if ends is not None else (),
        clients=[
            ClientInput(process_id=f"c{i}", threads=n, active_tasks=frozenset(held[i]))
            for i, n in enumerate(threads)
        ],
        end_offset_sums=dict(zip(tasks, ends or [], strict=False)),
    )


@given(clients, st.integers(0, 30))
def test_quotas_keep_what_is_placed_already_and_add_up(given_clients, more):
    wanted = np.array([w for w, _, _ in given_clients])
    capacity = np.array([c for _, c, _ in given_clients])
    placed = np.array([p for _, _, p in given_clients])
    total = int(placed.sum()) + more
    quota = quotas(wanted, capacity, total, at_least=placed)
    assert int(quota.sum()) == total
    assert (quota >= placed).all()


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any), st.integers(0, 200))
def test_a_band_is_the_proportional_share_rounded_down_and_up(threads, total):
    bands = thread_bands(np.array(threads), total)
    for own, low, high in zip(threads, bands.low.tolist(), bands.high.tolist(), strict=True):
        share = Fraction(total * own, sum(threads))
        assert (low, high) == (floor(share), ceil(share))
    assert int(bands.low.sum()) <= total <= int(bands.high.sum())


def test_a_big_client_holds_its_share_and_no_more():
    capacity = np.array([4, 4, 1])
    # 78 tasks on 9 threads: shares of 34.7 and 8.7.
    assert quotas(np.array([36, 32, 10]), capacity, 78).tolist() == [35, 34, 9]
    bands = thread_bands(capacity, 78)
    assert (bands.low.tolist(), bands.high.tolist()) == ([34, 34, 8], [35, 35, 9])


@given(st.lists(st.integers(0, 7), min_size=1, max_size=8), st.integers(1, 4))
def test_dealt_tasks_fill_the_free_capacity_and_spread_every_stretch(free, parts):
    total = sum(free)
    dealt = deal(np.arange(total), np.array(free))
    assert np.bincount(dealt, minlength=len(free)).tolist() == free
    length = max(1, total // parts)
    for start in range(0, total - length + 1, length):
        stretch = np.bincount(dealt[start : start + length], minlength=len(free))
        fair = np.array(free) * length / max(total, 1)
        assert (abs(stretch - fair) <= 2).all()


def test_tasks_go_where_fewest_of_their_subtopology_are():
    state = group([4, 4], (1, 1))
    placed = np.array([0, 0, 0, NOBODY, 1, 1, 1, NOBODY])
    fill(state, [3, 7], placed, free := np.array([1, 1]), np.array([1, 1]))
    assert placed[[3, 7]].tolist() == [1, 0]
    assert free.tolist() == [0, 0]


def test_the_cheapest_of_the_largest_subtopology_leave():
    state = group([3, 1], ends=[50, 10, 90, 5])
    assert released(state, [0, 1, 2, 3], 2) == [1, 0]
    # Among equals the highest number leaves.
    assert released(group([3], ends=[7, 7, 7]), [0, 1, 2], 1) == [2]


def test_stateless_tasks_stay_and_level_all_active_tasks():
    state = group([8], (1, 1), owners=[0, 0, 0, 0, 0, 0, 1, 1])
    active = np.full(8, NOBODY)
    place_stateless(state, active)
    assert np.bincount(active).tolist() == [4, 4]
    assert int((active != state.owner).sum()) == 2
