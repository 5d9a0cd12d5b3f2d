"""LegacyStickyTaskAssignorTest (3.7: StickyTaskAssignorTest), CustomStickyTaskAssignorTest."""

import pytest

from encoding import TaskId
from tests.assignor.placement.kafka_cases.cases import RACKS, Case, case_name, stored_cases
from tests.assignor.placement.kafka_cases.random_groups import Shape, random_group, running, seeded
from tests.assignor.placement.kafka_cases.running import check, subjects

LEGACY, CUSTOM = "LegacyStickyTaskAssignorTest", "CustomStickyTaskAssignorTest"
SETTINGS = {"lag": 0, "warmups": 1}
STORED = [
    *stored_cases(LEGACY, settings=SETTINGS),
    # Clients of the KIP-924 tests name no rack.
    *stored_cases(CUSTOM, settings=SETTINGS, racks=False),
]


def random_case(test, strategy, shape, expected, **given):
    """A case on a random cluster."""
    settings = SETTINGS | given.pop("settings", {}) | {"strategy": strategy}
    state = random_group(seeded(test, strategy), settings, shape, **given)
    return Case(name=case_name(LEGACY, test, strategy), state=state, expected=expected)


def even_case(strategy):
    """Sixteen tasks, dealt in turn: each client gets every fourth one of them."""
    shape = Shape(
        nodes=5, topics=2, partitions=8, clients=4, stateful=True, is_fresh=True, threads=4
    )
    expected = tuple(f"active {n + 1} = 0_{n} 0_{n + 4} 1_{n} 1_{n + 4}" for n in range(4))
    test = "shouldEvenlyDistributeByTaskIdAndPartition"
    return random_case(test, strategy, shape, ("followup no", *expected), settings={"standbys": 1})


def kept_case(strategy):
    """One client runs all tasks and another none; in the mode that keeps owners for any load."""
    shape = Shape(nodes=5, topics=1, partitions=3, clients=2, stateful=True)
    clients = [{"threads": 1, **running(*[TaskId(0, n) for n in range(3)])}, {"threads": 1}]
    expected = ("followup no", "active 1 = 0_0-2", "active 2 =")
    test = "shouldViolateBalanceToPreserveActiveTaskStickiness"
    return random_case(test, strategy, shape, expected, clients=clients)


@pytest.mark.parametrize(
    ("case", "strategy"),
    [
        *subjects([*STORED, *map(even_case, RACKS)], "sticky"),
        *subjects(map(kept_case, RACKS), "fallback_prior"),
    ],
)
def test_as_kafka_expects(case, strategy):
    check(case, strategy)


PRIOR = stored_cases("FallbackPriorTaskAssignorTest", racks=False)


@pytest.mark.parametrize(("case", "strategy"), subjects(PRIOR, "fallback_prior"))
def test_fallback_prior_as_kafka_expects(case, strategy):
    check(case, strategy)
