"""With `weights`, commands print the work of each client besides its number of tasks."""

import json

import pytest
from click.testing import CliRunner

from assignor.cli import main

# One hot task of four: by counts two and two are even, by work one and three.
PROBLEM = {
    "name": "hot",
    "topics": {"t": {"partitions": 4}},
    "subtopologies": {"0": {"sources": ["t"], "changelogs": ["t-changelog"]}},
    "end_offset_sums": {f"0_{p}": 10 for p in range(4)},
    "weights": {"0_0": 6},
    "clients": {
        "ada": {
            "threads": 2,
            "active": ["0_0", "0_1"],
            "lags": {"0_0": "running", "0_1": "running"},
        },
        "bob": {"active": ["0_2", "0_3"], "lags": {"0_2": "running", "0_3": "running"}},
    },
}
PLAIN = {key: value for key, value in PROBLEM.items() if key != "weights"}


def call(command, *arguments, problem=PROBLEM):
    result = CliRunner().invoke(
        main, [command, "--problem", "-", *arguments], input=json.dumps(problem) + "\n"
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_assign_prints_work_and_work_a_thread_of_every_client():
    text = call("assign", "--format", "text")
    header, ada, bob = (line.split() for line in text.splitlines()[1:4])
    assert "work  work per thread" in text.splitlines()[1]
    assert header[:2] == ["client", "threads"]
    assert ada[:7] == ["ada", "2", "1", "0", "0", "6.0", "3.0"]
    assert bob[:7] == ["bob", "1", "3", "0", "0", "3.0", "3.0"]
    assert "work 9.0; 3.0 per thread on the busiest client, ada, 3.0 on average" in text


def test_assign_has_work_in_json():
    answer = json.loads(call("assign", "--format", "json"))
    assert answer["work"] == {"ada": 6.0, "bob": 3.0}


def test_explain_prints_work_of_the_candidates_and_of_the_group():
    text = call("explain", "--task", "0_0")
    lines = [line.split() for line in text.splitlines()]
    ada = next(line for line in lines if line[:2] == ["ada", "running"])
    assert "work  work per thread" in text
    assert ada[4:6] == ["6.0", "3.0"]
    assert "3.0 per thread on the busiest client, ada" in call("explain")
    document = json.loads(call("explain", "--task", "0_0", "--format", "json"))
    work = {
        candidate["client"]: candidate["work"] for candidate in document["tasks"][0]["candidates"]
    }
    assert work == {"ada": 6.0, "bob": 3.0}


def test_diff_prints_work_before_and_after():
    text = call("diff")
    assert "before: work 9.0; 3.5 per thread on the busiest client, ada" in text
    assert "after: work 9.0; 3.0 per thread on the busiest client, ada" in text
    document = json.loads(call("diff", "--format", "json"))
    assert document["work"] == {
        "before": {"ada": 7.0, "bob": 2.0},
        "after": {"ada": 6.0, "bob": 3.0},
    }


@pytest.mark.parametrize("command", ["assign", "explain", "diff"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_without_weights_no_work_is_printed(command, form):
    assert "work" not in call(command, "--format", form, problem=PLAIN)
