"""The model of the assignor of streams groups: equal to the real class, member by member."""

import json
from collections import Counter

import pytest

from assignor import AssignmentConfig, ClientInput, TaskId, group_state
from assignor.errors import TaskAssignmentError
from assignor.placement import LAG_RUNNING, run_strategy, validate
from assignor.placement.jvm.java_collections import string_map_order
from assignor.placement.streams_groups import (
    MemberSpec,
    assign_members,
    kafka_streams_group,
    member_specs,
)
from assignor.problems import play, read_problem
from assignor.problems.events import play_problem
from tests.assignor.placement.streams_groups.groups import (
    ANSWERS,
    FOLDER,
    RANDOM,
    RELEASES,
    added_thread,
    answer_from_json,
    json_lines,
    model_answer,
    names,
    project_questions,
    question_from_json,
    random_question,
)

TASKS = [TaskId(0, number) for number in range(4)]


def check(question, stored):
    """Compare with every release that was asked; return their names."""
    for release, answer in stored["answers"].items():
        expected = answer_from_json(answer, question.members)
        assert model_answer(question, release) == expected, (question.name, release)
    return tuple(stored["answers"])


def test_equal_to_the_real_class_on_the_stored_problems_of_the_project():
    questions, stored = project_questions(), json_lines(FOLDER / ANSWERS)
    assert [question.name for question in questions] == [row["name"] for row in stored]
    assert len(questions) == 329
    for question, row in zip(questions, stored, strict=True):
        assert check(question, row) == RELEASES


def test_equal_to_the_real_class_on_random_groups():
    stored = json_lines(FOLDER / RANDOM)
    assert len(stored) == 501
    asked = Counter(check(question_from_json(row), row) for row in stored)
    assert asked == {RELEASES: 401, RELEASES[1:]: 100}
    differ = [row for row in stored if len({json.dumps(a) for a in row["answers"].values()}) > 1]
    assert differ  # what 4.4.0 changed is among the stored groups


def test_active_tasks_count_against_the_share_of_all_tasks():
    stored = json_lines(FOLDER / RANDOM)[0]
    assert question_from_json(stored) == added_thread()
    assert assign_members(**added_thread().arguments())["a2"].standby == {TaskId(0, 0)}


def test_the_random_groups_hold_what_is_hard():
    questions = [question_from_json(row) for row in json_lines(FOLDER / RANDOM)]
    # 10 is before 2 in Kafka's order of subtopologies.
    assert any(10 in question.subtopologies for question in questions)
    assert {question.standbys for question in questions} == {0, 1, 2, 3}
    members = [(question, member) for question in questions for member in question.members]
    assert any(TaskId(99, 0) in member.active for _, member in members)
    assert any(member.active & member.standby for _, member in members)
    ran_twice = [
        question
        for question in questions
        if sum(len(m.active) for m in question.members)
        > len(set().union(*(m.active for m in question.members)))
    ]
    assert len(ran_twice) > 50
    processes = {len({m.process_id for m in q.members}) < len(q.members) for q in questions}
    assert processes == {True, False}


def test_the_order_of_members_with_equal_hashes_is_that_of_the_given_order():
    # "Aa" and "BB" have the same hash in Java, so the first that was added is walked first.
    assert string_map_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert string_map_order(["BB", "Aa"]) == ["BB", "Aa"]
    members = [MemberSpec(member_id=name, process_id="p") for name in ("BB", "Aa")]
    assert assign_members(members, stateful=TASKS[:1])["BB"].active == {TASKS[0]}
    assert assign_members(members[::-1], stateful=TASKS[:1])["Aa"].active == {TASKS[0]}


def test_a_bucket_with_nine_keys_doubles_a_small_table():
    # The hashes of nine texts of "Aa" and "BB" are equal: the table grows from 16 to 32 buckets.
    equal = [f"{a}{b}{c}{d}" for a in PAIR for b in PAIR for c in PAIR for d in PAIR][:9]
    alone = next(
        text
        for text in map(str, range(10_000))
        if _bucket(text, 16) < _bucket(equal[0], 16) < 16
        and _bucket(text, 32) > _bucket(equal[0], 32)
    )
    assert string_map_order([alone, *equal[:8]])[0] == alone
    assert string_map_order([alone, *equal])[-1] == alone


PAIR = ("Aa", "BB")


def _bucket(text, size):
    value = 0
    for letter in text:
        value = (value * 31 + ord(letter)) & 0xFFFFFFFF
    return (value ^ value >> 16) & (size - 1)


def test_a_group_of_more_members_than_are_computed_is_refused_before_any_is_made(monkeypatch):
    monkeypatch.setattr(f"{member_specs.__module__}.MEMBERS_MOST", 3)
    clients = [ClientInput(process_id="a", threads=2), ClientInput(process_id="b", threads=1)]
    config = AssignmentConfig()
    state = group_state(tasks=TASKS, stateful_tasks=TASKS, clients=clients, config=config)
    assert len(member_specs(state)) == 3
    clients[1] = ClientInput(process_id="b", threads=2)
    state = group_state(tasks=TASKS, stateful_tasks=TASKS, clients=clients, config=config)
    with pytest.raises(TaskAssignmentError, match=r"have 4 threads.* at most 3 are computed"):
        kafka_streams_group(state)


