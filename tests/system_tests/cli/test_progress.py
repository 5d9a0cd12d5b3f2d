"""Progress of long commands: lines off a terminal, a bar on one."""

import io

import pytest

from probing import find_release
from system_tests.cli import progress
from system_tests.plan import SimulatedGroup, bounces_to_run, make_plan, step_costs


@pytest.fixture
def lines_at_once(monkeypatch):
    """Print a line after every call, not only every ten seconds."""
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)


def test_off_a_terminal_lines_say_how_much_is_done(lines_at_once, capsys):
    with progress.counted("bounces", 3000) as add:
        add(1200)
        add(0)
    assert (
        capsys.readouterr().err.splitlines()
        == ["rolling-bounce: bounces, 1,200 of 3,000, 0 s."] * 2
    )


def test_a_short_command_prints_no_line(capsys):
    with progress.counted("bounces", 2) as add:
        add(1)
        add(1)
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_a_bar(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    with progress.counted("bounces", 2) as add:
        add(2)
    assert "bounces" in terminal.getvalue()
    assert "100%" in terminal.getvalue()


def test_the_costs_of_a_plan_count_every_bounce():
    check_that_the_costs_count_every_bounce(members=3)


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_worker_processes_count_every_bounce_too():
    check_that_the_costs_count_every_bounce(members=30)


def check_that_the_costs_count_every_bounce(members):
    made = make_plan(find_release("3.9"), find_release("4.3"))
    counts = []
    group = SimulatedGroup(members=members, partitions=1)
    step_costs(made, group, seeds=2, progress=counts.append)
    assert sum(counts) == bounces_to_run(made, 2) == 4, "two seeds, up and back"
    assert set(counts) <= {0, 1}
