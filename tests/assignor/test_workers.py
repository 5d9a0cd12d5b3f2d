"""Worker processes: results, errors, and the end of a worker or of the pool."""

import os
import signal
import threading
import time

import pytest

from assignor import workers
from assignor.workers import WorkerLostError, results_of, worker_pool

pytestmark = [
    pytest.mark.usefixtures("clock"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.fixture(params=["fork", "spawn"])
def method(request, monkeypatch):
    monkeypatch.setattr(workers, "can_fork", lambda: request.param == "fork")


def doubled(number):
    if number == 7:
        raise ValueError("seven")
    return number * 2, os.getpid()


def disposition(_):
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return signal.getsignal(signal.SIGINT), signal.SIGINT in blocked


def ends(number):
    if number == 3:
        os._exit(5)
    return number


def sleeps(_):
    time.sleep(3600)


def test_every_result_comes_with_the_index_of_its_job(method):
    found = dict(results_of(doubled, range(10, 40), workers=2))
    assert {index: result for index, (result, _) in found.items()} == {
        index: 2 * (index + 10) for index in range(30)
    }
    assert os.getpid() not in {pid for _, pid in found.values()}


def test_one_worker_or_one_job_runs_in_this_process():
    for jobs, count in (([1, 2], 1), ([1], 8)):
        assert {pid for _, (_, pid) in results_of(doubled, jobs, workers=count)} == {os.getpid()}
    assert list(results_of(doubled, [], workers=2)) == []


def test_an_error_is_raised_here_with_its_traceback(method):
    with pytest.raises(ValueError, match="seven") as caught:
        list(results_of(doubled, range(10), workers=2))
    assert "in doubled" in "".join(caught.value.__notes__)


def test_a_worker_never_sees_an_interrupt(method):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    found = [result for _, result in results_of(disposition, range(2), workers=2)]
    assert found == [(signal.SIG_IGN, False)] * 2
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_worker_that_ends_early_is_an_error_with_its_status(method):
    with pytest.raises(WorkerLostError, match="of 2 ended early with status 5; if memory ran out"):
        list(results_of(ends, range(10), workers=2))


def test_the_end_of_the_block_ends_workers_that_are_busy(method):
    threads = threading.active_count()
    with worker_pool(2) as submit:
        busy = [submit(sleeps, 1), submit(sleeps, 2), submit(sleeps, 3)]
    assert [isinstance(future.exception(), WorkerLostError) for future in busy[:2]] == [True, True]
    assert busy[2].cancelled()
    assert threading.active_count() == threads


def test_the_owner_hears_when_no_job_is_done_for_a_second():
    ticks = []
    found = results_of(time.sleep, [0, 3], workers=2, tick=lambda: ticks.append(1))
    assert sorted(index for index, _ in found) == [0, 1]
    assert ticks
