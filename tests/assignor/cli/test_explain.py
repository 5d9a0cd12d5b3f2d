"""`assignor explain` of a join of one client, as text."""

import json

from click.testing import CliRunner

from assignor.cli.explain import explain
from tests.assignor.problems.small_groups import JOIN


def call(*arguments, lines=(JOIN,)):
    text = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    return CliRunner().invoke(explain, ["--problem", "-", *arguments], input=text)


def test_a_waiting_task_shows_its_reason_and_what_would_move_it():
    text = call("--task", "0_0").stdout
    assert "join: task 0_0 (stateful), high_availability" in text
    assert "active on aaaaaaaa, as before" in text
    assert "stays until its target has caught up" in text
    assert "aaaaaaaa has 4 stateful tasks to keep, its band is 2" in text
    assert "warm-up on bbbbbbbb" in text
    assert "runs on bbbbbbbb, if bbbbbbbb were caught up on it" in text
    assert "1,000,000 records to restore" in text
    assert "warm-up, target" in text


def test_a_task_without_a_warm_up_waits_for_one():
    waiting = call("--task", "0_1").stdout
    assert "waits for the 1 warm-up of max.warmup.replicas" in " ".join(waiting.split())
    assert "a warm-up starts on bbbbbbbb, if max.warmup.replicas were 2" in waiting


def test_all_tasks_are_counted_by_rule():
    text = call().stdout
    assert "2  kept by its owner" in text
    assert "2  stays until its target has caught up" in text
    assert "1  warms up before the task moves here" in text


def test_json_has_full_ids_candidates_and_changes():
    [answer] = map(json.loads, call("--task", "0_0", "--format", "json").stdout.splitlines())
    [task] = answer["tasks"]
    assert (task["active"], task["target"]) == ("aaaaaaaa-1", "bbbbbbbb-2")
    assert task["copies"][0]["kind"] == "warm-up"
    assert [c["lag"] for c in task["candidates"]] == ["running", None]
    assert task["candidates"][0]["band"] == [2, 2]
    assert task["changes"][0] == {
        "if": "bbbbbbbb-2 were caught up on it",
        "active": "bbbbbbbb-2",
        "warms_up": None,
    }
    everything = json.loads(call("--format", "json").stdout)
    assert [t["task"] for t in everything["tasks"]] == ["0_0", "0_1", "0_2", "0_3"]
    assert "changes" not in everything["tasks"][0]


def test_racks_and_tags_are_columns_when_they_count():
    racks = {str(p): ["r1"] for p in range(4)}
    rich = JOIN | {
        "config": {
            "rack.aware.assignment.strategy": "min_traffic",
            "rack.aware.assignment.tags": ["zone"],
        },
        "topics": {"t": {"partitions": 4, "racks": racks}},
        "clients": {
            "a": JOIN["clients"]["aaaaaaaa-1"] | {"rack": "r0", "tags": {"zone": "x"}},
            "b": {"rack": "r1", "tags": {"zone": "y"}},
        },
    }
    text = call("--task", "0_0", lines=[rich]).stdout
    header = next(line for line in text.splitlines() if line.startswith("candidate"))
    assert header.split() == [
        *("candidate", "lag", "stateful", "band", "cross-rack", "changelogs", "zone", "role")
    ]


def test_a_client_below_its_share_is_reported_with_the_reason_also_while_it_warms_up():
    text = " ".join(call().stdout.split())
    assert "runs 0 of 2) is below the share of stateful tasks: its copies are not caught up" in text
    assert "warning" not in text
    [low] = json.loads(call("--format", "json").stdout)["below_share"]
    assert low.pop("client") in JOIN["clients"]
    assert low == {"held": 0, "share": 2, "why": "its copies are not caught up yet"}


def test_one_problem_is_chosen_by_name():
    other = JOIN | {"name": "other"}
    assert call("--name", "other", lines=[JOIN, other]).stdout.startswith("other:")
    missing = call("--name", "nope")
    assert missing.exit_code == 2
    assert "the file has no group 'nope'" in missing.stderr


def test_invalid_problems_are_reported_and_the_rest_is_explained():
    result = call(lines=["{broken", JOIN])
    assert result.exit_code == 2
    assert "line 1, column 2: broken JSON" in result.stderr
    assert "kept by its owner" in result.stdout
    unknown = call("--task", "0_9")
    assert unknown.exit_code == 2
    assert "join has no task '0_9'; its tasks are 0_0 to 0_3" in unknown.stderr
    assert "did you mean sticky" in call("--strategy", "stiky").stderr
