"""Every example runs, and prints what its docstring promises."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = {
    "assign_tasks.py": ["task 0_0: active on a", "copies on new"],
    "decode_bytes.py": ["task 0_1: running", "task 1_2: 500", "a truncated blob is refused"],
    "negotiate.py": ["generation 2", "a member is not upgraded yet", "settled"],
    "own_strategy.py": ["0_0 runs on ada", "0_1 runs on bob", "0_2 runs on cyd"],
}
ON_A_BROKER = {
    "clients/aiokafka_group.py": ["one runs", "two runs", "processed"],
    "clients/confluent_group.py": ["one read records", "two read records"],
    "clients/kafka_python_group.py": ["one runs", "two runs", "processed"],
}
# What a page of docs starts, and tests of the pages with it.
ON_A_PAGE = {"old_group.py": "start-upgrade.md"}
# Whole applications have tests of their own, in system_tests; tests/docs/test_pages.py runs
# `old_group`.
APPLICATIONS = {"old_group.py", "quix_counts.py", "word_count.py"}
LIMIT_S = 300  # much more than any needs, on any machine
pytestmark = pytest.mark.timeout(LIMIT_S + 10)


def run(name):
    done = subprocess.run(
        [sys.executable, f"examples/{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_its_line_here():
    found = {p.relative_to(ROOT / "examples").as_posix() for p in (ROOT / "examples").rglob("*.py")}
    assert found == {*EXPECTED, *ON_A_BROKER, *ON_A_PAGE, *APPLICATIONS}


@pytest.mark.parametrize("name", ON_A_PAGE)
def test_examples_that_a_page_needs_are_started_there(name):
    page = (ROOT / "docs" / ON_A_PAGE[name]).read_text()
    assert f"$ python -m examples.{name.removesuffix('.py')}" in page


@pytest.mark.parametrize("name", EXPECTED)
def test_examples_say_what_they_promise(name):
    output = run(name)
    assert [text for text in EXPECTED[name] if text not in output] == []


def test_a_strategy_of_your_own_is_asked_by_assign_as_the_example_says(tmp_path):
    zones = {"ada": "east", "bob": "west"}
    problem = {
        "name": "zones",
        "topics": {"orders": {"partitions": 4}},
        "subtopologies": {"0": {"sources": ["orders"], "changelogs": ["store-changelog"]}},
        "clients": {name: {"tags": {"zone": zone}} for name, zone in zones.items()},
    }
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(problem))
    asked = ["assign", "--strategy", "own_strategy:by_zone", "--problem", str(file)]
    assert f"assignor {' '.join(asked[:4])} FILE" in (ROOT / "examples/own_strategy.py").read_text()
    done = subprocess.run(
        [Path(sys.executable).with_name("assignor"), *asked, "--format", "json"],
        cwd=ROOT / "examples",
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    placed = json.loads(done.stdout)["clients"]
    assert {name: client["active"] for name, client in placed.items()} == {
        "ada": ["0_0", "0_2"],
        "bob": ["0_1", "0_3"],
    }


@pytest.mark.loop
@pytest.mark.slow
@pytest.mark.parametrize("name", ON_A_BROKER)
def test_examples_on_a_broker_say_what_they_promise(name):
    output = run(name)
    assert [text for text in ON_A_BROKER[name] if text not in output] == []
