"""Worker processes: results, errors, and the end of a worker or of the pool."""

import errno
import os
import signal
import threading
import time
from multiprocessing import get_context

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
    return signal.getsignal(signal.SIGINT)


def ends(number):
    if number == 3:
        os._exit(5)
    return number


def sleeps(_):
    time.sleep(3600)


def test_results_come_in_the_order_of_their_jobs(method):
    found = list(results_of(doubled, range(10, 90), workers=2))
    assert [result for result, _ in found] == [2 * job for job in range(10, 90)]
    assert os.getpid() not in {pid for _, pid in found}


def test_one_worker_or_one_job_runs_in_this_process():
    for jobs, count in (([1, 2], 1), ([1], 8)):
        assert {pid for _, pid in results_of(doubled, jobs, workers=count)} == {os.getpid()}
    assert list(results_of(doubled, [], workers=2)) == []


def test_an_error_is_raised_here_with_its_traceback(method):
    with pytest.raises(ValueError, match="seven") as caught:
        list(results_of(doubled, range(10), workers=2))
    assert "in doubled" in "".join(caught.value.__notes__)


def test_a_worker_never_sees_an_interrupt(method):
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    found = list(results_of(disposition, range(2), workers=2))
    assert found == [signal.SIG_IGN] * 2
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


def test_workers_end_if_another_one_cannot_be_started(monkeypatch):
    started = []

    def start(process):
        if started:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        started.append(process)
        real_start(process)

    monkeypatch.setattr(workers, "can_fork", lambda: True)
    kind = get_context("fork").Process
    real_start = kind.start
    monkeypatch.setattr(kind, "start", start)
    with pytest.raises(ChildProcessError, match="no file descriptors left for 2 worker processes"):
        list(results_of(doubled, range(4), workers=2))
    assert started[0].exitcode == -signal.SIGKILL


def test_the_owner_hears_when_no_job_is_done_for_a_second():
    ticks = []
    found = results_of(time.sleep, [3, 0], workers=2, tick=lambda: ticks.append(1))
    assert list(found) == [None, None]
    assert ticks
