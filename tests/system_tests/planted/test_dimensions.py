"""Each checker of groups with dimensions fails for the fault that is planted for it."""

import json

import pytest

from system_tests.sim import DIMENSION_RULES
from tests.system_tests.planted.dimensions import FAULTS, bounce_of, command, red, searched
from tests.system_tests.planted.rules import STORED

STORED_BY_CHECKER = {
    row["checker"]: row for row in json.loads(STORED.read_text(encoding="utf-8"))["dimensions"]
}


def test_every_checker_has_its_fault():
    names = [rule.name for rule in DIMENSION_RULES]
    assert [fault.checker for fault in FAULTS] == names
    assert list(STORED_BY_CHECKER) == names


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.checker)
def test_a_bounce_breaks_its_rule_by_the_planted_fault_alone(fault):
    row = STORED_BY_CHECKER[fault.checker]
    options = bounce_of(fault, row["seed"])
    assert (command(options), fault.why) == (row["bounce"], row["why"])
    assert red(options) == []
    with fault.planted():
        assert red(options) == sorted([*row["others"], fault.checker])


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.searched], ids=lambda fault: fault.checker
)
def test_a_search_finds_the_planted_fault(fault):
    assert searched(fault)
