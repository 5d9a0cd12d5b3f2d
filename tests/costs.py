"""What a piece of work costs, in units that a slow or a busy machine stretches alike."""

import time

# One unit is this many rounds of a loop, about 20 ms of an idle core.
ROUNDS = 500_000


def units(seconds):
    """These seconds of this process, in units as they are at the moment."""
    began = time.process_time()
    total = 0
    for number in range(ROUNDS):
        total += number
    return seconds / (time.process_time() - began)


def cost_of(work, *, limit):
    """What `work` costs in units; tried three times before it is said to be above `limit`."""
    costs = []
    while len(costs) < 3 and all(cost > limit for cost in costs):
        began = time.process_time()
        work()
        costs.append(units(time.process_time() - began))
    return min(costs)
