"""Problem files: valid ones are read, contradictions are refused in one sentence."""

import json

import numpy as np
import pytest

from assignor import ConfigError, TaskAssignment, read_problem, sticky
from assignor.errors import TaskAssignmentError
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN
from assignor.problems import LagMemory, ProblemError, parse_problem, play_problem, result_of
from encoding import TaskId


def problem(**changes):
    return {
        "name": "join-1",
        "config": {"num.standby.replicas": 1, "rack.aware.assignment.traffic_cost": None},
        "topics": {
            "orders": {"partitions": 2, "racks": {"0": ["r0", "r1"], "1": ["r1"]}},
            "clicks": {"partitions": 3},
        },
        "subtopologies": {
            "0": {"sources": ["orders"], "changelogs": ["store-changelog"]},
            "1": {"sources": ["clicks", "orders"]},
        },
        "end_offset_sums": {"0_0": 500},
        "clients": {
            "b": {"threads": 4, "rack": "r0", "tags": {"zone": "a"}, "active": ["0_1"],
                  "standby": ["0_0"], "lags": {"0_1": "running", "0_0": 17}},
            "a": {"lags": {"0_0": "unknown"}},
        },
    } | changes  # fmt: skip


def client(**fields):
    return problem(clients={"a": fields})


def test_every_part_of_a_problem_reaches_its_column():
    state = read_problem(problem()).state
    assert [str(task) for task in state.tasks] == ["0_0", "0_1", "1_0", "1_1", "1_2"]
    assert state.stateful.tolist() == [True, True, False, False, False]
    assert state.clients == ("a", "b")
    assert state.threads.tolist() == [1, 4]
    assert state.owner.tolist() == [-1, 1, -1, -1, -1]
    assert state.copies(0) == [(0, LAG_UNKNOWN), (1, 17)]
    assert state.copies(1) == [(1, LAG_RUNNING)]
    assert state.end_offset_sums.tolist() == [500, *[LAG_UNKNOWN] * 4]
    assert state.racks == (None, "r0")
    assert state.tags == ((), (("zone", "a"),))
    assert state.config.num_standby_replicas == 1
    assert state.partition_racks[0] == (frozenset({"r0", "r1"}),)
    assert state.partition_racks[3] == (None, frozenset({"r1"}))
    assert state.changelog_racks[1] == (None,)
    assert state.weights is None


def test_a_changelog_with_fewer_partitions_leaves_the_last_tasks_stateless():
    data = problem()
    data["topics"]["store-changelog"] = {"partitions": 1}
    assert read_problem(data).state.stateful.tolist() == [True, False, False, False, False]


def test_settings_of_the_command_win_over_those_of_the_problem():
    state = read_problem(problem(), settings={"num.standby.replicas": 3}).state
    assert state.config.num_standby_replicas == 3


