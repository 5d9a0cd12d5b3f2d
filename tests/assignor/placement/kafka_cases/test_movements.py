"""TaskMovementTest: from a target placement of actives to one on caught-up clients."""

from dataclasses import dataclass

import numpy as np
import pytest

from assignor.placement.actives import homes
from assignor.placement.jvm import KafkaGroup
from assignor.placement.jvm.lags import KafkaLags
from assignor.placement.jvm.movements import Warmups, move_actives
from assignor.placement.movements import actives_now, settle
from assignor.placement.standbys.final_copies import Standbys
from assignor.placement.state import TaskAssignment
from tests.assignor.placement.kafka_cases.cases import case_name
from tests.assignor.placement.kafka_cases.checks import failing
from tests.assignor.placement.kafka_cases.fixtures import Outcome, group_of, process_id, tasks_of
from tests.assignor.placement.kafka_cases.running import PORT, check_case

FAR = 10_000
ALL_SIX = "0_0-2 1_0-2"
UNBOUNDED = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """One test: target clients of actives, lags, and the result of Kafka.

    Attributes:
        tasks: all of them.
        wanted: client number -> tasks that it is to run, which it also ran before.
        lags: client number -> lags; tasks that are not named are far behind.
        standby: client number -> tasks that it is to hold as a standby.
        warmups: max.warmup.replicas.
        moves: active tasks that cannot start where they are wanted.
        expected: what holds afterwards.
    """

    tasks: str
    wanted: dict[int, str]
    lags: dict[int, dict[str, int]]
    standby: dict[int, str]
    warmups: int
    moves: int
    expected: tuple[str, ...]


BY_TURNS = {1: "0_0 1_0", 2: "0_1 1_1", 3: "0_2 1_2"}
ONE_EACH = {1: "0_0", 2: "0_1", 3: "0_2"}
SWAPPED = {1: {"0_0": 0}, 2: {"0_2": 0}, 3: {"0_1": 0}}
RUN_SWAPPED = ("active 1 = 0_0", "active 2 = 0_2", "active 3 = 0_1")
TESTS = {
    "shouldAssignTasksToClientsAndReturnFalseWhenAllClientsCaughtUp": Movement(
        tasks=ALL_SIX,
        wanted=BY_TURNS,
        lags={number: {ALL_SIX: 0} for number in (1, 2, 3)},
        standby={},
        warmups=UNBOUNDED,
        moves=0,
        expected=("followup no", "sticky", "standbys 0"),
    ),
    "shouldAssignAllTasksToClientsAndReturnFalseIfNoClientsAreCaughtUp": Movement(
        tasks=ALL_SIX,
        wanted=BY_TURNS,
        lags={number: {} for number in (1, 2, 3)},
        standby={},
        warmups=UNBOUNDED,
        moves=0,
        expected=("followup no", "sticky", "standbys 0"),
    ),
    "shouldMoveTasksToCaughtUpClientsAndAssignWarmupReplicasInTheirPlace": Movement(
        tasks="0_0-2",
        wanted=ONE_EACH,
        lags=SWAPPED,
        standby={},
        warmups=UNBOUNDED,
        moves=2,
        expected=(
            *RUN_SWAPPED,
            *("standby 1 =", "standby 2 = 0_1", "standby 3 = 0_2", "followup yes"),
        ),
    ),
    "shouldMoveTasksToMostCaughtUpClientsAndAssignWarmupReplicasInTheirPlace": Movement(
        tasks="0_0-2",
        wanted=ONE_EACH,
        lags={
            1: {"0_0": 10_000, "0_1": 20_000, "0_2": 30_000},
            2: {"0_2": 10_000, "0_0": 20_000, "0_1": 30_000},
            3: {"0_1": 10_000, "0_2": 20_000, "0_0": 30_000},
        },
        standby={3: "0_1"},
        warmups=UNBOUNDED,
        moves=2,
        expected=(
            *RUN_SWAPPED,
            *("standby 1 =", "standby 2 = 0_1", "standby 3 = 0_2", "followup yes"),
        ),
    ),
    "shouldOnlyGetUpToMaxWarmupReplicasAndReturnTrue": Movement(
        tasks="0_0-2",
        wanted=ONE_EACH,
        lags=SWAPPED,
        standby={},
        warmups=1,
        moves=2,
        expected=(*RUN_SWAPPED, "standby 1 =", "standby 2 = 0_1", "standby 3 =", "followup yes"),
    ),
    "shouldNotCountPreviousStandbyTasksTowardsMaxWarmupReplicas": Movement(
        tasks="0_0",
        wanted={2: "0_0"},
        lags={1: {"0_0": 0}, 2: {}},
        standby={1: "0_0"},
        warmups=0,
        moves=1,
        expected=("active 1 = 0_0", "active 2 =", "standby 1 =", "standby 2 = 0_0", "followup yes"),
    ),
}


def state_of(test):
    clients = {
        str(number): {
            "active": test.wanted.get(number, ""),
            "lags": {test.tasks: FAR} | lags,
        }
        for number, lags in test.lags.items()
    }
    # Kafka's setting allows 0 in this call only: with a standby in place nothing is warmed up.
    config = {"lag": 100, "warmups": max(1, test.warmups), "standbys": 1 if test.standby else 0}
    return group_of({"tasks": test.tasks, "clients": clients, "config": config}, racks=False)


def index_pairs(state, held):
    """(task, client) indices of client number -> tasks."""
    return [
        (state.tasks.index(task), state.clients.index(process_id(number)))
        for number, text in held.items()
        for task in tasks_of(text)
    ]


def movements_of_the_port(state, test):
    """The movements of the port alone, with the input of Kafka's test."""
    group = KafkaGroup.of(state)
    for task, client in index_pairs(state, test.wanted):
        group.active[client].add(task)
    for task, client in index_pairs(state, test.standby):
        group.standby[client].add(task)
    lags = KafkaLags.of(state, group)
    moves = move_actives(group, lags, Warmups(left=test.warmups))
    assert moves == test.moves
    active = np.zeros(len(state.tasks), dtype=np.int64)
    for client, held in enumerate(group.active):
        active[sorted(held)] = client
    pairs = [(task, client) for client, held in enumerate(group.standby) for task in held]
    return TaskAssignment(active=active, standbys=tuple(sorted(pairs)), followup=moves > 0)


def native_movements(state, test):
    """The movements of this project: from the target to the placement of this rebalance."""
    target = np.zeros(len(state.tasks), dtype=np.int64)
    for task, client in index_pairs(state, test.wanted):
        target[task] = client
    pairs = np.array(index_pairs(state, test.standby), dtype=np.int64).reshape(-1, 2)
    now = actives_now(state, target, homes(state))
    standbys = Standbys(task=pairs[:, 0], client=pairs[:, 1])
    assignment = settle(state, target=target, now=now, standbys=standbys)
    assert len(assignment.warmups) <= test.warmups
    return assignment


@pytest.mark.parametrize("strategy", [PORT, "high_availability"])
@pytest.mark.parametrize("test", TESTS, ids=[case_name("TaskMovementTest", test) for test in TESTS])
def test_as_kafka_expects(test, strategy):
    given = TESTS[test]
    state = state_of(given)
    move = movements_of_the_port if strategy == PORT else native_movements
    wrong = failing(Outcome.of(state, move(state, given)), given.expected)
    check_case(case_name("TaskMovementTest", test), strategy, wrong)
