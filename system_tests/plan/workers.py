"""Simulations on all cores, with their progress."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing import get_context
from os import cpu_count
from typing import Final, TypeVar

from system_tests.processes import can_fork
from system_tests.sim import leave_interrupts_to_the_parent

_WORTH_A_POOL: Final = 60  # bounced members; below, starting processes takes longer
_TICK_S: Final = 1.0
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


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
    """
    workers = min(cpu_count() or 1, max(1, len(jobs)))
    if len(jobs) * size < _WORTH_A_POOL:
        for job in jobs:
            yield run(job)
            progress(1)
        return
    context = get_context("fork" if can_fork() else "spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=leave_interrupts_to_the_parent
    ) as pool:
        waiting = [pool.submit(run, job) for job in jobs]
        try:
            for future in waiting:
                while not future.done():
                    wait((future,), timeout=_TICK_S)
                    progress(0)
                yield future.result()
                progress(1)
        finally:
            for future in waiting:
                future.cancel()
