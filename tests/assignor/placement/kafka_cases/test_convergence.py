"""TaskAssignorConvergenceTest: a group settles after a start, and after clients join and leave."""

import functools

import pytest

from tests.assignor.placement.kafka_cases.cases import RACKS, SKEW, case_name
from tests.assignor.placement.kafka_cases.checks import failing
from tests.assignor.placement.kafka_cases.differences import known_failures
from tests.assignor.placement.kafka_cases.harness import Harness
from tests.assignor.placement.kafka_cases.random_groups import seeded
from tests.assignor.placement.kafka_cases.running import PORT, check_seed

TEST = "TaskAssignorConvergenceTest"
LATE = "settles in time"
NATIVE = "high_availability"


def settle(harness, strategy, racks, most, *, is_checked=True, also=()):
    """Sentences that do not hold once the group has settled, in at most so many rounds."""
    late = [] if harness.rounds(strategy, most) <= most else [LATE]
    if not is_checked:
        return late
    sentences = [f"valid {harness.settings['standbys']} 0", *also]
    if racks != "min_traffic":
        sentences += ["level active", "level stateful", f"level subtopologies {SKEW[racks]}"]
    return [*late, *failing(harness.outcome, sentences)]


def settings_of(racks, warmups=2, standbys=0):
    return {"lag": 100, "warmups": warmups, "standbys": standbys, "strategy": racks}


def static(rng, racks, strategy):
    sizes = {"stateless": 1, "stateful": 1, "clients": 1, "nodes": 1, "partitions": lambda: 1}
    return settle(Harness.of(rng, settings_of(racks), **sizes), strategy, racks, 1)


def joined(rng, racks, strategy):
    sizes = {"stateless": 7, "stateful": 11, "clients": 1, "nodes": 10, "partitions": lambda: 5}
    harness = Harness.of(rng, settings_of(racks), **sizes)
    wrong = settle(harness, strategy, racks, 1, is_checked=False)
    harness.join()
    return wrong + settle(harness, strategy, racks, 11 // 2 + 1)


def left(rng, racks, strategy):
    sizes = {"stateless": 11, "stateful": 13, "clients": 7, "nodes": 10, "partitions": lambda: 5}
    harness = Harness.of(rng, settings_of(racks), **sizes)
    wrong = settle(harness, strategy, racks, 1, is_checked=False)
    harness.leave()
    return wrong + settle(harness, strategy, racks, 13 // 2 + 2)


def perturbed(rng, racks, strategy, *, has_racks=True, also=()):
    # Kafka draws up to ten of each, and up to ten events; then a round takes seconds.
    clients, stateless, stateful = (rng.randint(1, 7) for _ in range(3))
    standbys = rng.randint(0, clients)
    settings = settings_of(racks, rng.randint(1, stateful), standbys)
    harness = Harness.of(
        rng,
        settings,
        stateless=stateless,
        stateful=stateful,
        clients=clients,
        nodes=stateless + stateful,
        partitions=lambda: rng.randint(1, 10),
        has_racks=has_racks,
    )
    wrong = settle(harness, strategy, racks, 1, also=also)
    for _ in range(rng.randint(1, 6)):
        count = rng.randrange(clients)
        if rng.random() < 1 / 2:
            harness.leave_some(count)
        else:
            harness.join_or_return(count)
        if harness.held:
            most = 2 * stateful * (1 + standbys)
            wrong += settle(harness, strategy, racks, most, also=also)
    return wrong


# Seeds of each test; racks are drawn in all of them.
TESTS = {
    "staticAssignmentShouldConvergeWithTheFirstAssignment": (static, 1),
    "assignmentShouldConvergeAfterAddingNode": (joined, 3),
    "droppingNodesShouldConverge": (left, 3),
    "randomClusterPerturbationsShouldConverge": (perturbed, 10),
}


@functools.cache
def wrong_sentences(test, racks, seed, strategy):
    play, _ = TESTS[test]
    return tuple(dict.fromkeys(play(seeded(test, racks, seed), racks, strategy)))


@pytest.mark.parametrize(
    ("test", "racks", "seed", "strategy"),
    [
        pytest.param(test, racks, seed, strategy, id=f"{name}-{strategy}")
        for test, (_, seeds) in TESTS.items()
        for racks in RACKS
        for seed in range(seeds)
        for name in [case_name(TEST, test, racks, seed)]
        for strategy in (PORT, NATIVE)
    ],
)
def test_as_kafka_expects(test, racks, seed, strategy):
    family = case_name(TEST, test, racks)
    check_seed(family, strategy, wrong_sentences(test, racks, seed, strategy))


@pytest.mark.parametrize(
    ("test", "racks"),
    [
        pytest.param(test, racks, id=case_name(TEST, test, racks))
        for test in TESTS
        for racks in RACKS
        if known_failures(case_name(TEST, test, racks))
    ],
)
def test_what_is_listed_differs_with_some_seed(test, racks):
    found = {
        sentence
        for seed in range(TESTS[test][1])
        for sentence in wrong_sentences(test, racks, seed, NATIVE)
    }
    assert found == set(known_failures(case_name(TEST, test, racks)))


@pytest.mark.parametrize("seed", range(10))
def test_without_racks_all_copies_of_native_strategies_are_level(seed):
    rng = seeded("without racks", seed)
    wrong = perturbed(rng, "none", NATIVE, has_racks=False, also=("level all",))
    assert "level all" not in wrong
