"""Costs that `rolling-bounce plan` prints, beside 200 simulated seeds and a bounce of real members.

`python -m benchmarks.plan_costs seeds` compares the ranges of a plan with other seeds.
`python -m benchmarks.plan_costs bounce` bounces three JVM members of Kafka Streams from 3.9.1 to
4.3.1 on a real broker of 3.9 (extra `real`), several times, and compares. A partition pauses from
the stop of its owner, or from when it lost the task, until a running member has the task.
Exit status 1: a figure of the real bounces is outside the predicted range.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from probing import find_release
from system_tests.live.events import StateChanged, TasksChanged
from system_tests.plan import SimulatedGroup, make_plan, step_costs
from system_tests.real import RealBroker, broker_release
from system_tests.support.group import RealGroup

PART = "plan_costs"
FIELDS = ("rebalances", "pause_ms", "longest_pause_ms")
MEMBERS = ("a", "b", "c")
TASKS = 8  # two subtopologies with four partitions each
LIVE = {"session_timeout_ms": 10_000, "leaves_group": False, "heartbeat_interval_ms": 3_000}


def printed_of(ms):
    """A number with two significant digits, as a plan prints it."""
    return float(f"{ms:.2g}")


def share_within(values, low, high):
    """The part of values that lies in a range as it is printed, both ends included."""
    low, high = printed_of(low), printed_of(high)
    return sum(low <= printed_of(value) <= high for value in values) / len(values)


def seeds_row(old, new, number, printed, checked):
    """One step: how many of the other seeds lie within each printed range."""
    row = {"path": f"{old} to {new}", "step": number}
    for field in FIELDS:
        low, high = printed.spread(field)
        values = [getattr(run, field) for run in checked.runs]
        row[field] = [low, printed.usual(field), high, round(share_within(values, low, high), 3)]
    return row


def compare_seeds(count):
    """Print, for three paths, the range of a plan and the share of other seeds within it."""
    for old, new in (("2.3.1", "4.3"), ("2.8", "3.9"), ("3.9.1", "4.3")):
        plan = make_plan(find_release(old), find_release(new))
        group = SimulatedGroup()
        everything = step_costs(plan, group, seeds=group.seeds + count)
        for number, cost in enumerate(everything, 1):
            printed = type(cost)(cost.runs[: group.seeds])
            checked = type(cost)(cost.runs[group.seeds :])
            print(json.dumps(seeds_row(old, new, number, printed, checked)), flush=True)
    return 0


def owners_of(group, began_ms):
    """Task -> (time, gained or lost) of every change, in order, from the reports of all members."""
    changes = []
    for member in group.started:
        held, ready = frozenset(), False
        for report in member.reports:
            before = held if ready else frozenset()
            match report.event:
                case TasksChanged(active_tasks=tasks):
                    held = frozenset(tasks)
                case StateChanged(state=state):
                    ready = state in ("RUNNING", "REBALANCING") and (ready or state == "RUNNING")
            now = held if ready else frozenset()
            changes += [(report.at_ms, task, 1) for task in now - before]
            changes += [(report.at_ms, task, -1) for task in before - now]
    return sorted(change for change in changes if change[0] >= began_ms)


def pauses_of(changes, tasks):
    """Milliseconds for which each task had no owner, one entry for each pause."""
    owners, since, pauses = dict.fromkeys(tasks, 1), {}, []
    for at_ms, task, change in changes:
        owners[task] += change
        if owners[task] == 0:
            since[task] = at_ms
        elif change > 0 and owners[task] == 1 and task in since:
            pauses.append(at_ms - since.pop(task))
    return pauses


def bounce_once(broker):
    """Bounce three real members; returns pauses in ms and the number of rebalances."""
    with (
        tempfile.TemporaryDirectory() as folder,
        RealGroup(
            broker.bootstrap_servers, Path(folder), session_timeout_ms=LIVE["session_timeout_ms"]
        ) as group,
    ):
        config = {name: value for name, value in LIVE.items() if name != "session_timeout_ms"}
        for name in MEMBERS:
            group.start(name, "3.9.1", **config)
        group.settle()
        began_ms = time.monotonic() * 1000
        for name in MEMBERS:
            group.stop(name)
            group.start(name, "4.3.1", **config)
            group.settle()
        tasks = [f"{part}_{number}" for part in range(2) for number in range(TASKS // 2)]
        return pauses_of(owners_of(group, began_ms), tasks)


def compare_bounce(count):
    """Print the prediction for the real group, and what was observed; 1 if outside of it."""
    plan = make_plan(find_release("3.9.1"), find_release("4.3.1"))
    group = SimulatedGroup(partitions=TASKS, session_timeout_ms=LIVE["session_timeout_ms"])
    (cost,) = step_costs(plan, group, seeds=200)
    predicted = {name: [*cost.spread(name), cost.usual(name)] for name in FIELDS[1:]}
    print(json.dumps({"predicted": predicted}), flush=True)
    broker = RealBroker(broker_release("kafka:3.9"))
    broker.start()
    is_within = True
    try:
        for number in range(count):
            pauses = bounce_once(broker)
            seen = {"pause_ms": round(sum(pauses)), "longest_pause_ms": round(max(pauses))}
            within = {
                name: predicted[name][0] <= value <= predicted[name][1]
                for name, value in seen.items()
            }
            is_within &= all(within.values())
            print(json.dumps({"bounce": number, "pauses": len(pauses), **seen, "within": within}))
            sys.stdout.flush()
    finally:
        broker.close()
    return 0 if is_within else 1


def main():
    """Run one comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("seeds", "bounce"))
    parser.add_argument("--count", type=int, help="seeds (200) or bounces (3)")
    given = parser.parse_args()
    if given.part == "seeds":
        return compare_seeds(given.count or 200)
    return compare_bounce(given.count or 3)


if __name__ == "__main__":
    sys.exit(main())
