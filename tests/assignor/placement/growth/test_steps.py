"""Work grows like the group: twice the tasks and clients, at most 2.3 times the steps.

Steps are executed lines of the placement's code (a comprehension counts one per round), and entries
that numpy searches; nothing here is timed.
"""

import sys

import numpy as np
import pytest

from assignor.placement import find_strategy
from benchmarks.assign.shapes import after, settled_group

TASKS, TASKS_A_CLIENT, GROWTH = 2_500, 3, 2.3
# Larger groups take too long; in smaller ones the number of rack passes dominates.
TASKS_WITH_RACKS = 1_200
TASKS_WITH_VALUES, TASKS_WITH_OWN_RACKS = 900, 500
NIGHTLY_0, NIGHTLY_2 = (
    pytest.param(count, marks=pytest.mark.nightly("33 cases, 15 s; every run has one standby"))
    for count in (0, 2)
)
LOOKS = ("flatnonzero", "lexsort", "argsort", "unique", "isin", "bincount")


def steps(state, strategy):
    """Executed lines of `assignor.placement`, and searched entries."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if event == "call" and "placement" not in frame.f_code.co_filename:
            return None
        count += 1
        return trace

    def counted(function):
        def look(values, *args, **options):
            nonlocal count
            count += np.size(values)
            return function(values, *args, **options)

        return look

    before = sys.gettrace()
    with pytest.MonkeyPatch.context() as patch:
        # Such small groups do not always have as many clients with free capacity.
        patch.setattr("assignor.placement.standbys.final_copies._TAKERS", 8)
        for name in LOOKS:
            patch.setattr(np, name, counted(getattr(np, name)))
        sys.settrace(trace)
        try:
            find_strategy(strategy)(state)
        finally:
            sys.settrace(before)
    return count


def growth(shape, *, strategy="high_availability", tasks=TASKS, **kind):
    """Steps for a group of twice the size, divided by those for the group."""
    small, large = (
        steps(after(shape, settled_group(size, tasks_a_client=TASKS_A_CLIENT, **kind)), strategy)
        for size in (tasks, 2 * tasks)
    )
    return large / small


@pytest.mark.parametrize("feature", ["plain", "weights", "min_traffic", "tags"])
@pytest.mark.parametrize("standbys", [NIGHTLY_0, 1, NIGHTLY_2])
@pytest.mark.parametrize("shape", ["join", "lost", "restart"])
def test_twice_the_group_takes_twice_the_steps(shape, standbys, feature):
    tasks = TASKS_WITH_RACKS if feature == "min_traffic" else TASKS
    assert growth(shape, standbys=standbys, feature=feature, tasks=tasks) <= GROWTH


@pytest.mark.parametrize("standbys", [1, NIGHTLY_2])
@pytest.mark.parametrize("shape", ["join", "lost", "restart"])
@pytest.mark.parametrize("feature", ["tag_a_client", "huge_client"])
def test_a_value_a_client_or_a_huge_client_takes_no_more_steps(feature, shape, standbys):
    assert growth(shape, standbys=standbys, feature=feature, tasks=TASKS_WITH_VALUES) <= GROWTH


@pytest.mark.slow
def test_a_huge_client_that_many_tasks_are_handed_over_is_not_sorted_each_time():
    small, large = (
        steps(
            after("leave", settled_group(s, standbys=1, feature="huge_client", tasks_a_client=10)),
            "high_availability",
        )
        for s in (8_000, 16_000)
    )
    assert large / small <= GROWTH


@pytest.mark.parametrize("standbys", [NIGHTLY_0, 1])
@pytest.mark.parametrize("shape", ["join", "lost", "restart"])
def test_a_rack_a_client_takes_no_more_steps(shape, standbys):
    grown = growth(shape, standbys=standbys, feature="rack_a_client", tasks=TASKS_WITH_OWN_RACKS)
    assert grown <= GROWTH


def test_standbys_of_a_client_all_on_its_neighbour_take_no_more_steps():
    small, large = (steps(_on_neighbours(tasks), "high_availability") for tasks in (900, 1_800))
    assert large / small <= GROWTH


def _on_neighbours(tasks):
    """As Kafka places standbys: a crash of any client would overload one client."""
    state = settled_group(tasks, standbys=1, tasks_a_client=10)
    rows = state.copy_rows()
    is_standby = rows[:, 1] != state.owner[rows[:, 0]]
    rows[is_standby, 1] = (state.owner[rows[is_standby, 0]] + 1) % len(state.clients)
    return state.with_copies(rows)
