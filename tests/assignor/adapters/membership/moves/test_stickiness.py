"""A join or a leave moves as few running tasks as possible, whatever the application leaves out.

Twelve tasks: a third member takes four from the others, a fourth takes three, and where it leaves,
only its own three go elsewhere.
"""

from itertools import count

import pytest

from assignor import RunningTasks, TasksListener
from assignor.adapters.membership import driver
from encoding import RUNNING, TaskId
from tests.assignor.adapters.membership.moves.groups import Group

PROTOCOLS = pytest.mark.parametrize("protocol", ["eager", "cooperative"])
# (acceptable recovery lag, records in each changelog)
STATES = pytest.mark.parametrize(("lag", "end"), [(10_000, 0), (10_000, 300), (0, 0)])


class Offsets(RunningTasks):
    """Reports how far its copies are, and does nothing else."""

    def task_offsets(self):
        return {TaskId(0, number): 300 for number in range(12)}


class Restoring(TasksListener):
    """Says that it restores everything, and not how far it is."""

    def __init__(self):
        self.active = ()

    def on_tasks_assigned(self, active, standby):
        self.active = active

    def restoring_tasks(self):
        return self.active


def works_through(group):
    """Have each application do what the loop of a complete one does after a rebalance."""
    for each in group.members.values():
        listener = each.reporter.listener
        if isinstance(listener, RunningTasks):
            with listener.working(restored=listener.fresh):
                pass


def moved(group, listener, *, work=lambda _: None, written=0):
    """Return how many running tasks move when the third and fourth member join, and it leaves.

    Args:
        group: without members.
        listener: makes that of a member.
        work: done after each rebalance.
        written: records that the first two members write to each changelog.
    """
    for name in ("one", "two"):
        group.join(name, listener())
        work(group)
    assert group.loads() == [6, 6]
    group.end += written
    found = []
    for name in ("three", "four"):
        found.append(len(group.join(name, listener())))
        work(group)
    before = {task for task, owner in group.owners().items() if owner == "four"}
    return (*found, len(group.leave("four") - before))


@PROTOCOLS
@STATES
@pytest.mark.parametrize("listener", [RunningTasks, TasksListener, Restoring, lambda: None])
def test_confluent_kafka_go_622_a_listener_that_restores_nothing_costs_no_moves(
    listener, lag, end, protocol
):
    group = Group(end=end, acceptable_recovery_lag=lag, rebalance_protocol=protocol)
    assert moved(group, listener) == (4, 3, 0)
    assert group.loads() == [4, 4, 4]


@PROTOCOLS
@STATES
def test_confluent_kafka_go_622_a_loop_that_names_restored_tasks_costs_no_moves(lag, end, protocol):
    group = Group(end=end, acceptable_recovery_lag=lag, rebalance_protocol=protocol)
    assert moved(group, RunningTasks, work=works_through) == (4, 3, 0)


@pytest.mark.parametrize("listener", [RunningTasks, TasksListener, Restoring])
def test_above_the_lag_tasks_wait_for_copies_and_the_log_says_what_the_listener_lacks(
    listener, caplog, monkeypatch
):
    minutes = count(1, 11)  # the probing interval is ten minutes
    monkeypatch.setattr(driver, "_now_ms", lambda: next(minutes) * 60_000)
    group = Group(acceptable_recovery_lag=0)
    assert moved(group, listener, written=300) == (0, 0, 0)
    for _ in range(2):
        group.rebalance()
    process_id = group.members["three"].member.identity.process_id
    assert f"wait for client three ({process_id}), which runs 0 of its share" in caplog.text
    assert "check that the listener on three" in caplog.text
    assert "reports task_offsets" in caplog.text


def test_rebalances_of_a_routine_roll_warn_of_no_copy(caplog, monkeypatch):
    seconds = count(1_000, 2)
    monkeypatch.setattr(driver, "_now_ms", lambda: next(seconds) * 1_000)
    group = Group(acceptable_recovery_lag=0)
    assert moved(group, RunningTasks, written=300) == (0, 0, 0)
    for _ in range(100):
        group.rebalance()
    assert "no progress" not in caplog.text


@PROTOCOLS
@pytest.mark.parametrize("work", [lambda _: None, works_through])
def test_a_listener_that_reports_offsets_runs_its_tasks_with_and_without_working(protocol, work):
    group = Group(end=300, acceptable_recovery_lag=0, rebalance_protocol=protocol)
    assert moved(group, Offsets, work=work) == (4, 3, 0)
    work(group)
    running = group.owners()
    group.rebalance()
    assert {group.wrote[name][task] for task, name in running.items()} == {RUNNING}
