"""Every example runs, and prints what its docstring promises."""

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from assignor.cli import main as assignor

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
# Files that a page names.
ON_A_PAGE = {"quix_counts.py": "integrations.md"}
# Applications are in the wheel. A page of docs starts each, and tests of the pages with it.
APPLICATIONS = {
    "old_group": "start-upgrade.md",
    "orders": "embedding.md",
    "word_count": "start-app.md",
}


def test_every_example_has_its_line_here():
    found = {p.relative_to(ROOT / "examples").as_posix() for p in (ROOT / "examples").rglob("*.py")}
    assert found == {*EXPECTED, *ON_A_BROKER, *ON_A_PAGE}
    named = {n: (ROOT / "docs" / page).read_text(encoding="utf-8") for n, page in ON_A_PAGE.items()}
    assert [n for n, page in named.items() if n.removesuffix(".py") not in page] == []
    shipped = {path.stem for path in (ROOT / "assignor/examples").glob("*.py")}
    assert shipped == {"__init__", "topologies", *APPLICATIONS}


@pytest.mark.parametrize("name", APPLICATIONS)
def test_applications_are_started_on_a_page(name):
    page = (ROOT / "docs" / APPLICATIONS[name]).read_text(encoding="utf-8")
    assert f"python -m assignor.examples.{name} " in page


@pytest.mark.parametrize("name", EXPECTED)
def test_examples_print_what_their_docstring_promises(name, capsys):
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    output = capsys.readouterr().out
    assert [text for text in EXPECTED[name] if text not in output] == []


def test_assign_calls_a_custom_strategy_as_in_the_example(tmp_path, monkeypatch):
    zones = {"ada": "east", "bob": "west"}
    problem = {
        "name": "zones",
        "topics": {"orders": {"partitions": 4}},
        "subtopologies": {"0": {"sources": ["orders"], "changelogs": ["store-changelog"]}},
        "clients": {name: {"tags": {"zone": zone}} for name, zone in zones.items()},
    }
    file = tmp_path / "problem.json"
    file.write_text(json.dumps(problem), encoding="utf-8")
    asked = ["assign", "--strategy", "own_strategy:by_zone", "--problem", str(file)]
    assert f"assignor {' '.join(asked[:4])} FILE" in (ROOT / "examples/own_strategy.py").read_text(
        encoding="utf-8"
    )
    monkeypatch.chdir(ROOT / "examples")
    done = CliRunner().invoke(assignor, [*asked, "--format", "json"])
    assert done.exit_code == 0, done.stderr
    placed = json.loads(done.stdout)["clients"]
    assert {name: client["active"] for name, client in placed.items()} == {
        "ada": ["0_0", "0_2"],
        "bob": ["0_1", "0_3"],
    }


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ON_A_BROKER)
def test_examples_on_a_broker_print_what_their_docstring_promises(name):
    done = subprocess.run(
        [sys.executable, f"examples/{name}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [text for text in ON_A_BROKER[name] if text not in done.stdout] == []
