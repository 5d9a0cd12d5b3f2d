"""A missing end offset sum is unknown in every input, and 0 is 0."""

import pyarrow as pa
import pytest

from assignor import (
    AssignmentConfig,
    ClientInput,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    TaskId,
    assign_group,
    group_state,
    high_availability,
    read_problem,
    run_strategy,
)
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN
from probing import find_release
from spark_assign.tables.convert import GROUP_ARROW, group_batch
from spark_assign.tables.states import states_of
from tests.assignor.rebalance.groups import TOPOLOGY, start

TASKS = [TaskId(0, 0), TaskId(0, 1)]
NAMES = [str(task) for task in TASKS]


def by_python(end):
    clients = [
        ClientInput(
            process_id="a",
            active_tasks=frozenset(TASKS),
            lags=dict.fromkeys(TASKS, LAG_RUNNING),
        ),
        ClientInput(process_id="b"),
    ]
    given = {} if end is None else {"end_offset_sums": dict.fromkeys(TASKS, end)}
    return group_state(tasks=TASKS, stateful_tasks=TASKS, clients=clients, **given)


def by_problem(end):
    given = {} if end is None else {"end_offset_sums": dict.fromkeys(NAMES, end)}
    a = {"active": NAMES, "lags": dict.fromkeys(NAMES, "running")}
    data = {
        "name": "g",
        "topics": {"t": {"partitions": 2}},
        "subtopologies": {"0": {"sources": ["t"], "changelogs": ["t-changelog"]}},
        "clients": {"a": a, "b": {}},
    }
    return read_problem(data | given).state


def by_spark_row(end):
    row = group_batch([("g", by_python(0))]).to_pylist()[0]
    for task in row["tasks"]:
        task["end_offset_sum"] = end
    [(_, state)] = states_of(pa.RecordBatch.from_pylist([row], schema=GROUP_ARROW))
    return state


def by_leader(end):
    seen = []

    def strategy(state):
        seen.append(state)
        return high_availability(state)

    settings = LeaderSettings(
        release=find_release("native"),
        subtopologies=TOPOLOGY.subtopologies("app"),
        config=AssignmentConfig(),
        strategy=strategy,
    )
    first, second = start(number=0), start(number=1)
    own_answer = assign_group(settings, [member("a", first)], {"lines": 2}).answers["a"]
    first.receive(own_answer.partitions, own_answer.user_data, now_ms=0)
    ends = None if end is None else dict.fromkeys(TASKS, end)
    group = [member("a", first), member("b", second)]
    assign_group(settings, group, {"lines": 2}, knowledge=LeaderKnowledge(end_offset_sums=ends))
    return seen[-1]


def member(name, subscriber):
    return GroupMember(member_id=name, user_data=subscriber.subscription()[1])


@pytest.mark.parametrize("read", [by_python, by_problem, by_spark_row, by_leader])
def test_a_missing_sum_is_unknown_and_no_task_starts_without_state(read):
    state = read(None)
    assert state.end_offset_sums.tolist() == [LAG_UNKNOWN] * 2
    assert not state.starts_anywhere().any()
    answer = run_strategy(state, high_availability)
    assert answer.active.tolist() == state.owner.tolist()
    [warning] = [
        sentence for sentence in answer.warnings if "end offset sums are not known" in sentence
    ]
    assert warning.startswith("1 stateful task stays")


@pytest.mark.parametrize("read", [by_python, by_problem, by_spark_row, by_leader])
def test_a_sum_of_0_is_0_and_any_client_may_start(read):
    state = read(0)
    assert state.end_offset_sums.tolist() == [0, 0]
    assert state.starts_anywhere().all()
    answer = run_strategy(state, high_availability)
    assert sorted(answer.active.tolist()) == [0, 1]
    assert answer.warnings == ()
