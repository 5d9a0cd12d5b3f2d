"""Exchanges of standbys (RackAwareTaskAssignorTest), and TaskAssignmentUtilsTest of KIP-924."""

from dataclasses import replace

import numpy as np
import pytest

from assignor.placement import default_standbys, identity, validate
from assignor.placement.jvm import KafkaGroup, KafkaRacks
from assignor.placement.jvm.standbys import _keeps_tags
from assignor.placement.racks.optimise import optimize_active, optimize_standbys
from assignor.placement.state import ClientInput, TaskAssignment, group_state
from tests.assignor.placement.kafka_cases.cases import case_name
from tests.assignor.placement.kafka_cases.checks import failing
from tests.assignor.placement.kafka_cases.fixtures import (
    CHANGELOGS,
    CLIENT_RACKS,
    Outcome,
    config_of,
    group_of,
    process_id,
    replica_racks,
    tasks_of,
)
from tests.assignor.placement.kafka_cases.random_groups import Shape, random_group, seeded
from tests.assignor.placement.kafka_cases.running import PORT, check_case

RACK_TEST, UTILS = "RackAwareTaskAssignorTest", "TaskAssignmentUtilsTest"
RACKS = ("min_traffic", "balance_subtopology")
KINDS = ("stateful", "stateless")


def state_of(held, rack_of, part_racks, racks, *, tag_of=None, **settings):
    """A group from (active, standby) texts: the tasks of each client, all with their state."""
    tasks = sorted({task for texts in held.values() for text in texts for task in tasks_of(text)})
    return group_state(
        tasks=tasks,
        stateful_tasks=tasks,
        clients=[
            ClientInput(
                process_id=process_id(number),
                threads=2,
                rack=rack_of[number],
                active_tasks=frozenset(tasks_of(active)),
                lags=dict.fromkeys(tasks_of(active) + tasks_of(standby), 0),
                tags=(("az", tag_of[number]),) if tag_of else (),
            )
            for number, (active, standby) in held.items()
        ],
        config=config_of(settings | {"strategy": racks}),
        partition_racks={task: part_racks[task] for task in tasks},
        changelog_racks={task: part_racks[task] for task in tasks},
    )


def pairs_of(state, held):
    found = [
        (state.tasks.index(task), state.clients.index(process_id(number)))
        for number, (_, standby) in held.items()
        for task in tasks_of(standby)
    ]
    return tuple(sorted(found))


def exchanged(state, held, strategy, *, are_racks_tags):
    """Standbys after the exchange, by the port or by this project."""
    return exchanged_pairs(state, pairs_of(state, held), strategy, are_racks_tags=are_racks_tags)


def exchanged_pairs(state, pairs, strategy, *, are_racks_tags):
    """The same, of (task, client) pairs."""
    if strategy != PORT:
        return optimize_standbys(state, state.owner, pairs, spread_racks=are_racks_tags)[0]
    group = KafkaGroup.of(state)
    if are_racks_tags:
        group.tags = [{"rack": rack} for rack in state.racks]
    for task, client in enumerate(state.owner.tolist()):
        group.active[client].add(task)
    for task, client in pairs:
        group.standby[client].add(task)
    is_bound = are_racks_tags or state.config.rack_aware_assignment_tags
    can_move = _keeps_tags(group) if is_bound else lambda _source, _destination, _task: True
    racks = KafkaRacks.of(state, group)
    assert racks.is_on
    racks.optimize_standbys(group, can_move)
    return tuple(sorted((t, client) for client, held in enumerate(group.standby) for t in held))


def crossings(state, pairs):
    return sum(
        state.racks[client] not in part
        for task, client in pairs
        for part in state.changelog_racks[task]
    )


def counts(state, pairs):
    return np.bincount([client for _, client in pairs], minlength=len(state.clients)).tolist()


def racks_used(state, pairs):
    """Task -> racks of its active copy and its standbys."""
    found = {task: [state.racks[client]] for task, client in enumerate(state.owner.tolist())}
    for task, client in pairs:
        found[task].append(state.racks[client])
    return found


SIX = {
    1: ("0_0", "0_1 1_1"),
    2: ("0_1", "0_0 1_0"),
    3: ("1_0", "0_0 0_2"),
    4: ("1_1", "0_1 1_2"),
    6: ("0_2", "1_0 1_2"),
    7: ("1_2", "0_2 1_1"),
}
# Test, whether racks are tags that copies have to differ in, crossings before and after.
STANDBY_TESTS = (
    ("shouldOptimizeStandbyTasksWhenTasksAllMovable", False, 6, 2),
    ("shouldOptimizeStandbyTasksWithMovingConstraint", True, 6, 5),
)


