"""CPU cost of a call, in units that depend on the speed of the machine."""

import time

# One unit is this many rounds of a loop, about 20 ms of an idle core.
ROUNDS = 500_000


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
