"""Implicit sets of cells equal the listed ones."""

import numpy as np
import pytest

from assignor import AssignmentConfig, ClientInput, group_state
from assignor.placement.standbys import copies_apart
from assignor.placement.standbys.cell_sets import around
from encoding import TaskId
from tests.assignor.placement.racks.groups import seeded


def a_group(rng):
    clients, keys = rng.randint(66, 90), ("a", "b", "c")[: rng.randint(1, 3)]
    values = {key: rng.choice([2, 3, 10, clients, 200]) for key in keys}
    racks = rng.choice([0, 3, clients])
    return group_state(
        tasks=[TaskId(0, 0)],
        stateful_tasks=[TaskId(0, 0)],
        clients=[
            ClientInput(
                process_id=f"c{number:03}",
                threads=rng.choice([0, 1, 1, 2]),
                rack=f"r{rng.randrange(racks)}" if racks else None,
                tags=tuple((key, str(rng.randrange(values[key]))) for key in keys),
            )
            for number in range(clients)
        ],
        config=AssignmentConfig(rack_aware_assignment_tags=keys),
    )


def both(state):
    """The sets without lists, and with them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies_apart, "_MANY_CELLS", 0)
        unlisted = copies_apart.Spread.of(state)
        patch.setattr(copies_apart, "_MANY_CELLS", 1_000)
        return unlisted, copies_apart.Spread.of(state)


def members(cells, cell_sets):
    return {cell for cell, size in enumerate(cell_sets.sizes) if size and cell in cells}


@pytest.mark.parametrize("seed", range(40))
def test_sets_without_a_list_are_those_with_one(seed, monkeypatch):
    monkeypatch.setattr(copies_apart, "_AHEAD", 1)
    rng = seeded(seed)
    unlisted, listed = both(a_group(rng))
    clients = [client for client, usable in enumerate(listed.usable) if usable]
    for _ in range(8):
        holders = rng.sample(clients, rng.choice([1, 1, 2, 3, 5, 12]))
        best = unlisted.best_for(holders)
        assert members(best, listed) == set(listed.best_for(holders))
        assert members(best, listed) <= members(around(best), listed)
        has_space = np.array([rng.random() < 0.1 for _ in listed.usable])
        assert (unlisted.fits(holders, has_space) == listed.fits(holders, has_space)).all()
        old, left = rng.choice(holders), rng.randint(0, 2)
        after = unlisted.successors(holders, old, left)
        assert members(after, listed) == members(listed.successors(holders, old, left), listed)
        assert members(after, listed) <= members(around(after), listed)
        others = [client for client in rng.sample(clients, 6) if client != holders[0]]
        assert unlisted.keep(others, holders[0], 3) == listed.keep(others, holders[0], 3)
    active, client = np.array([rng.sample(clients, 2) for _ in range(50)]).T
    assert (unlisted.allowed(active, client) == listed.allowed(active, client)).all()
