"""Every order of a rolling change with crashes; each planted fault of a rule goes red."""

import pytest

from probing.topologies import FORM_RULES, UNIT_RULES
from tests.probing.topologies.model import CHANGES, Model

ROWS = [(change, leads) for change in sorted(CHANGES) for leads in (1, 2)]


def without(rules, name):
    """The decision of a table without a row."""
    left = [rule for rule in rules if rule.name != name]
    assert len(left) < len(rules)
    return lambda numbers: next(rule for rule in left if rule.holds(numbers))


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
    assert "returned to b'c1'" in broken[0]


FAULTS = {
    "a version that was never reached": {
        "forms": {"choose": without(FORM_RULES, "a version that was never reached")}
    },
    "reached, and carried by no member": {"faults": frozenset({"forgets"})},
    "runs in the wanted form": {"units": {"choose": without(UNIT_RULES, "orphaned")}},
    "stays with its member": {
        "units": {"choose": without(UNIT_RULES, "stays with its member")},
    },
    "any member": {"faults": frozenset({"any_member"})},
    "no withholding": {"faults": frozenset({"no_withholding"})},
    "no claim is believed": {"forms": {"believe": lambda *_: {}}},
}


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_planted_faults_are_found(name):
    broken = []
    for leads in (1, 2):
        try:
            broken += Model("change", leads, crashes=2, **FAULTS[name]).explore().broken
        except (StopIteration, IndexError) as error:
            broken.append(repr(error))
    assert broken
