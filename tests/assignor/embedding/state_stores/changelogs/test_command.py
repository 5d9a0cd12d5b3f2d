"""`assignor write-back`: what it does without kept copies, and its exit status."""

import json
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

import assignor.adapters.kafka_python
from assignor.cli import main, write_back
from assignor.embedding import ClusterUnavailable
from assignor.embedding.write_back import KeptTask, WriteBackPlan
from assignor.stores import StoreError
from encoding import TaskId


def run(*options):
    given = ["write-back", "--bootstrap-server", "127.0.0.1:1", *options]
    found = CliRunner().invoke(main, given)
    return found.exit_code, found.stdout, found.stderr


def test_a_directory_without_kept_copies_needs_no_broker(tmp_path):
    (tmp_path / "0_1").mkdir()
    assert run("--state-dir", str(tmp_path)) == (0, f"nothing is kept in {tmp_path}\n", "")
    status, out, _ = run("--state-dir", str(tmp_path), "--format", "json", "--execute")
    assert (status, json.loads(out)) == (0, {"executed": True, "tasks": []})


def test_a_directory_that_may_be_no_state_directory_is_said_to_be_one(tmp_path):
    status, out, err = run("--state-dir", str(tmp_path))
    assert (status, out) == (0, f"nothing is kept in {tmp_path}\n")
    assert "has no task's directory, as 0_1; is it a state directory?" in err


@pytest.fixture
def tasks(monkeypatch):
    """Three kept tasks; what is raised for the second one is the value."""
    kept = [
        KeptTask(task=TaskId(0, number), directory=Path("x"), application_id="app")
        for number in range(3)
    ]
    raised = []

    @contextmanager
    def opened(state_dir, *, is_read_only):
        yield kept

    def run_task(admin, access, each, *, is_executed):
        if each is kept[1]:
            raise raised[0]
        return write_back._Result(kept=each, plan=WriteBackPlan(refusals=()), differing={})

    monkeypatch.setattr(write_back, "open_kept", opened)
    monkeypatch.setattr(write_back, "connected", nullcontext)
    monkeypatch.setattr(write_back, "check_stopped", lambda *_: None)
    monkeypatch.setattr(write_back, "_run_task", run_task)
    access = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(assignor.adapters.kafka_python, "KafkaChangelogs", lambda **_: access)
    return raised


def test_a_task_whose_copy_cannot_be_used_is_refused_and_the_others_are_done(tasks, tmp_path):
    tasks.append(StoreError("state file counts.db is damaged"))
    status, out, err = run("--state-dir", str(tmp_path), "--execute")
    assert status == 1
    assert out.splitlines() == [
        "task 0_0 of app is written back",
        "task 0_1 of app is refused, and stays kept",
        "task 0_2 of app is written back",
    ]
    assert "task 0_1: state file counts.db is damaged" in err
    assert "1 of 3 tasks are refused, and stay kept" in err


def test_a_cluster_that_does_not_answer_is_a_failure_of_the_environment(tasks, tmp_path):
    tasks.append(ClusterUnavailable("changelogs cannot be read"))
    status, _, err = run("--state-dir", str(tmp_path), "--execute")
    assert (status, "changelogs cannot be read" in err) == (3, True)
