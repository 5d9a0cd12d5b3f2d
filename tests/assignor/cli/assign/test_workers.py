"""`assignor assign --workers`: the answers, their order and the exit status of one process."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from assignor.cli.assign import lines
from assignor.cli.assign.command import assign

pytestmark = pytest.mark.usefixtures("clock")
COMMAND = [sys.executable, "-m", "assignor.entry", "assign"]
STRATEGY = """
import os, signal, time
from assignor.placement import find_strategy

def of_client(state):
    if "killed" in state.clients:
        os.kill(os.getpid(), signal.SIGKILL)
    if "memory" in state.clients:
        raise MemoryError("Unable to allocate 7 PiB")
    if "exits" in state.clients:
        raise GeneratorExit
    if "prints" in state.clients:
        print("a forgotten line")
        os.write(1, b"a line of C code\\n")
    if "waits" in state.clients:
        with open(f"waits-{os.getpid()}", "w"):
            time.sleep(600)
    return find_strategy("sticky")(state)
"""

pytestmark = pytest.mark.usefixtures("alone")


def group(name, client="b", lag=50):
    """A group whose second client has a copy that is behind, so that it counts as stalled later."""
    tasks = [f"0_{number}" for number in range(4)]
    return {
        "name": name,
        "config": {"acceptable.recovery.lag": 10},
        "topics": {"t": {"partitions": 4}},
        "subtopologies": {"0": {"sources": ["t"], "changelogs": ["c"]}},
        "end_offset_sums": dict.fromkeys(tasks, 10**6),
        "clients": {
            "a": {"active": tasks, "lags": dict.fromkeys(tasks, "running")},
            client: {"lags": {"0_0": lag}},
        },
    }


BROKEN = [
    "{broken",
    json.dumps(group("bad") | {"clients": {}}),
    json.dumps(group("bad") | {"topics": None}),
    "",
    json.dumps(group("ros\u00e9") | {"note": "\ud800"}),
]
# Rebalances of one group, and lines without a name and with errors among them.
ROUNDS = [json.dumps(group(name)) for name in ("x", "x", "y", "x", "", "", "y", "y", "y", "y")]
LINES = [*ROUNDS, *BROKEN, ROUNDS[-1], BROKEN[0], ROUNDS[-1], *ROUNDS]


def call(*arguments, given=LINES):
    return CliRunner().invoke(assign, ["--problem", "-", *arguments], input="\n".join(given))


def without_millis(text):
    found = [json.loads(line) for line in text.splitlines()]
    return [{key: value for key, value in answer.items() if key != "millis"} for answer in found]


@pytest.mark.parametrize("block", [200, 1_500, 1 << 18])
def test_the_answers_are_those_of_one_process_in_the_order_of_the_lines(monkeypatch, block):
    monkeypatch.setattr(lines, "_BLOCK", block)
    alone = call("--format", "json")
    several = call("--format", "json", "--workers", "2")
    assert without_millis(several.stdout) == without_millis(alone.stdout)
    assert several.stderr == alone.stderr
    assert several.exit_code == alone.exit_code == 2
    # A copy that did not come nearer since the rebalance before: the lines count in their order.
    again = [answer.get("look_again") for answer in without_millis(alone.stdout)[:10]]
    assert again == [False, True, *[False] * 5, True, True, True]


@pytest.mark.parametrize("arguments", [(), ("--simulate",), ("--strategy", "sticky")])
def test_the_text_is_that_of_one_process(arguments):
    stuck = json.dumps(group("never") | {"stuck": {"b": 50}})
    given = [*ROUNDS[:3], stuck]
    alone, several = (call(*arguments, "--workers", n, given=given) for n in ("1", "2"))
    assert several.exit_code == alone.exit_code
    assert [line for line in several.stdout.splitlines() if " ms" not in line] == [
        line for line in alone.stdout.splitlines() if " ms" not in line
    ]
    assert alone.stdout.count("follow-up rebalance") == 4


@pytest.mark.slow
def test_a_line_that_is_too_long_is_an_error_after_the_answers_before_it(monkeypatch):
    monkeypatch.setattr(lines, "LINE_LIMIT", 2_000)
    for workers in ("1", "2"):
        result = call("--workers", workers, given=[*ROUNDS[:2], "x" * 3_000, ROUNDS[2]])
        assert result.exit_code == 2
        assert "a line is longer than 2000 bytes" in result.stderr
        assert result.stdout.count("follow-up rebalance") == 2


def test_wrong_options_are_found_before_workers_start():
    assert "did you mean sticky" in call("--workers", "2", "--strategy", "stiky").stderr
    assert "write KEY=VALUE" in call("--workers", "2", "--config", "x").stderr


@pytest.fixture
def run(tmp_path):
    """Start the command in a folder with a strategy that kills or delays its process."""
    (tmp_path / "own.py").write_text(STRATEGY, encoding="utf-8")
    (tmp_path / "loud.py").write_text(
        f"{STRATEGY}\nprint('while it is imported')\n", encoding="utf-8"
    )
    started = []

    def start(*arguments, strategy="own:of_client", problem="-"):
        process = subprocess.Popen(
            [*COMMAND, "--problem", problem, "--strategy", strategy, *arguments],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path.cwd())},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def wait_for(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_open_stream_is_answered_while_it_is_open(run):
    process = run("--workers", "2", "--format", "json", strategy="sticky")
    for name in ("first", "second", "third"):
        process.stdin.write(json.dumps(group(name)) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["name"] == name
    process.stdin.close()
    assert process.wait(timeout=240) == 0


@pytest.mark.usefixtures("alone")
def test_a_worker_that_is_killed_ends_the_command_with_a_sentence(run):
    given = [group("first"), group("second", client="killed"), group("third")]
    process = run("--workers", "2", "--format", "json")
    output, errors = process.communicate("\n".join(map(json.dumps, given)), timeout=240)
    assert process.returncode == 3
    assert errors.startswith("assignor: a worker process ended early, at line 1 or behind it")
    assert errors.count("\n") == 1
    assert output == ""


@pytest.mark.parametrize("limit", [8, 10, 14])
def test_without_file_descriptors_for_workers_the_sentence_says_what_to_do(limit):
    script = f'ulimit -n {limit}; exec "$0" "$@"'
    done = subprocess.run(
        ["bash", "-c", script, *COMMAND, "--problem", "-", "--workers", "2"],
        input=json.dumps(group("first")),
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    sentence = (
        "assignor: this process has no file descriptors left for 2 worker processes; raise its"
        " limit (ulimit -n), or run fewer processes at the same time.\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "", sentence)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_is_left_when_the_command_is_ended(run, tmp_path, number):
    process = run("--workers", "2")
    process.stdin.write(json.dumps(group("first", client="waits")) + "\n")
    process.stdin.flush()
    wait_for(lambda: list(tmp_path.glob("waits-*")), "a worker has begun")
    [found] = tmp_path.glob("waits-*")
    worker = int(found.name.partition("-")[2])
    assert worker != process.pid
    process.send_signal(number)
    process.wait(timeout=240)
    wait_for(lambda: not is_running(worker), "the worker has ended")
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert process.stderr.read() == "assignor: interrupted.\n"


@pytest.mark.usefixtures("alone")
def test_a_reader_that_leaves_ends_the_command(run, tmp_path):
    path = tmp_path / "groups.jsonl"
    path.write_text(
        "".join(json.dumps(group(f"g{n}")) + "\n" for n in range(3_000)), encoding="utf-8"
    )
    process = run("--workers", "2", "--format", "json", strategy="sticky", problem=str(path))
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=240) == 141
    assert process.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_strategy_can_neither_end_the_command_nor_write_into_the_answers(run, workers):
    names = ("first", "memory", "exits", "prints", "last")
    given = "\n".join(json.dumps(group(name, client=name)) for name in names)
    process = run("--format", "json", "--workers", workers, strategy="loud:of_client")
    stdout, stderr = process.communicate("\ufeff" + given, timeout=240)
    answers = {answer["name"]: answer for answer in map(json.loads, stdout.splitlines())}
    errors = {name: answer["error"] for name, answer in answers.items() if "error" in answer}
    assert tuple(answers) == names
    assert errors == {
        "memory": "the group needs more memory than the process has, "
        "MemoryError: Unable to allocate 7 PiB",
        "exits": "the strategy failed, GeneratorExit",
    }
    assert process.returncode == 2
    for text in ("while it is imported", "a forgotten line", "a line of C code"):
        assert text in stderr
    assert "Traceback" not in stderr
