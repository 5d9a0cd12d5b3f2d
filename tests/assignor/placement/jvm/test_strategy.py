import gzip
import json
from pathlib import Path

import pytest

from assignor import AssignmentConfig
from assignor.placement import high_availability, sticky
from assignor.placement.jvm import kafka_high_availability
from assignor.placement.jvm.group import java_order
from assignor.placement.jvm.java_collections import JavaQueue, hash_map_order
from assignor.placement.state import LAG_RUNNING, LAG_UNKNOWN, ClientInput, group_state
from assignor.placement.validation import validate
from assignor.problems.files import read_problem, result_of
from encoding import TaskId

FOLDER = Path(__file__).parent / "kafka_results"


def stored(name):
    return [json.loads(line) for line in gzip.decompress((FOLDER / name).read_bytes()).splitlines()]


PROBLEMS = stored("problems.jsonl.gz")
ANSWERS = {answer["name"]: answer for answer in stored("java_results.jsonl.gz")}
CHOSEN = [p for p in PROBLEMS if not p["name"].startswith("random-")]
RANDOM = [p for p in PROBLEMS if p["name"].startswith("random-")]


def check_equal(data):
    problem = read_problem(data)
    assignment = kafka_high_availability(problem.state)
    assert validate(problem.state, assignment) == ()
    port = result_of(problem, assignment, assignor="kafka_high_availability", millis=0)
    java = ANSWERS[problem.name]
    for client, given in port["clients"].items():
        expected = java["clients"][client]
        assert sorted(given["active"]) == sorted(expected["active"])
        assert sorted(given["standby"] + given["warmup"]) == sorted(expected["standby"])
    assert port["probing"] == java["probing"]


@pytest.mark.parametrize("strategy", [high_availability, sticky])
def test_every_problem_has_a_valid_answer_of_the_other_strategies(strategy):
    for data in PROBLEMS:
        state = read_problem(data).state
        assert validate(state, strategy(state)) == (), data["name"]


@pytest.mark.parametrize("data", CHOSEN, ids=[p["name"] for p in CHOSEN])
def test_equal_to_kafka_task_by_task(data):
    check_equal(data)


@pytest.mark.parametrize("part", range(8))
def test_equal_to_kafka_on_random_groups(part):
    for data in RANDOM[part::8]:
        check_equal(data)


def test_the_random_groups_hold_what_is_hard():
    configs = [p["config"] for p in RANDOM]
    assert {c["rack.aware.assignment.strategy"] for c in configs} == {
        "none",
        "min_traffic",
        "balance_subtopology",
    }
    assert max(c["num.standby.replicas"] for c in configs) == 3
    assert any(len(c["rack.aware.assignment.tags"]) == 2 for c in configs)
    assert any(
        "unknown" in client["lags"].values() for p in RANDOM for client in p["clients"].values()
    )


def test_process_ids_are_ordered_as_signed_halves():
    low = "00000000-0000-0000-0000-000000000000"
    negative = "80000000-0000-0000-0000-000000000000"
    second = "00000000-0000-0000-8000-000000000000"
    assert sorted([low, negative, second, "app"], key=java_order) == [negative, second, low, "app"]


def test_equal_keys_leave_the_queue_in_the_order_of_a_java_heap():
    queue = JavaQueue((0, value) for value in "abcd")
    assert [queue.poll() for _ in range(4)] == ["a", "d", "c", "b"]
    queue = JavaQueue((key, key) for key in (5, 1, 4, 2, 3))
    assert [queue.poll() for _ in range(5)] == [1, 2, 3, 4, 5]


def test_task_ids_are_walked_in_the_order_of_a_java_hash_map():
    # 31 * (31 * (31 + s) + p): 0_0 is in bucket 15 of 16, 0_1 in 14, 1_0 in 0.
    tasks = [TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)]
    assert hash_map_order(tasks) == [2, 1, 0]
    # The thirteenth makes a table of 32, in which 0_15 is no longer in the first bucket.
    tasks = [TaskId(0, number) for number in range(12, 24)]
    assert hash_map_order(tasks)[0] == tasks.index(TaskId(0, 15))
    assert hash_map_order([*tasks, TaskId(1, 0)]) == [12, *range(11, -1, -1)]


def group(clients, *, tasks=("0_0",), **settings):
    names = [TaskId(*map(int, task.split("_"))) for task in tasks]
    return group_state(
        tasks=names,
        stateful_tasks=names,
        clients=clients,
        end_offset_sums=dict.fromkeys(names, 100_000),
        config=AssignmentConfig(**settings),
    )


def test_a_client_that_does_not_know_its_lag_counts_as_nearest():
    task = TaskId(0, 0)
    behind = ClientInput(process_id="0" * 32, lags={task: 50_000})
    unknown = ClientInput(process_id="1" * 32, lags={task: LAG_UNKNOWN})
    assignment = kafka_high_availability(group([behind, unknown]))
    assert assignment.active.tolist() == [1]
    assert assignment.warmups == ((0, 0),)
    assert assignment.followup


def test_a_move_warms_up_where_it_ends():
    task = TaskId(0, 0)
    owner = ClientInput(
        process_id="1" * 32, active_tasks=frozenset([task]), lags={task: LAG_RUNNING}
    )
    assignment = kafka_high_availability(group([ClientInput(process_id="0" * 32), owner]))
    assert assignment.active.tolist() == [1]
    assert assignment.standbys == assignment.warmups == ((0, 0),)
    assert assignment.followup


def test_clients_without_threads_are_not_in_the_group():
    clients = [ClientInput(process_id=f"{n}" * 32, threads=n) for n in range(2)]
    assignment = kafka_high_availability(group(clients, tasks=("0_0", "0_1")))
    assert assignment.active.tolist() == [1, 1]


def test_missing_standbys_and_racks_are_reported():
    clients = [ClientInput(process_id=f"{n}" * 32) for n in range(2)]
    state = group(clients, num_standby_replicas=2, rack_aware_assignment_strategy="min_traffic")
    racks, standbys = kafka_high_availability(state).warnings
    assert "client.rack" in racks
    assert "1 standby tasks" in standbys
    assert "0_0" in standbys


def test_tags_that_cannot_be_had_are_reported():
    clients = [
        ClientInput(process_id=f"{n}" * 32, tags=(("cluster", c), ("zone", z)))
        for n, (z, c) in enumerate(("ax", "ay", "bx"))
    ]
    keys = ("zone", "cluster")
    state = group(clients, num_standby_replicas=1, rack_aware_assignment_tags=keys)
    (warning,) = kafka_high_availability(state).warnings
    assert "0_0" in warning
    assert "(zone, cluster)" in warning
