"""A streams group as a problem file: what is written, and the commands that read it."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from assignor import read_problem
from assignor.cli.inspect import command
from assignor.cli.main import main as assignor
from assignor.inspection import (
    StreamsSubtopology,
    StreamsTasks,
    look_at_streams_group,
    problem_line,
    problem_of,
)
from assignor.problems import ProblemError
from encoding import TaskId, TopicPartition
from system_tests.cli.main import main as rolling_bounce
from tests.assignor.inspection.streams_groups import ALL, facts, group, member, tasks

LOG = "g-counts-changelog"
ENDS = {TopicPartition(LOG, 0): 700, TopicPartition(LOG, 1): 300}


def saved(*members, group_fields=(), lags="caught-up", dies=(), **fields):
    look = look_at_streams_group(group(*members, **dict(group_fields)), facts(**fields))
    return problem_of(look, lags=lags, dies=dies)


def two_members():
    spare = StreamsTasks(standby=tasks("1_0"), warmup=tasks("1_1"))
    return (
        member("a", ALL, rack="r1", tags={"zone": "z"}, endpoint="a:1"),
        replace(member("b", ""), current=spare),
    )


def test_a_saved_group_has_tasks_state_and_where_members_are():
    racks = {"in": {0: frozenset({"r1"}), 1: frozenset({"r2", "r1"})}}
    problem = saved(*two_members(), ends=ENDS, racks=racks)
    state = read_problem(problem).state
    assert list(map(str, state.tasks)) == ["0_0", "0_1", "1_0", "1_1"]
    assert state.stateful.tolist() == [False, False, True, True]
    assert problem["end_offset_sums"] == {"1_0": 700, "1_1": 300}
    assert problem["topics"]["in"]["racks"] == {"0": ["r1"], "1": ["r1", "r2"]}
    first, second = problem["clients"].values()
    assert first["active"] == ["0_0", "0_1", "1_0", "1_1"]
    assert (first["rack"], first["tags"], first["endpoint"]) == ("r1", {"zone": "z"}, "a:1")
    assert second["lags"] == {"1_1": "unknown", "1_0": 0}
    assert "rack" not in second


def test_the_number_of_standbys_is_that_of_the_task_with_the_fewest():
    owner, spare = two_members()
    assert saved(owner, spare)["config"] == {"num.standby.replicas": 0}
    both = replace(spare, current=StreamsTasks(standby=tasks("1_0 1_1")))
    assert saved(owner, both)["config"] == {"num.standby.replicas": 1}


def test_a_copy_beside_its_active_task_in_a_process_is_not_a_standby():
    beside = replace(
        member("a", ""), member_id="id-a-2", current=StreamsTasks(standby=tasks("1_0"))
    )
    (client,) = saved(member("a", ALL), beside, ends=ENDS)["clients"].values()
    assert (client["standby"], client["lags"]) == ([], {"1_0": "running", "1_1": "running"})


def test_threads_of_a_process_are_one_client():
    threads = (member("a", "0_0"), replace(member("a", "0_1 1_0 1_1"), member_id="id-a-2"))
    (client,) = saved(*threads, ends=ENDS)["clients"].values()
    assert (client["threads"], client["active"]) == (2, ["0_0", "0_1", "1_0", "1_1"])


def test_sizes_that_may_not_be_read_are_left_out_and_named():
    problem = saved(member("a", ALL))
    assert problem["end_offset_sums"] == {}
    assert "end_offset_sums of 2 stateful tasks are missing" in problem["note"]


def test_lags_are_written_if_a_broker_reports_them():
    owner, spare = two_members()
    reporting = replace(spare, task_offsets={tasks("1_0")[0]: 650})
    problem = saved(owner, reporting, ends=ENDS, lags="reported")
    assert problem["clients"]["process-b"]["lags"]["1_0"] == 50
    with pytest.raises(ProblemError, match="no field task_offsets: its brokers report no lags"):
        saved(owner, spare, ends=ENDS, lags="reported")


@pytest.mark.parametrize(
    ("members", "group_fields", "fields", "words"),
    [
        ((), {"state": "Empty"}, {}, "without clients"),
        (ALL, {"subtopologies": None}, {}, "without topology"),
        (ALL, {}, {"partitions": None}, "without topics: their partitions may not be read"),
        (ALL, {}, {"partitions": {}}, "the partitions of an input of subtopology 0 are not known"),
        ("0_7", {}, {}, "a member has task 0_7"),
    ],
)
def test_a_missing_field_is_named_in_one_sentence(members, group_fields, fields, words):
    own = (member("a", members),) if members else ()
    with pytest.raises(ProblemError, match=words) as caught:
        saved(*own, group_fields=group_fields, **fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", ["00", "9" * 20])
def test_a_subtopology_that_no_file_can_have_is_not_saved(number):
    parts = (StreamsSubtopology(subtopology_id=number, source_topics=("in",)),)
    own = member("a", f"{number}_0 {number}_1")
    with pytest.raises(ProblemError, match=f"could read the file: subtopology '{number}'"):
        problem_line(saved(own, group_fields={"subtopologies": parts}))


def test_a_task_that_runs_on_two_processes_is_not_saved(tmp_path, monkeypatch):
    twice, once = (
        look_at_streams_group(group(*members), facts())
        for members in ((member("a", ALL), member("b", "0_0")), (member("a", ALL),))
    )
    monkeypatch.setattr(command, "target_of", lambda *_: None)
    monkeypatch.setattr(command, "_looks", lambda *_: [twice, once])
    file = tmp_path / "groups.jsonl"
    done = CliRunner().invoke(assignor, ["inspect", "--all", "--save", str(file)])
    assert done.exit_code == 0, done.output
    assert (
        "warning: group g is not saved: no command could read the file: task 0_0 is active on"
        " process-a and on process-b"
    ) in " ".join(done.stderr.split())
    assert file.read_text(encoding="utf-8") == problem_line(problem_of(once))


def test_a_client_that_leaves_is_named_or_refused():
    assert saved(*two_members(), dies=["b"])["events"] == [
        {"type": "leave", "clients": ["process-b"]}
    ]
    with pytest.raises(ProblemError, match="'c' is not a client of the group; choose from a, b"):
        saved(*two_members(), dies=["c"])


def test_every_command_that_reads_problem_files_reads_it(tmp_path):
    file = tmp_path / "g.json"
    file.write_text(json.dumps(saved(*two_members(), ends=ENDS)), encoding="utf-8")
    for strategy in ("kafka_streams_group", "high_availability"):
        words = ["assign", "--problem", str(file), "--strategy", strategy, "--format", "json"]
        done = CliRunner().invoke(assignor, words)
        assert done.exit_code == 0, done.output
        assert str(TaskId(1, 1)) in done.stdout
    words = ["plan", "--problem", str(file), "--from", "4.2", "--to", "4.3"]
    done = CliRunner().invoke(rolling_bounce, [*words, "--brokers", "4.3"])
    assert done.exit_code == 0, done.output
    assert "a streams group (KIP-1071), brokers 4.3.1: one rolling bounce" in done.stdout
    done = CliRunner().invoke(rolling_bounce, [*words, "--seeds", "1"])
    assert done.exit_code == 2
    assert "a plan of a streams group simulates no bounces" in done.stderr
    move = ["plan", "--problem", str(file), "--from", "4.3", "--to", "streams", "--brokers", "4.3"]
    done = CliRunner().invoke(rolling_bounce, move)
    assert done.exit_code == 2
    assert "group g is a streams group already" in done.stderr
