"""`assignor diff` of a join of one client, as text."""

import json

import pytest
from click.testing import CliRunner

from assignor.cli.assign.command import assign
from assignor.cli.diff import diff
from tests.assignor.problems.small_groups import JOIN


def call(*arguments, problem=None):
    text = None if problem is None else json.dumps(problem) + "\n"
    return CliRunner().invoke(diff, [str(argument) for argument in arguments], input=text)


@pytest.fixture
def files(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return path

    return write


def result(problem, strategy="high_availability"):
    options = ["--problem", "-", "--format", "json", "--strategy", strategy]
    done = CliRunner().invoke(assign, options, input=json.dumps(problem) + "\n")
    return json.loads(done.stdout)


def test_a_join_shows_which_tasks_wait_which_warm_up_and_why():
    text = call("--problem", "-", problem=JOIN).stdout
    lines = [line.strip() for line in text.splitlines()]
    assert lines[1].startswith("kept 4, hand-offs 0")
    assert "records to restore 1,000,000" in lines[1]
    assert "aaaaaaaa -> bbbbbbbb  0_0 0_1" in lines
    assert "on bbbbbbbb  0_0" in lines
    assert "a follow-up rebalance is requested, to move tasks to caught-up copies" in lines
    assert "its band is 2" in " ".join(text.split())


def test_every_task_has_its_reason_with_tasks():
    text = call("--problem", "-", "--tasks", problem=JOIN).stdout
    assert text.count("aaaaaaaa has 4 stateful tasks to keep") == 2


def test_a_result_against_its_problem_is_explained_like_the_strategy(files):
    a, b = files("a", JOIN), files("b", result(JOIN))
    assert call(a, b).stdout == call("--problem", a).stdout


def test_two_results_need_the_group(files):
    a, b, group = files("a", result(JOIN)), files("b", result(JOIN, "sticky")), files("p", JOIN)
    refused = call(a, b)
    assert refused.exit_code == 2
    assert "add --problem FILE with the group" in refused.stderr
    found = json.loads(call(a, b, "--problem", group, "--format", "json").stdout)
    assert found["counts"]["handoffs"] == 2
    # The warm-up of the first answer has caught up when the second comes.
    assert {m["task"]: m["rule"] for m in found["moves"] if m["kind"] == "active"} == {
        "0_0": "moved to a caught-up client",
        "0_1": "moved, state restored",
    }


def test_two_looks_at_a_group_show_what_happened_between(files):
    left = JOIN | {"clients": {"bbbbbbbb-2": {"active": ["0_0", "0_1", "0_2", "0_3"]}}}
    found = json.loads(call(files("a", JOIN), files("b", left), "--format", "json").stdout)
    assert found["counts"]["takeovers"] == 4
    assert {m["from"] for m in found["moves"]} == {None}
    assert {m["why"] for m in found["moves"]} == {
        "no client has its state; bbbbbbbb-2 has free capacity: 4 stateful tasks of at most 4"
    }


def test_json_groups_count_the_moves(files):
    found = json.loads(call("--problem", "-", "--format", "json", problem=JOIN).stdout)
    assert [(g["kind"], g["count"]) for g in found["groups"]] == [("waiting", 2), ("warm-up", 1)]
    assert found["probing"] is True
    assert found["counts"]["stay"] == 4
    assert all(move["why"] for move in found["moves"])


def test_invalid_files_are_one_sentence_and_exit_status_2(files):
    a = files("a", JOIN, JOIN | {"name": "second"})
    assert call().exit_code == 2
    assert call(a).exit_code == 2
    assert "give two files" in call(a).stderr
    missing = call(a, files("b", result(JOIN)))
    assert missing.exit_code == 2
    assert "second: B has no line with this name" in missing.stderr
    assert "join:" in missing.stdout
    fresh = call(a, a, "--name", "nope")
    assert "no group 'nope'" in fresh.stderr
    assert call("--problem", files("e", {}), "--format", "json").exit_code == 2


def test_nothing_moves_in_a_group_that_is_settled(files):
    settled = files("a", JOIN)
    assert "nothing moves" in call(settled, settled).stdout


def test_settings_of_the_command_line_win(files):
    found = call("--problem", files("a", JOIN), "--config", "max.warmup.replicas=2").stdout
    assert "on bbbbbbbb  0_0 0_1" in found


def test_state_of_unknown_size_is_an_unknown_number_of_records():
    unknown = {key: value for key, value in JOIN.items() if key != "end_offset_sums"}
    text = " ".join(call("--problem", "-", problem=unknown).stdout.split())
    assert "hand-offs 0" in text
    assert "records to restore 0 (not known for 1 of the copies)" in text
    assert "bbbbbbbb has no state of it, an unknown number of records to restore" in text
    found = json.loads(call("--problem", "-", "--format", "json", problem=unknown).stdout)
    assert (found["counts"]["restored_records"], found["counts"]["unknown_restores"]) == (0, 1)
