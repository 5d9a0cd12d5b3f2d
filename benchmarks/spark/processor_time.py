"""Processor time of a command with all its descendants.

Spark's Python workers ignore SIGCHLD, so that their time is lost for `getrusage`: it is read from
/proc while they run. A process loses at most what it does within the last period.
"""

import ctypes
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PERIOD_S = 0.05
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def processor_times() -> Iterator[dict[int, float]]:
    """Yield process id -> seconds of each descendant that begins within the block.

    The mapping is complete when the block has ended. Processes that lose their parents become
    children of this one, as otherwise they would not be found.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    before, seen, ended = set(descendants()), {}, threading.Event()

    def sample() -> None:
        while not ended.wait(PERIOD_S):
            seen.update({n: s for n, s in descendants().items() if n not in before})

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield seen
    finally:
        ended.set()
        sampler.join()


def descendants() -> Mapping[int, float]:
    """Process id -> processor seconds of all descendants of this process."""
    parents, seconds = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        number = int(folder.name)
        parents[number] = int(fields[1])
        seconds[number] = (int(fields[11]) + int(fields[12])) / _TICKS
    return {n: seconds[n] for n in parents if _is_below(n, parents)}


def _is_below(number: int, parents: Mapping[int, int]) -> bool:
    """Whether a process descends from this one."""
    above = parents[number]
    while above in parents and above != os.getpid():
        above = parents[above]
    return above == os.getpid()
