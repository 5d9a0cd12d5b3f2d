"""Every example runs, is short, and prints what its docstring promises."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAYS = {
    "assign_tasks.py": ["task 0_0: active on a", "active on new (moved)"],
    "decode_bytes.py": ["task 0_1: running", "task 1_2: 500", "half of it is refused"],
    "negotiate.py": ["generation 2", "somebody has not been bounced", "settled"],
}
ON_A_BROKER = {"consume_kafka_python.py": ["one runs", "two runs", "processed"]}
LINES = 60


def run(name):
    done = subprocess.run(
        [sys.executable, f"examples/{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_its_line_here():
    found = {path.name for path in (ROOT / "examples").glob("*.py")}
    assert found == SAYS.keys() | ON_A_BROKER.keys() | {"own_strategy.py"} & found


@pytest.mark.parametrize("name", SAYS)
def test_examples_say_what_they_promise(name):
    output = run(name)
    assert [text for text in SAYS[name] if text not in output] == []


@pytest.mark.loop
@pytest.mark.parametrize("name", ON_A_BROKER)
def test_examples_on_a_broker_say_what_they_promise(name):
    output = run(name)
    assert [text for text in ON_A_BROKER[name] if text not in output] == []


def test_examples_are_short():
    sizes = {p.name: len(p.read_text().splitlines()) for p in (ROOT / "examples").glob("*.py")}
    assert {name: n for name, n in sizes.items() if n > LINES} == {}
