"""Standbys of placed actives: KIP-708 tags, racks as tags, load alone."""

import json

import numpy as np
import pytest

from assignor.placement import default_standbys
from assignor.placement.jvm import KafkaGroup
from assignor.placement.jvm.java_collections import hash_map_order
from assignor.placement.jvm.standbys import _fill, _keeps_tags, _same_tags, _spread
from assignor.placement.state import TaskAssignment
from tests.assignor.placement.kafka_cases.cases import DATA, Case, case_name
from tests.assignor.placement.kafka_cases.checks import failing
from tests.assignor.placement.kafka_cases.fixtures import Outcome, group_of, process_id, tasks_of
from tests.assignor.placement.kafka_cases.running import PORT, check_case, subjects

TAGS, UTILS = "ClientTagAwareStandbyTaskAssignorTest", "TaskAssignmentUtilsTest"


def placed_cases(kafka_class):
    """(case, int [T] with the client of each task) of a file."""
    found = []
    for line in (DATA / f"{kafka_class}.jsonl").read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        state = group_of(given, racks=False)
        active = np.zeros(len(state.tasks), dtype=np.int64)
        for number, client in given["clients"].items():
            for task in tasks_of(client.get("runs", "")):
                active[state.tasks.index(task)] = state.clients.index(process_id(int(number)))
        name = case_name(kafka_class, given["test"], given.get("part", ""))
        found.append((Case(name=name, state=state, expected=tuple(given["expect"])), active))
    return found


PLACED = [*placed_cases(TAGS), *placed_cases(UTILS)]
ACTIVE = {case.name: active for case, active in PLACED}
CASES = [case for case, _ in PLACED]
# Kafka hands racks to its tag-aware assignor as tags; its HighAvailabilityTaskAssignor never does.
OF_THE_PORT = [case for case in CASES if not any(case.state.racks)]


def port_group(state, active):
    """A `KafkaGroup` with these actives."""
    group = KafkaGroup.of(state)
    for task, client in enumerate(active.tolist()):
        group.active[group.clients.index(client)].add(task)
    return group


def standbys_of(state, active, strategy):
    """(task, client) pairs, by the steps of the port or of this project.

    Kafka's tests call these steps alone, with a HashSet of tasks, whose order matters.
    """
    if strategy != PORT:
        return default_standbys(state, active)
    group = port_group(state, active)
    tasks = [task for task in hash_map_order(state.tasks) if state.stateful[task]]
    left = dict.fromkeys(tasks, state.config.num_standby_replicas)
    if state.config.rack_aware_assignment_tags:
        left, _ = _spread(state, group, tasks)
    _fill(group, left)
    return tuple((task, group.clients[r]) for r, held in enumerate(group.standby) for task in held)


@pytest.mark.parametrize(
    ("case", "strategy"), [*subjects(OF_THE_PORT, PORT), *subjects(CASES, "default_standbys")]
)
def test_as_kafka_expects(case, strategy):
    active = ACTIVE[case.name]
    pairs = standbys_of(case.state, active, strategy)
    assignment = TaskAssignment(active=active, standbys=tuple(sorted(pairs)))
    outcome = Outcome.of(case.state, assignment)
    check_case(case.name, strategy, failing(outcome, case.expected))


# Tags of source, destination and the client that runs the task; whether a standby may move.
MOVES = {
    "shouldPermitTaskMovementWhenClientTagsMatch": ("z1c1", "z1c1", None, True),
    "shouldDeclineTaskMovementWhenClientTagsDoNotMatch": ("z1c1", "z2c1", None, False),
    "shouldPermitSingleTaskMoveWhenClientTagMatch": ("z1c1", "z1c1", "z3c2", True),
    "shouldPermitSingleTaskMoveWhenDifferentClientTagCountNotChange": (
        "z1c1",
        "z2c1",
        "z3c2",
        True,
    ),
    "shouldDeclineSingleTaskMoveWhenReduceClientTagCount": ("z1c1", "z3c1", "z3c2", False),
}


@pytest.mark.parametrize("test", MOVES, ids=[case_name(TAGS, test) for test in MOVES])
def test_the_port_moves_a_standby_where_tags_allow_it(test):
    source, destination, runs, allowed = MOVES[test]
    clients = {
        str(number): {"tags": {"zone": tags[:2], "cluster": tags[2:]}}
        for number, tags in enumerate((source, destination, runs or "z9c9"), start=1)
    }
    state = group_of({"tasks": "0_0", "clients": clients}, racks=False)
    group = port_group(state, np.array([2]))
    group.standby[0].add(0)
    found = _same_tags(group)[0, 1] if runs is None else _keeps_tags(group)(0, 1, 0)
    assert bool(found) is allowed