def test_half_a_surrogate_pair_is_a_letter_of_a_java_text():
    assert string_map_order(["\ud801", "\ud800"]) == ["\ud800", "\ud801"]


def test_a_group_without_members_or_with_one_twice_is_refused():
    with pytest.raises(TaskAssignmentError, match="no members"):
        assign_members([], stateful=TASKS)
    twice = [MemberSpec(member_id="m", process_id=process) for process in "ab"]
    with pytest.raises(TaskAssignmentError, match="two members have the same id"):
        assign_members(twice, stateful=TASKS)


def group(*clients, standbys=1, **settings):
    return group_state(
        tasks=TASKS,
        stateful_tasks=TASKS,
        clients=clients,
        end_offset_sums=dict.fromkeys(TASKS, 100_000),
        config=AssignmentConfig(num_standby_replicas=standbys, **settings),
    )


def owner(name, tasks, **more):
    return ClientInput(
        process_id=name,
        active_tasks=frozenset(tasks),
        lags=dict.fromkeys(tasks, LAG_RUNNING),
        **more,
    )


def test_each_thread_is_a_member_and_the_tasks_of_a_client_are_dealt_to_its_threads():
    both = {TASKS[3]: 5} | dict.fromkeys(TASKS[:3], LAG_RUNNING)
    state = group(
        ClientInput(process_id="b", threads=2, active_tasks=frozenset(TASKS[:3]), lags=both),
        owner("a", TASKS[3:]),
        ClientInput(process_id="c", threads=0, lags={TASKS[0]: 1}),
    )
    specs = {spec.member_id: spec for spec in member_specs(state)}
    assert list(specs) == ["a-1", "b-1", "b-2"]
    assert {spec.process_id for spec in specs.values()} == {"a", "b"}
    assert names(specs["b-1"].active) == ["0_0", "0_2"]
    assert names(specs["b-2"].active) == ["0_1"]
    assert [names(spec.standby) for spec in specs.values()] == [[], [], ["0_3"]]


def test_a_task_moves_at_once_to_a_client_without_state():
    state = group(owner("a", TASKS), ClientInput(process_id="b"), standbys=0)
    assignment = kafka_streams_group(state)
    assert assignment.active.tolist() == [0, 0, 1, 1]
    assert not assignment.followup
    assert assignment.standbys == assignment.warmups == ()


def test_state_that_is_only_on_disk_does_not_count():
    problem = {
        "topics": {"t": {"partitions": 2}},
        "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
        "end_offset_sums": {"0_0": 9, "0_1": 9},
        "clients": {"a": {}, "b": {}, "c": {"lags": {"0_0": 0, "0_1": 0}}},
    }
    (*_, on_disk) = member_specs(read_problem(problem).state)
    assert on_disk.standby == frozenset()
    problem["clients"]["c"]["standby"] = ["0_1"]
    (*_, standby) = member_specs(read_problem(problem).state)
    assert names(standby.standby) == ["0_1"]


def test_a_member_that_returns_from_a_bounce_is_new_to_the_broker():
    problem = read_problem(
        {
            "config": {"num.standby.replicas": 1},
            "topics": {"t": {"partitions": 6}},
            "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
            "clients": {"a": {}, "b": {}, "c": {}},
            "events": [{"type": "bounce", "clients": ["a"], "lag": 0}],
        }
    )
    phases = dict(play_problem(problem, kafka_streams_group))
    back = phases["bounce"][1].state
    assert {client for _, client in back.left_over} == {0}
    assert next(spec.standby for spec in member_specs(back)) == frozenset()
    # Its state is there all the same: what it gets back of it is not restored.
    assert back.copies(back.left_over[0][0])[0] == (0, 0)


def test_what_the_broker_ignores_or_may_refuse_is_a_warning():
    clients = [ClientInput(process_id=name, tags=(("zone", name),)) for name in "abcd"]
    state = group(
        *clients,
        standbys=3,
        rack_aware_assignment_tags=("zone",),
        rack_aware_assignment_strategy="min_traffic",
    )
    many, ignored = kafka_streams_group(state).warnings
    assert "group.streams.max.standby.replicas" in many
    assert "rack.aware.assignment.strategy and rack.aware.assignment.tags" in ignored
    few = group(*clients[:2], standbys=2)
    (warning,) = kafka_streams_group(few).warnings
    assert "2 standby replicas are configured, 1 is placed" in warning
    assert kafka_streams_group(group(*clients)).warnings == ()


@pytest.mark.parametrize("seed", range(6))
def test_a_group_settles_in_one_round_and_then_moves_nothing(seed):
    question = random_question(seed)
    arguments = question.arguments()
    tasks = [*arguments["stateful"], *arguments["stateless"]]
    processes = sorted({member.process_id for member in question.members})
    state = group_state(
        tasks=tasks,
        stateful_tasks=arguments["stateful"],
        clients=[ClientInput(process_id=process) for process in processes],
        config=AssignmentConfig(num_standby_replicas=question.standbys),
    )
    (only,) = play(state, kafka_streams_group)
    assert validate(only.state, only.assignment) == ()
    assert run_strategy(state, kafka_streams_group).standbys == only.assignment.standbys