REFUSED = {
    "task 0_0 is active on a and on b": problem(
        clients={"a": {"active": ["0_0"]}, "b": {"active": ["0_0"]}}
    ),
    'task 0_0 runs on a, and b reports lag "running"': problem(
        clients={"a": {"active": ["0_0"]}, "b": {"lags": {"0_0": "running"}}}
    ),
    'task 0_1 runs on a, and c reports lag "running"': problem(
        clients={name: {"lags": {"0_1": "running"}} for name in ("c", "a")}
    ),
    f"client a reports lag -3 for task 0_0; lags are 0 to {2**63 - 2}": client(lags={"0_0": -3}),
    f"client a reports lag {2**63 - 1} for task 0_0; lags are 0 to {2**63 - 2}": client(
        lags={"0_0": 2**63 - 1}
    ),
    "client a reports lag 'soon' for task 0_0": client(lags={"0_0": "soon"}),
    "no clients": problem(clients={}),
    "client a has threads -1": client(threads=-1),
    "client a has rack 7": client(rack=7),
    r"client \ud800 has half a surrogate pair in its id": problem(clients={"\ud800": {}}),
    "client a names task 'zero'": client(active=["zero"]),
    "client a: active is str; give a list": client(active="0_0"),
    "client a: standby is int; give a list": client(standby=1),
    "subtopology 0: sources is str; give a list": problem(
        subtopologies={"0": {"sources": "orders"}}
    ),
    "subtopology 0: changelogs is int; give a list": problem(
        subtopologies={"0": {"sources": ["orders"], "changelogs": 7}}
    ),
    "racks of topic orders: 0 is int; give a list": problem(
        topics={"orders": {"partitions": 2, "racks": {"0": 1}}, "clicks": {"partitions": 3}}
    ),
    "clients is list; give an object": problem(clients=[1]),
    "subtopology 0 reads topics that are not in topics: gone": problem(
        subtopologies={"0": {"sources": ["gone"]}}
    ),
    "topic orders has partitions -1": problem(topics={"orders": {"partitions": -1}}),
    "subtopology 'x' is not a number": problem(subtopologies={"x": {"sources": []}}),
    "end_offset_sums of 0_0 is 1.5": problem(end_offset_sums={"0_0": 1.5}),
    "task 0_0 has end offset sum -1": problem(end_offset_sums={"0_0": -1}),
    "task 0_0 has weight 0;": problem(weights={"0_0": 0}),
    "name is 7": problem(name=7),
    "protocol is 'consumer'": problem(protocol="consumer"),
    "protocol is 'Streams'": problem(protocol="Streams"),
    "protocol is ['streams']": problem(protocol=["streams"]),
    "end_offset_sums names task 0_2, which does not exist: subtopology 0 has 2 tasks, 0_0 to 0_1; "
    "correct the name or leave it out": problem(end_offset_sums={"0_0": 500, "0_2": 500}),
    "weights names task 5_0, which does not exist: there is no subtopology 5; "
    "correct the name or leave it out": problem(weights={"5_0": 2}),
    "client a has task 0_1 both in active and in standby; remove it from one": client(
        active=["0_1"], standby=["0_0", "0_1"]
    ),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_contradictions_are_refused_with_their_place(sentence):
    with pytest.raises(TaskAssignmentError) as caught:
        read_problem(REFUSED[sentence])
    assert sentence in str(caught.value)


def test_an_unknown_setting_is_refused_with_the_nearest_known_one():
    with pytest.raises(ConfigError, match=r"did you mean num\.standby\.replicas"):
        read_problem(problem(config={"num.standby.replica": 1}))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"name": }', "line 3, column 10: broken JSON"),
        ('{"a": {"b": 1, "c": 2, "b": 1}}', "line 3: key b is given twice in one object; give it"),
        ("[1]", "line 3 is not a JSON object"),
        (b"\xef\xbb\xbf[1]", "line 3 is not a JSON object"),
        (b'{"name": "bad\xfe"}', "line 3, byte 14: 0xfe is not UTF-8; write it as UTF-8"),
        ("[" * 100_000, "line 3: broken JSON, nested too deeply"),
        ('{"a": 1' + "0" * 5000 + "}", "line 3, a number: broken JSON"),
    ],
)
def test_the_error_for_broken_json_has_line_and_column(line, sentence):
    with pytest.raises(ProblemError) as caught:
        parse_problem(line, number=3)
    assert sentence in str(caught.value)


def test_what_is_only_odd_is_read_with_a_warning():
    state = read_problem(
        problem(
            colour="blue",
            clients={"a": {"threads": 0, "active": ["7_7"], "lags": {"0_0": 900, "9_9": 1}}},
        )
    ).state
    warnings = "\n".join(state.warnings)
    assert "a reports tasks that do not exist: 7_7, 9_9" in warnings
    assert "1 lags are above the end offset sum, the first on a" in warnings
    assert "unknown keys are ignored: colour" in warnings


def test_a_key_that_a_client_or_a_topic_does_not_have_is_named_and_ignored():
    data = problem(clients={"a": {"prev_active": ["0_0"]}, "b": {"prev_active": []}})
    next(iter(data["topics"].values()))["replicas"] = 3
    (warning,) = read_problem(data).state.warnings
    assert warning == ("unknown keys are ignored: topics.*.replicas, clients.*.prev_active")


def test_events_stuck_and_notes_are_no_odd_keys():
    data = problem(events=[], stuck={}, note="x")
    del data["clients"]["a"]
    assert read_problem(data).state.warnings == ()


