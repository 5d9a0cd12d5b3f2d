"""Kafka's tests on random groups, of smaller size; `slow` ones have Kafka's size."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from assignor.placement import run_strategy
from assignor.placement.strategies import find_strategy
from tests.assignor.placement.kafka_cases.cases import RACKS, SKEW, case_name
from tests.assignor.placement.kafka_cases.checks import failing
from tests.assignor.placement.kafka_cases.differences import known_failures
from tests.assignor.placement.kafka_cases.random_groups import BIG, Shape, random_group, seeded
from tests.assignor.placement.kafka_cases.running import PORT, check_seed, outcome_of

SMALL = Shape(nodes=8, topics=12, clients=11)
HIGH, STICKY = "HighAvailabilityTaskAssignorTest", "LegacyStickyTaskAssignorTest"
RANDOM, ORIGINAL = (
    "shouldAssignRandomInput",
    "shouldRemainOriginalAssignmentWithoutTrafficCostForMinCostStrategy",
)
SUBJECTS = {HIGH: (PORT, "high_availability"), STICKY: ("sticky",)}
SETTINGS = {
    (HIGH, RANDOM): {"lag": 100, "warmups": 2, "standbys": 3},
    (STICKY, RANDOM): {"lag": 0, "warmups": 1, "standbys": 1, "traffic": 10, "overlap": 1},
    (HIGH, ORIGINAL): {"lag": 0, "warmups": 1, "standbys": 1, "traffic": 0, "overlap": 10},
    (STICKY, ORIGINAL): {"lag": 0, "warmups": 1, "standbys": 1, "traffic": 0, "overlap": 10},
}
SEEDS = range(3)


def parameters(test, rack_strategies=RACKS, seeds=SEEDS):
    """(class, test, rack strategy, seed, strategy); Kafka takes its seed from the clock."""
    return [
        pytest.param(
            kafka_class,
            test,
            racks,
            seed,
            strategy,
            id=f"{case_name(kafka_class, test, racks, seed)}-{strategy}",
        )
        for kafka_class, strategies in SUBJECTS.items()
        for racks in rack_strategies
        for seed in seeds
        for strategy in strategies
    ]


ARGUMENTS = ("kafka_class", "test", "racks", "seed", "strategy")


def group_for(kafka_class, test, racks, seed, shape):
    settings = SETTINGS[kafka_class, test] | {"strategy": racks}
    return random_group(seeded(kafka_class, test, racks, seed), settings, shape)


def check_random(*, kafka_class, test, racks, seed, strategy, shape):
    """Valid; level where Kafka asserts it."""
    state = group_for(kafka_class, test, racks, seed, shape)
    expected = [f"valid {state.config.num_standby_replicas} 0"]
    if kafka_class == HIGH and test == RANDOM:
        expected.append("level active")
    if kafka_class == STICKY and test == RANDOM:
        expected.append("followup no")
    if racks == "balance_subtopology":
        expected.append(f"level subtopologies {SKEW[racks]}")
    wrong = failing(outcome_of(state, strategy), expected)
    check_seed(case_name(kafka_class, test, racks), strategy, wrong)


@pytest.mark.parametrize(ARGUMENTS, [*parameters(RANDOM), *parameters(ORIGINAL)])
def test_random_input(*, kafka_class, test, racks, seed, strategy):
    check_random(
        kafka_class=kafka_class, test=test, racks=racks, seed=seed, strategy=strategy, shape=SMALL
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(ARGUMENTS, parameters(RANDOM, RACKS[:2], [100]))
def test_random_input_of_kafka_s_size(*, kafka_class, test, racks, seed, strategy):
    check_random(
        kafka_class=kafka_class, test=test, racks=racks, seed=seed, strategy=strategy, shape=BIG
    )


@functools.cache
def changed(kafka_class, seed, strategy):
    """Differences from the rack strategy `none`; Kafka compares stateful tasks only."""
    state = group_for(kafka_class, ORIGINAL, "min_traffic", seed, SMALL)
    config = replace(state.config, rack_aware_assignment_strategy="none")
    found = find_strategy(strategy)
    with_racks = run_strategy(state, found)
    without = run_strategy(replace(state, config=config), found)
    is_same = {
        "same actives": np.array_equal(
            with_racks.active[state.stateful], without.active[state.stateful]
        ),
        "same standbys": with_racks.standbys == without.standbys,
    }
    return tuple(sentence for sentence, holds in is_same.items() if not holds)


def kept(kafka_class, seed, strategy):
    """Stateful tasks that stay on their owners, without and with racks."""
    state = group_for(kafka_class, ORIGINAL, "min_traffic", seed, SMALL)
    config = replace(state.config, rack_aware_assignment_strategy="none")
    counts = []
    for group in (replace(state, config=config), state):
        stays = run_strategy(group, find_strategy(strategy)).active == state.owner
        counts.append(int((stays & state.stateful).sum()))
    return counts


FAMILY = {kafka_class: case_name(kafka_class, ORIGINAL, "min_traffic") for kafka_class in SUBJECTS}
COMPARED = [
    pytest.param(kafka_class, seed, strategy, id=f"{FAMILY[kafka_class]}-{seed}-{strategy}")
    for kafka_class, strategies in SUBJECTS.items()
    for seed in SEEDS
    for strategy in strategies
]


@pytest.mark.parametrize(("kafka_class", "seed", "strategy"), COMPARED)
def test_racks_that_cost_nothing_change_nothing(kafka_class, seed, strategy):
    check_seed(FAMILY[kafka_class], strategy, changed(kafka_class, seed, strategy))
    before, after = kept(kafka_class, seed, strategy)
    assert strategy == PORT or after >= before


@pytest.mark.parametrize("kafka_class", SUBJECTS, ids=FAMILY.values())
def test_what_is_listed_differs_with_some_seed(kafka_class):
    strategy = SUBJECTS[kafka_class][-1]
    found = {sentence for seed in SEEDS for sentence in changed(kafka_class, seed, strategy)}
    assert found == set(known_failures(FAMILY[kafka_class]))
