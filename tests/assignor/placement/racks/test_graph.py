import numpy as np
import pytest

from assignor.placement.racks.graph import (
    Transport,
    cancel_cycles,
    solve_transport,
    solve_with_networkx,
)
from tests.assignor.placement.racks.groups import seeded


def draw(rng, *, classes=6, racks=5):
    rows, columns = rng.randint(1, classes), rng.randint(1, racks)

    def table(most):
        return np.array([[rng.randint(0, most) for _ in range(columns)] for _ in range(rows)])

    return Transport(
        start=table(6),
        cost=table(3) * rng.choice([1, 10]),
        kept=table(6),
        move=np.array([rng.choice([0, 1, 10]) for _ in range(rows)]),
    )


def test_cycles_on_the_rack_graph_and_networkx_find_the_same_cost():
    for seed in range(300):
        problem = draw(seeded(seed))
        cancelled, optimal = cancel_cycles(problem), solve_with_networkx(problem)
        assert problem.total(cancelled) == problem.total(optimal), seed
        for x in (cancelled, optimal):
            assert (x >= 0).all()
            assert (x.sum(axis=0) == problem.start.sum(axis=0)).all()
            assert (x.sum(axis=1) == problem.start.sum(axis=1)).all()


def test_the_number_of_tasks_does_not_change_the_way_to_the_optimum():
    start = np.array([[10**12, 0], [0, 10**12]])
    cost = np.array([[1, 0], [0, 1]])
    problem = Transport(start=start, cost=cost, kept=start, move=np.array([0, 0]))
    assert solve_transport(problem).tolist() == [[0, 10**12], [10**12, 0]]


@pytest.mark.parametrize("racks", [1, 2])
def test_one_rack_leaves_nothing_to_exchange(racks):
    start = np.ones((3, racks), dtype=np.int64)
    problem = Transport(start=start, cost=start, kept=start, move=np.ones(3, dtype=np.int64))
    assert solve_transport(problem).tolist() == start.tolist()


def test_many_classes_go_to_networkx(monkeypatch):
    monkeypatch.setattr("assignor.placement.racks.graph.cancel_cycles", None)
    rng = seeded(1)
    start = np.array([[rng.randint(0, 3) for _ in range(3)] for _ in range(101)])
    cost = np.array([[rng.randint(0, 3) for _ in range(3)] for _ in range(101)])
    problem = Transport(start=start, cost=cost, kept=start, move=np.ones(101, dtype=np.int64))
    assert problem.total(solve_transport(problem)) < problem.total(start)
