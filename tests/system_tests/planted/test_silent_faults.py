"""Faults without a report: a task that does not run, a process that does not exist."""

from dataclasses import replace

import pytest

from assignor.rebalance import member
from system_tests.explore import Bounds, explore
from system_tests.sim import BounceOptions, plan_bounce, run_bounce
from system_tests.sim.world import World

NATIVE = {"old": "native", "new": "native"}


def rules_of(**options):
    return {violation.rule for violation in run_bounce(BounceOptions(**NATIVE, **options)).broken}


@pytest.fixture
def forgetful(monkeypatch):
    """Make members keep the partition of their first task without running the task."""
    whole = member.held_tasks

    def held_tasks(*args, **kwargs):
        held = whole(*args, **kwargs)
        return replace(held, active=dict(list(held.active.items())[1:]))

    monkeypatch.setattr(member, "held_tasks", held_tasks)


@pytest.mark.parametrize("draw_all", [False, True])
def test_a_bounce_in_which_a_task_is_not_run_is_bad(forgetful, draw_all):
    assert "nothing is forgotten" in rules_of(seed=3, draw_all=draw_all)


def test_a_search_in_which_a_task_is_not_run_is_bad(forgetful):
    bounds = Bounds(members=2, partitions=4, crashes=0, max_states=200)
    found = explore(plan_bounce(BounceOptions(**NATIVE)), bounds).found
    assert {violation.finding.broken.rule for violation in found} == {"nothing is forgotten"}


def test_a_bounce_after_which_a_process_is_not_there_is_bad(monkeypatch):
    whole, started = World.start, []

    def start(world, process, release, upgrade_from=None, **more):
        started.append(process)
        if process != 2 or started.count(2) == 1:
            whole(world, process, release, upgrade_from, **more)

    monkeypatch.setattr(World, "start", start)
    assert rules_of(seed=3) == {"nobody dies"}
