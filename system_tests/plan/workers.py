"""Simulations on all cores, with their progress."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar

from assignor.workers import results_of

_WORTH_WORKERS: Final = 60  # bounced members; below, starting processes takes longer
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def worker_count(jobs: int, size: int) -> int:
    """Return how many processes run so many jobs, each with so many members: 1 for few of them."""
    return 1 if jobs * size < _WORTH_WORKERS else min(os.cpu_count() or 1, jobs)


def run_jobs(
    run: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    *,
    size: int,
    progress: Callable[[int], object],
) -> Iterator[_Result]:
    """Yield the result of each job, in order.

    Args:
        run: a function that can be pickled.
        jobs: its arguments.
        size: members that a job simulates; many of them are worth processes of their own.
        progress: called with 1 after each job, and with 0 every second that one takes.

    Raises:
        WorkerLostError: a process ended early.
    """
    workers = worker_count(len(jobs), size)
    for result in results_of(run, jobs, workers=workers, tick=partial(progress, 0)):
        yield result
        progress(1)
