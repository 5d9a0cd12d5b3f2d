"""Each checker of a changed topology fails for the fault that is planted for it."""

import json

import pytest

from system_tests.sim import TOPOLOGY_RULES, replay_command, run_bounce
from tests.system_tests.planted.dimensions import red
from tests.system_tests.planted.rules import STORED
from tests.system_tests.planted.topologies import FAULTS, bounce_of

STORED_BY_CHECKER = {
    row["checker"]: row for row in json.loads(STORED.read_text(encoding="utf-8"))["topologies"]
}


def test_every_checker_has_its_fault():
    names = {rule.name for rule in TOPOLOGY_RULES}
    assert {fault.checker for fault in FAULTS} == names
    assert set(STORED_BY_CHECKER) == names


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.checker)
def test_a_bounce_breaks_its_rule_by_the_planted_fault_alone(fault):
    row = STORED_BY_CHECKER[fault.checker]
    outcome = run_bounce(bounce_of(fault, row["seed"]))
    assert outcome.broken == ()
    assert (replay_command(outcome), fault.why) == (f"rolling-bounce {row['bounce']}", row["why"])
    with fault.planted():
        assert red(outcome.asked) == sorted([*row["others"], fault.checker])
