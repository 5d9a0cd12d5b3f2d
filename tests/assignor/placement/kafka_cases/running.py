"""Checks of a case: every sentence holds, except the listed ones."""

import pytest

from assignor.placement import run_strategy
from assignor.placement.strategies import find_strategy
from tests.assignor.placement.kafka_cases.checks import failing
from tests.assignor.placement.kafka_cases.differences import known_failures
from tests.assignor.placement.kafka_cases.fixtures import Outcome

PORT = "kafka_high_availability"


def subjects(cases, *strategies):
    """Parameters of a test: each case with each strategy, by the case's name."""
    return [
        pytest.param(case, strategy, id=f"{case.name}-{strategy}")
        for case in cases
        for strategy in strategies
    ]


def outcome_of(state, strategy):
    """The strategy's valid assignment; `run_strategy` raises if it is invalid."""
    assignment = run_strategy(state, find_strategy(strategy))
    if strategy == PORT:
        assert not any("no rack-aware step" in warning for warning in assignment.warnings)
    return Outcome.of(state, assignment)


def check_case(name, strategy, wrong):
    """Assert that all sentences hold, except the listed ones, which must not."""
    allowed = () if strategy == PORT else known_failures(name)
    unexpected = [sentence for sentence in wrong if sentence not in allowed]
    assert not unexpected, f"{name}, {strategy}: {'; '.join(unexpected)}"
    assert wrong or not allowed, f"{name} no longer differs: take it out of the table"


def check_seed(family, strategy, wrong):
    """The same for one of several seeds, of which not every one must differ."""
    allowed = () if strategy == PORT else known_failures(family)
    unexpected = [sentence for sentence in wrong if sentence not in allowed]
    assert not unexpected, f"{family}, {strategy}: {'; '.join(unexpected)}"


def check(case, strategy):
    """Run one case with one strategy."""
    outcome = outcome_of(case.state, strategy)
    check_case(case.name, strategy, failing(outcome, case.expected))