@pytest.mark.parametrize("strategy", [PORT, "optimize_standbys"])
@pytest.mark.parametrize(
    ("test", "are_racks_tags", "before", "after", "racks"),
    [
        pytest.param(*given, racks, id=case_name(RACK_TEST, given[0], kind, racks))
        for given in STANDBY_TESTS
        for racks in RACKS
        for kind in KINDS
    ],
)
def test_standbys(*, test, are_racks_tags, before, after, racks, strategy):
    tasks = tasks_of("0_0-2 1_0-2")
    rack_of = {number: f"rack{rack}" for number, rack in CLIENT_RACKS.items()}
    state = state_of(SIX, rack_of, replica_racks(CHANGELOGS, tasks), racks, standbys=2)
    first = pairs_of(state, SIX)
    pairs = exchanged(state, SIX, strategy, are_racks_tags=are_racks_tags)
    assert crossings(state, first) == before
    assert (
        crossings(state, pairs) == after if strategy == PORT else crossings(state, pairs) <= after
    )
    assert counts(state, pairs) == counts(state, first)
    assert validate(state, TaskAssignment(active=state.owner, standbys=pairs)) == ()
    if are_racks_tags:
        assert all(len(set(used)) == 3 for used in racks_used(state, pairs).values())


def random_standbys(name, racks):
    """A random group with three standbys of each task, each copy in a rack of its own."""
    shape = Shape(nodes=9, topics=8, clients=9, stateful=True)
    state = random_group(seeded(name), {"standbys": 3, "strategy": racks}, shape)
    # As placed by Kafka's test: every client may run any task.
    owner = np.arange(len(state.tasks)) % len(state.clients)
    state = replace(state, owner=owner)
    fresh = state.with_copies(np.zeros((0, 4), dtype=np.int64))
    return state, default_standbys(fresh, owner)


@pytest.mark.parametrize("strategy", [PORT, "optimize_standbys"])
@pytest.mark.parametrize(
    ("name", "racks"),
    [
        pytest.param(name, racks, id=name)
        for racks in RACKS
        for kind in KINDS
        for seed in range(2)
        for name in [case_name(RACK_TEST, "shouldOptimizeRandomStandby", kind, racks, seed)]
    ],
)
def test_random_standbys(name, racks, strategy):
    state, first = random_standbys(name, racks)
    pairs = exchanged_pairs(state, first, strategy, are_racks_tags=True)
    assert crossings(state, pairs) <= crossings(state, first)
    assert counts(state, pairs) == counts(state, first)
    assert validate(state, TaskAssignment(active=state.owner, standbys=pairs)) == ()
    for used in (racks_used(state, first), racks_used(state, pairs)):
        assert all(len(set(racks_of)) == 4 for racks_of in used.values())


@pytest.mark.parametrize("strategy", [PORT, "optimize_standbys"])
@pytest.mark.parametrize(
    "racks",
    [
        pytest.param(racks, id=case_name(RACK_TEST, "shouldNotCrashForEmptyStandby", kind, racks))
        for racks in RACKS
        for kind in KINDS
    ],
)
def test_no_standbys(racks, strategy):
    held = {1: ("0_1 1_1", ""), 2: ("1_0", ""), 3: ("0_0", "")}
    rack_of = {number: f"rack{rack}" for number, rack in CLIENT_RACKS.items()}
    part_racks = replica_racks(CHANGELOGS, tasks_of("0_0-1 1_0-1"))
    state = state_of(held, rack_of, part_racks, racks, standbys=1)
    assert exchanged(state, held, strategy, are_racks_tags=False) == ()


COSTS = {"lag": 0, "warmups": 1, "traffic": 100, "overlap": 1}
# Held before, racks of clients, racks of tasks, and what holds afterwards.
ACTIVE_UTILS = {
    "shouldOptimizeActiveTaskSimple": (
        {1: ("0_0", ""), 2: ("0_1", "")},
        {"0_0": "2", "0_1": "1"},
        ("active 1 = 0_1", "active 2 = 0_0"),
    ),
    "shouldOptimizeStandbyTasksWithMultipleRacks": (
        {1: ("0_0", ""), 2: ("0_1", ""), 3: ("0_2", "")},
        {"0_0": "12", "0_1": "23", "0_2": "34"},
        ("active 1 = 0_0", "active 2 = 0_1", "active 3 = 0_2"),
    ),
}
STANDBY_UTILS = {
    "shouldOptimizeStandbyTasksBasic": (
        {1: ("0_0-1", ""), 2: ("", "0_1"), 3: ("", "0_0")},
        {1: "rack1", 2: "rack2", 3: "rack3"},
        {"0_0": "2", "0_1": "3"},
        None,
        ("active 1 = 0_0-1", "assigned 2 = 0_0", "assigned 3 = 0_1"),
    ),
    "shouldNotViolateClientTagsAssignmentDuringStandbyOptimization": (
        {1: ("0_0", "0_1"), 2: ("0_1", "0_0"), 3: ("", "0_0-1"), 4: ("", "")},
        dict.fromkeys((1, 2, 3, 4), "rack1"),
        {"0_0": "1", "0_1": "1"},
        {1: "1", 2: "2", 3: "3", 4: "2"},
        ("assigned 1 = 0_0-1", "assigned 2 = 0_0-1", "assigned 3 = 0_0-1", "assigned 4 ="),
    ),
}


