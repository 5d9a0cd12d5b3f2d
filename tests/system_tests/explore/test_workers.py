"""A search in several processes has the same findings, in the same order, as in one process."""

import os
import signal

import pytest

from assignor import workers
from assignor.workers import WorkerLostError
from system_tests.explore import Bounds, expansion, search
from system_tests.explore.search import Search, explore
from system_tests.sim import BounceOptions, plan_bounce

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def plan_of(old, new):
    return plan_bounce(BounceOptions(old=old, new=new, force=True))


@pytest.fixture(autouse=True)
def early(monkeypatch):
    """Fork as soon as a few states wait."""
    monkeypatch.setattr(search, "_WORTH_WORKERS", 4)
    for module in (search, workers):
        monkeypatch.setattr(module, "can_fork", lambda: True)
    forked = []
    start = search.Workers

    def counted(*arguments):
        forked.append(start(*arguments))
        return forked[-1]

    monkeypatch.setattr(search, "Workers", counted)
    return forked


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("old", "new", "bounds", "count"),
    [
        ("2.0.1", "2.3.0", Bounds(members=2, partitions=4, more_states=300), 2),
        ("2.3.0", "3.9.1", Bounds(members=2, partitions=4, max_states=500), 3),
        ("3.3.1", "3.9.1", Bounds(members=3, crashes=0, max_states=400), 2),
        ("3.9.1", "native", Bounds(members=2, partitions=4, crashes=0), 3),
    ],
)
def test_findings_do_not_depend_on_the_number_of_workers(old, new, bounds, count, early):
    alone = explore(plan_of(old, new), bounds)
    assert not early
    assert explore(plan_of(old, new), bounds, workers=count) == alone
    assert len(early) == 1


def test_a_search_without_forks_takes_no_workers(monkeypatch, early):
    monkeypatch.setattr(search, "can_fork", lambda: False)
    bounds = Bounds(members=2, partitions=4, max_states=100)
    assert explore(plan_of("3.9.1", "native"), bounds, workers=4).states == 101
    assert not early


@pytest.mark.usefixtures("clock")
def test_an_error_in_a_worker_is_raised_in_the_parent(monkeypatch, early):
    parent, take = os.getpid(), expansion.take

    def fails(node, plan, move, **more):
        if early or os.getpid() != parent:
            raise ZeroDivisionError(move.kind)
        return take(node, plan, move, **more)

    monkeypatch.setattr(expansion, "take", fails)
    monkeypatch.setattr(Search, "_node", lambda found, _: found.first)
    with pytest.raises(ZeroDivisionError):
        explore(plan_of("3.9.1", "native"), Bounds(members=2, partitions=4), workers=2)


@pytest.mark.usefixtures("alone")
def test_a_worker_that_is_killed_ends_the_search_with_a_sentence(monkeypatch, early):
    def kills():
        if early:
            os.kill(early[0]._workers[1]._process.pid, signal.SIGKILL)
        return False

    sentence = "worker process 2 of 2 ended early with status -9; if memory ran out"
    with pytest.raises(WorkerLostError, match=sentence):
        explore(
            plan_of("3.9.1", "native"),
            Bounds(members=2, partitions=4),
            workers=2,
            is_out_of_time=kills,
        )
