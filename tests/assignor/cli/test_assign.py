"""`assignor assign`: a stream of problems, answered in order, with an error for invalid ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from assignor.cli.assign import command as module
from assignor.cli.assign.command import assign

STUCK = Path(__file__).parents[1] / "problems" / "stuck_newcomer.jsonl"
VALID = {
    "name": "good",
    "topics": {"t": {"partitions": 4}},
    "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
    "end_offset_sums": {f"0_{p}": 10**6 for p in range(4)},
    "clients": {
        "a": {
            "active": ["0_0", "0_1", "0_2", "0_3"],
            "lags": {f"0_{p}": "running" for p in range(4)},
        },
        "b": {},
    },
}


def call(*arguments, lines=(VALID,)):
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    return CliRunner().invoke(assign, ["--problem", "-", *arguments], input=text)


def answers(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_problem_is_answered_in_its_place_and_errors_too():
    invalid = VALID | {"name": "bad", "clients": {}}
    result = call(
        "--format", "json", lines=[VALID, invalid, "{broken", "", VALID | {"name": "last"}]
    )
    first, second, third, last = answers(result)
    assert (first["name"], last["name"]) == ("good", "last")
    assert second == {
        "name": "bad",
        "error": "no clients: a group without members has no assignment",
    }
    assert third["error"].startswith("line 3, column 2: broken JSON")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 2
    assert "line 2, group bad: no clients" in result.stderr


def test_an_answer_has_the_public_format():
    [answer] = answers(call("--format", "json"))
    assert answer["assignor"] == "high_availability"
    assert answer["probing"] is True
    assert answer["clients"]["a"]["active"] == ["0_0", "0_1", "0_2", "0_3"]
    assert len(answer["clients"]["b"]["warmup"]) == 2
    assert answer["millis"] > 0


def test_settings_and_strategy_come_from_the_command_line():
    result = call("--format", "json", "--strategy", "sticky", "--config", "num.standby.replicas=1")
    [answer] = answers(result)
    assert answer["probing"] is False
    assert sum(len(c["standby"]) for c in answer["clients"].values()) == 4
    tagged = call("--format", "json", "--config", "rack.aware.assignment.tags=zone,cluster")
    assert tagged.exit_code == 0


def test_wrong_options_are_one_sentence_and_exit_status_2():
    for option in (["--strategy", "stiky"], ["--config", "x"], ["--config", "no.such=1"]):
        result = call(*option)
        assert result.exit_code == 2
    assert "did you mean sticky" in call("--strategy", "stiky").stderr


def test_a_custom_strategy_is_named_by_module(monkeypatch):
    monkeypatch.setattr(module, "own", lambda _: 1 / 0, raising=False)
    result = call("--format", "json", "--strategy", "assignor.cli.assign.command:own")
    assert answers(result)[0]["error"].startswith("strategy <lambda> failed, ZeroDivisionError")
    assert result.exit_code == 2
    assert call("--strategy", "no.such:thing").exit_code == 2
    assert call("--strategy", "assignor.cli.assign.command:nothing").exit_code == 2


def test_an_assignment_without_a_task_is_rejected(monkeypatch):
    def forget(state):
        answer = module.named_strategy("sticky")(state)
        answer.active[0] = -1
        return answer

    monkeypatch.setattr(module, "own", forget, raising=False)
    result = call("--format", "json", "--strategy", "assignor.cli.assign.command:own")
    assert "not valid: task 0_0 has no active client" in answers(result)[0]["error"]


def test_simulation_shows_rounds_and_the_final_places():
    events = [{"type": "join", "clients": {"c": {}}}, {"type": "leave", "clients": ["a"]}]
    result = call("--format", "json", "--simulate", lines=[VALID | {"events": events}])
    [answer] = answers(result)
    assert answer["settled"] is True
    assert [phase["event"] for phase in answer["phases"]] == ["start", "join", "leave"]
    assert answer["rounds"] == sum(phase["rounds"] for phase in answer["phases"])
    assert answer["handoffs"] >= 2
    assert set(answer["clients"]) == {"b", "c"}
    wrong = call("--format", "json", "--simulate", lines=[VALID | {"events": [{"type": "nap"}]}])
    assert "event 'nap' is unknown" in answers(wrong)[0]["error"]


def test_the_text_has_a_table_for_people():
    text = call().stdout
    assert "good: 4 tasks (4 stateful), 0 standbys, 2 clients, 2 threads" in text
    assert "hand-offs 0" in text
    assert "warm-ups 2 of 2" in text
    assert "follow-up rebalance: in 600 s" in text
    output = call("--simulate").stdout
    assert "good with high_availability: settled" in output
    assert "follow-up rebalance: none, settled" in output


def test_copies_that_come_no_nearer_are_looked_at_again_later_and_not_settled():
    stuck = STUCK.read_text(encoding="utf-8").strip()
    text = " ".join(call("--simulate", lines=[stuck]).stdout.split())
    assert "follow-up rebalance: none requested now; the leader checks again later: 1 task" in text
    assert "none, settled" not in text
    assert "take-overs stateless moves restores cold warm-ups max" in text
    [answer] = answers(call("--simulate", "--format", "json", lines=[stuck]))
    assert (answer["probing"], answer["look_again"]) == (False, True)


@pytest.mark.usefixtures("clock")
def test_the_stream_is_answered_line_by_line_while_it_is_open():
    code = "from assignor.cli.main import main; main()"
    command = [sys.executable, "-c", code, "assign", "--problem", "-", "--format", "json"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        for name in ("one", "two"):
            child.stdin.write(json.dumps(VALID | {"name": name}) + "\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["name"] == name
        child.stdin.close()
        assert child.wait(timeout=120) == 0


def test_a_simulation_reports_its_assumption_for_unknown_end_offsets():
    settled = "the simulation assumes that a new copy of such a task catches up within one round"
    nothing = VALID | {"end_offset_sums": {}}
    result = call("--simulate", "--format", "text", lines=[nothing])
    text = " ".join(result.stdout.split())
    assert f"end offset sum of 4 of the 4 stateful tasks is not known: {settled}" in text
    partly = VALID | {"end_offset_sums": {"0_0": 10**6, "0_1": 0, "0_3": 5}}
    [answer] = answers(call("--simulate", "--format", "json", lines=[partly]))
    [warning] = [warning for warning in answer["warnings"] if settled in warning]
    assert "1 of the 4 stateful tasks (for example 0_2) is not known" in warning
    assert warning.endswith("give the sums in end_offset_sums")


def test_a_simulation_with_all_end_offsets_has_no_note_about_them():
    [answer] = answers(call("--simulate", "--format", "json"))
    assert "warnings" not in answer
    stateless = VALID | {"subtopologies": {"0": {"sources": ["t"]}}, "end_offset_sums": {}}
    stateless["clients"] = {"a": {}, "b": {}}
    [answer] = answers(call("--simulate", "--format", "json", lines=[stateless]))
    assert "warnings" not in answer