def task_racks(texts):
    """Task -> racks of its one partition, of texts of rack numbers."""
    return {
        task: (frozenset(f"rack{number}" for number in texts[str(task)]),)
        for text in texts
        for task in tasks_of(text)
    }


def of_both(tests):
    return [
        pytest.param(test, racks, strategy, id=f"{case_name(UTILS, test, racks)}-{strategy}")
        for test in tests
        for racks in RACKS
        for strategy in (PORT, "native")
    ]


@pytest.mark.parametrize(("test", "racks", "strategy"), of_both(ACTIVE_UTILS))
def test_active_utilities(test, racks, strategy):
    held, texts, expected = ACTIVE_UTILS[test]
    rack_of = {number: f"rack{number}" for number in held}
    for _ in range(2):  # the second time nothing moves
        state = state_of(held, rack_of, task_racks(texts), racks, **COSTS)
        if strategy == PORT:
            group = KafkaGroup.of(state)
            for task, client in enumerate(state.owner.tolist()):
                group.active[client].add(task)
            tasks = list(range(len(state.tasks)))
            KafkaRacks.of(state, group).optimize_active(group, tasks, is_stateful=True)
            active = np.array([[t in held for held in group.active].index(True) for t in tasks])
        else:
            active = optimize_active(state, state.owner)[0]
        outcome = Outcome.of(state, TaskAssignment(active=active))
        check_case(case_name(UTILS, test, racks), strategy, failing(outcome, expected))
        held = {n: (" ".join(map(str, sorted(outcome.active[n]))), "") for n in held}


@pytest.mark.parametrize(("test", "racks", "strategy"), of_both(STANDBY_UTILS))
def test_standby_utilities(test, racks, strategy):
    held, rack_of, texts, tag_of, expected = STANDBY_UTILS[test]
    settings = COSTS | ({"standbys": 2, "tags": "az"} if tag_of else {"standbys": 1})
    state = state_of(held, rack_of, task_racks(texts), racks, tag_of=tag_of, **settings)
    pairs = exchanged(state, held, strategy, are_racks_tags=False)
    outcome = Outcome.of(state, TaskAssignment(active=state.owner, standbys=pairs))
    check_case(case_name(UTILS, test, racks), strategy, failing(outcome, expected))


def utils_group():
    clients = {"1": {"threads": 5, "active": "0_0-2"}, "2": {"threads": 5, "standby": "0_0-2"}}
    given = {"tasks": "0_0-2", "clients": clients | {str(n): {"threads": 5} for n in (3, 4, 5)}}
    return group_of(given | {"config": {"standbys": 1}}, racks=False)


IDENTITY, VALIDATE = "shouldCorrectlyReturnIdentityAssignment", "testValidateTaskAssignment"


@pytest.mark.parametrize("strategy", [pytest.param("identity", id=f"{UTILS}.{IDENTITY}")])
def test_identity(strategy):
    state = utils_group()
    outcome = Outcome.of(state, identity(state))
    expected = ("assigned 1 = 0_0-2", "assigned 2 = 0_0-2", *(f"assigned {n} =" for n in (3, 4, 5)))
    check_case(case_name(UTILS, IDENTITY), strategy, failing(outcome, expected))


@pytest.mark.parametrize(
    ("active", "standbys", "is_valid"),
    [
        pytest.param([0, 0, 0], (), True, id=case_name(UTILS, VALIDATE, "none")),
        pytest.param([0, 0], (), False, id=case_name(UTILS, VALIDATE, "missing task")),
        pytest.param([0, 0, 9], (), False, id=case_name(UTILS, VALIDATE, "unknown process")),
        pytest.param([0, 0, 0], ((13, 1),), False, id=case_name(UTILS, VALIDATE, "unknown task")),
        pytest.param([0, 0, 0], ((0, 0),), False, id=case_name(UTILS, VALIDATE, "given twice")),
    ],
)
def test_validation(active, standbys, is_valid):
    assignment = TaskAssignment(active=np.array(active), standbys=standbys)
    assert (validate(utils_group(), assignment) == ()) is is_valid
