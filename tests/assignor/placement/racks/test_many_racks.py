"""Exchanges of two tasks with many racks: near the optimum, and nothing else changes."""

import numpy as np
import pytest

from assignor import TaskAssignment
from assignor.placement import find_strategy
from assignor.placement.final_places import targets, with_rack_costs
from assignor.placement.racks import many_racks
from benchmarks.assign.shapes import after, settled_group

TASKS, TASKS_A_CLIENT = 240, 8


@pytest.fixture(params=[0, 1])
def group(request):
    kind = {"tasks_a_client": TASKS_A_CLIENT, "feature": "rack_a_client"}
    state = after("restart", settled_group(TASKS, standbys=request.param, **kind))
    return with_rack_costs(state, traffic=10, non_overlap=1)


def placed(state, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many_racks, "_FEW_PLACES", few)
        active, standbys, _ = targets(state)
    pairs = zip(standbys.task.tolist(), standbys.client.tolist(), strict=True)
    return TaskAssignment(active=active, standbys=tuple(pairs))


def crossed(state, pairs):
    """Partitions that are read from another rack."""
    return sum(state.racks[client] not in state.partition_racks[task][0] for task, client in pairs)


def test_exchanges_of_two_come_near_the_optimum(group):
    exact, exchanged = placed(group, few=10**9), placed(group, few=0)
    for kind in ("active", "standbys"):
        least, found = (
            crossed(
                group, enumerate(answer.active.tolist()) if kind == "active" else answer.standbys
            )
            for answer in (exact, exchanged)
        )
        assert found <= least + 0.05 * TASKS


def test_clients_keep_their_counts_and_copies_stay_in_other_racks(group):
    exact, exchanged = placed(group, few=10**9), placed(group, few=0)
    width = len(group.clients)
    counts = (np.bincount(answer.active, minlength=width).tolist() for answer in (exact, exchanged))
    assert len(set(map(tuple, counts))) == 1
    assert len(set(exchanged.standbys)) == len(exact.standbys)
    assert all(group.racks[c] != group.racks[exchanged.active[t]] for t, c in exchanged.standbys)


def test_a_group_at_rest_stays_there(monkeypatch):
    monkeypatch.setattr(many_racks, "_FEW_PLACES", 0)
    kind = {"tasks_a_client": TASKS_A_CLIENT, "feature": "rack_a_client"}
    state = settled_group(TASKS, standbys=1, **kind)
    answer = find_strategy("sticky")(state)
    assert answer.active.tolist() == state.owner.tolist()


def test_who_wants_to_go_where_a_task_is_is_found_among_many():
    everyone, last = 100, {0: 1, 1: 1}
    exchange = many_racks.Exchange(
        client=[0, *([1] * everyone), 1],
        hits=[{1: 1}, *({1: 1} for _ in range(everyone)), last],
        places=[frozenset()] * (everyone + 2),
        group=[0] * (everyone + 2),
        rack_of=[0, 1],
        price=10,
        overlap=1,
    )
    exchange.run()
    assert exchange.client == [1, *([1] * everyone), 0]


@pytest.mark.slow
def test_a_task_asks_no_more_others_in_a_larger_group(monkeypatch):
    asked, lost = [], many_racks.Exchange._lost
    monkeypatch.setattr(
        many_racks.Exchange, "_lost", lambda *given: asked.append(1) or lost(*given)
    )
    each = []
    for tasks in (2_500, 5_000):
        state = after("restart", settled_group(tasks, feature="rack_a_client"))
        asked.clear()
        find_strategy("high_availability")(state)
        each.append(len(asked) / tasks)
    assert each[1] <= each[0]
