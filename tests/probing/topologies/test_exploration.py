"""Every order of a rolling change with crashes; tests/planted/topologies.toml has its faults."""

import pytest

from tests.probing.topologies.model import CHANGES, Model

ROWS = [(change, leads) for change in sorted(CHANGES) for leads in (1, 2)]


@pytest.mark.parametrize(("change", "leads"), ROWS)
@pytest.mark.parametrize("durable", [True, False])
def test_every_change_survives_one_crash(change, leads, durable):
    found = Model(change, leads, crashes=1, durable=durable).explore()
    assert found.broken == []
    assert found.ended > 0


@pytest.mark.parametrize("leads", [1, 2])
def test_a_change_survives_two_crashes(leads):
    found = Model("change", leads, crashes=2).explore()
    assert found.broken == []
    assert found.states > 100
    assert found.unconfirmed > 0


def test_two_crashes_without_state_directories_may_lose_the_memory():
    """Both processes that remembered restart without a memory: nothing is left to go by."""
    broken = Model("change", 1, crashes=2, durable=False).explore().broken
    assert broken[0].rule == "a partition returns to the old form"