INVALID_EVENTS = {
    "events is dict; give a list": {"events": {"type": "join"}},
    "event None is unknown, number 1; choose from bounce, join, leave": {"events": [7]},
    "event 'nap' is unknown, number 2": {
        "events": [{"type": "leave", "clients": ["b"]}, {"type": "nap"}]
    },
    "event None is unknown": {"events": [{"clients": ["a"]}]},
    "event [] is unknown": {"events": [{"type": []}]},
    "event 1, join, has clients ['c']; give an object of clients": {
        "events": [{"type": "join", "clients": ["c"]}]
    },
    "event 1, bounce, has clients []; give a list of clients": {
        "events": [{"type": "bounce", "clients": []}]
    },
    "event 1, leave, has clients None": {"events": [{"type": "leave"}]},
    "client x cannot leave: it is not in the group": {
        "events": [{"type": "leave", "clients": ["x"]}]
    },
    "an event has lag 'far'": {"events": [{"type": "bounce", "clients": ["b"], "lag": "far"}]},
    "stuck is list; give an object": {"stuck": ["a"]},
    "stuck client a has lag True; give a whole number": {"stuck": {"a": True}},
    "stuck client a has lag -1": {"stuck": {"a": -1}},
    "event 1, join: client b is in the group already; give a new process id": {
        "events": [{"type": "join", "clients": {"b": {}}}]
    },
    "event 2, join: client c is in the group already": {
        "events": [{"type": "join", "clients": {"c": {}}}, {"type": "join", "clients": {"c": {}}}]
    },
    "event 1, join: client c has key thread, which clients do not have; did you mean threads?": {
        "events": [{"type": "join", "clients": {"c": {"thread": 8}}}]
    },
    "event 1, join: client c has key colour, which clients do not have; leave it out": {
        "events": [{"type": "join", "clients": {"c": {"colour": 8}}}]
    },
    "event 1, bounce has key laag, which events do not have; did you mean lag?": {
        "events": [{"type": "bounce", "clients": ["b"], "laag": 9}]
    },
    "client c has task 0_0 both in active and in standby": {
        "events": [{"type": "join", "clients": {"c": {"active": ["0_0"], "standby": ["0_0"]}}}]
    },
}


@pytest.mark.parametrize("sentence", INVALID_EVENTS)
def test_invalid_events_are_refused_with_their_place(sentence):
    with pytest.raises(ProblemError) as caught:
        list(play_problem(read_problem(problem(**INVALID_EVENTS[sentence])), sticky))
    assert sentence in str(caught.value)


def test_a_client_that_has_left_may_join_again():
    events = [
        {"type": "leave", "clients": ["b"]},
        {"type": "join", "clients": {"b": {"threads": 2, "consumers": ["b-1"]}}, "note": "back"},
    ]
    phases = list(play_problem(read_problem(problem(events=events)), sticky))
    assert [name for name, _ in phases] == ["start", "leave", "join"]


def test_the_memory_marks_copies_that_came_no_nearer():
    memory = LagMemory()
    data = client(lags={"0_0": 400, "0_1": 300})
    assert not read_problem(data, memory=memory).state.copy_stalled.any()
    nearer = client(lags={"0_0": 400, "0_1": 299})
    assert read_problem(nearer, memory=memory).state.copy_stalled.tolist() == [True, False]
    other = read_problem(nearer | {"name": "other"}, memory=memory)
    assert not other.state.copy_stalled.any()


def test_problems_without_a_name_have_no_memory_of_each_other():
    memory = LagMemory()
    data = client(lags={"0_0": 400, "0_1": 300}) | {"name": ""}
    for _ in range(2):
        assert not read_problem(data, memory=memory).state.copy_stalled.any()


def test_the_answer_separates_warm_ups_from_standbys_and_is_sorted():
    read = read_problem(problem())
    assignment = TaskAssignment(
        active=np.array([1, 1, 0, 0, 1]),
        standbys=((0, 0), (1, 0)),
        warmups=((1, 0),),
        followup=True,
    )
    answer = result_of(read, assignment, assignor="mine", millis=1.23456)
    assert answer == {
        "name": "join-1",
        "assignor": "mine",
        "millis": 1.235,
        "probing": True,
        "look_again": False,
        "clients": {
            "a": {"active": ["1_0", "1_1"], "standby": ["0_0"], "warmup": ["0_1"]},
            "b": {"active": ["0_0", "0_1", "1_2"], "standby": [], "warmup": []},
        },
    }
    assert json.loads(json.dumps(answer)) == answer


def test_a_warning_of_the_group_and_of_the_strategy_is_there_once():
    read = read_problem(problem(surprise=1))
    [warning] = read.state.warnings
    assignment = TaskAssignment(active=np.array([1, 1, 0, 0, 1]), warnings=(warning, "odd", "odd"))
    answer = result_of(read, assignment, assignor="mine", millis=0)
    assert answer["warnings"] == [warning, "odd"]


def test_task_names_become_task_ids():
    assert read_problem(problem()).state.tasks[0] == TaskId(0, 0)
