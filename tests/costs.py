"""Work of a call in counted calls, CPU cost in units that depend on the machine; waits in ticks."""

import sys
import threading
import time

# One unit is this many rounds of a loop, about 20 ms of an idle core.
ROUNDS = 500_000


def calls_of(work):
    """Calls of Python and C functions during `work()`, on any machine."""
    calls, before = 0, sys.getprofile()

    def counted(_frame, event, _argument):
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def units(seconds):
    """CPU seconds of this process converted to units, measured now."""
    began = time.process_time()
    total = 0
    for number in range(ROUNDS):
        total += number
    return seconds / (time.process_time() - began)


def cost_of(work, *, limit):
    """Cost of `work()` in units, the least of up to three tries; one is enough below `limit`."""
    costs = []
    while len(costs) < 3 and all(cost > limit for cost in costs):
        began = time.process_time()
        work()
        costs.append(units(time.process_time() - began))
    return min(costs)


class Ticks:
    """Counts the seconds of a `with` block as far as this process gets to run.

    A thread sleeps for a tick again and again. On a busy machine each sleep takes longer and counts
    as one tick, so what waits for a timeout takes as many ticks there as on an idle one.
    """

    TICK_S = 0.05

    def __init__(self):
        self._ticks, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._count, name="ticks", daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def seconds(self):
        return self._ticks * self.TICK_S

    def _count(self):
        while not self._ended.wait(self.TICK_S):
            self._ticks += 1
