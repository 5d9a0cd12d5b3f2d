"""Lower bounds of any assignor: least hand-offs and least peak load, by flows and a knapsack.

    python -m benchmarks.assign.bounds [--problems FOLDER]

Both bounds are for the groups as the strategy's own rounds leave them at each event. They assume
that a task runs on a caught-up client if there is one ("nothing cold"), that task counts of threads
finally differ by at most one, and that with a rack strategy the actives finally have least cost.

*Hand-offs*: a task that stays on its owner needs none. If the owner is behind and another client is
caught up, the task moves once, or twice to end elsewhere. A task without an owner starts on a
caught-up client and may move from there. *Peak load*: of the busiest thread right after an event,
before any restore; each allowed cold start lets one more task leave a caught-up client.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ortools.graph.python import max_flow, min_cost_flow
from rich.console import Console
from rich.table import Table

from assignor import read_problem
from assignor.placement import find_strategy
from assignor.placement.bands import thread_bands
from assignor.placement.racks.optimise import rack_costs
from assignor.problems import LagMemory
from assignor.problems.events import play_problem
from benchmarks.assign.problem_sets import SAMPLE, beside, lines, stored

_MUST = 10**7


def after_events(data, strategy):
    """(group at each change of its clients, hand-offs in total, peak load)."""
    seen, found, handoffs, peak = None, [], 0, 0.0
    for _, part in play_problem(read_problem(data, memory=LagMemory()), strategy):
        for round_ in part:
            if round_.state.clients != seen or round_ is part[0]:
                found.append(round_.state)
                seen = round_.state.clients
            handoffs += round_.moves.handoffs
            peak = max(peak, round_.peak_load)
    return found, handoffs, peak


def ready_clients(state, task):
    """Clients with threads that are caught up on a task."""
    lag = dict(state.copies(task))
    limit, small = state.config.acceptable_recovery_lag, bool(state.starts_anywhere()[task])
    usable = np.flatnonzero(state.capacity() > 0).tolist()
    return {c for c in usable if (lag[c] <= limit if c in lag else small)}


def crossed(state, task, client):
    """Source partitions of the task without a replica in the client's rack."""
    if state.config.rack_aware_assignment_strategy == "none" or state.partition_racks is None:
        return 0
    rack = state.racks[client]
    parts = state.partition_racks[task]
    return sum(1 for racks in parts if rack is not None and racks and rack not in racks)


def least_handoffs(state):
    """Least hand-offs until settled of any assignment that ends with least rack cost."""
    capacity, tasks = state.capacity(), np.flatnonzero(state.stateful).tolist()
    usable, bands = np.flatnonzero(capacity > 0).tolist(), thread_bands(capacity, len(tasks))
    traffic, overlap = rack_costs(state)
    flow, first = min_cost_flow.SimpleMinCostFlow(), len(capacity) + 1
    moves = {}
    for row, task in enumerate(tasks):
        ready, owner = ready_clients(state, task), int(state.owner[task])
        runs = owner in usable
        for client in usable:
            if runs and (owner in ready or not ready):
                count = int(client != owner)
            elif runs:
                count = 2 - (client in ready)
            else:
                count = int(bool(ready) and client not in ready)
            cost = traffic * crossed(state, task, client) + max(overlap, 1) * count
            arc = flow.add_arc_with_capacity_and_unit_cost(first + row, client, 1, cost)
            moves[arc] = count
        flow.set_node_supply(first + row, 1)
    end = len(capacity)
    for client in usable:
        low, high = int(bands.low[client]), int(bands.high[client])
        flow.add_arc_with_capacity_and_unit_cost(client, end, low, -_MUST)
        flow.add_arc_with_capacity_and_unit_cost(client, end, high - low, 0)
    flow.set_node_supply(end, -len(tasks))
    if tasks and flow.solve() != flow.OPTIMAL:
        raise RuntimeError("the flow of least hand-offs has no solution; the bands are wrong")
    return sum(count for arc, count in moves.items() if tasks and flow.flow(arc))


def cold_by_peak(state):
    """Peak load -> least cold starts, from all cold starts down to none."""
    capacity, tasks = state.capacity(), np.flatnonzero(state.stateful).tolist()
    usable = np.flatnonzero(capacity > 0).tolist()
    average = max(1.0, len(tasks) / int(capacity.sum()))
    ready = {task: ready_clients(state, task) for task in tasks}
    bound = [task for task in tasks if ready[task]]
    heights = sorted({n / int(capacity[c]) for c in usable for n in range(len(tasks) + 1)})
    table, low, high = {}, 0, len(heights) - 1
    # From the least height at which all tasks fit up to the one at which nothing is cold.
    while low < high:
        middle = (low + high) // 2
        places = sum(int(heights[middle] * capacity[c] + 1e-9) for c in usable)
        low, high = (low, middle) if places >= len(tasks) else (middle + 1, high)
    for height in heights[low:]:
        cold = len(bound) - _placed(state, bound, ready, usable, height)
        table[height / average] = cold
        if not cold:
            break
    return table


def _placed(state, bound, ready, usable, height):
    """Number of tasks that fit on caught-up clients if no thread has more than `height`."""
    capacity, flow = state.capacity(), max_flow.SimpleMaxFlow()
    clients, first = len(capacity), len(capacity) + 2
    for row, task in enumerate(bound):
        flow.add_arc_with_capacity(clients, first + row, 1)
        for client in ready[task]:
            flow.add_arc_with_capacity(first + row, client, 1)
    for client in usable:
        flow.add_arc_with_capacity(client, clients + 1, int(height * capacity[client] + 1e-9))
    if bound and flow.solve(clients, clients + 1) != flow.OPTIMAL:
        raise RuntimeError("the flow of peak load has no solution")
    return flow.optimal_flow() if bound else 0


def peaks(states):
    """Peak load -> least cold starts, over all events of a problem."""
    tables = [cold_by_peak(state) for state in states]
    found = {}
    for peak in sorted({peak for table in tables for peak in table}):
        if all(any(p <= peak + 1e-9 for p in table) for table in tables):
            found[peak] = sum(min(v for p, v in t.items() if p <= peak + 1e-9) for t in tables)
    return found


def least_mean(tables, cold):
    """The least mean peak load with at most `cold` cold starts in all problems together."""
    best = {0: 0.0}
    for table in tables:
        grown = defaultdict(lambda: float("inf"))
        for used, total in best.items():
            for peak, needed in table.items():
                if used + needed <= cold:
                    grown[used + needed] = min(grown[used + needed], total + peak)
        best = grown
    return min(best.values()) / len(tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Lower bounds as rows (name, value), and a sentence for each figure."""

    rows: tuple[tuple[str, object], ...]
    why: dict[str, str]


def limits(problems, names, strategy, cold):
    """Limits of the problems with these names; `cold` is the number of HA's cold starts."""
    handoffs, tables, at_limit = 0, [], 0
    for data in problems:
        if data["name"] in names:
            states, _, peak = after_events(data, strategy)
            handoffs += sum(map(least_handoffs, states))
            tables.append(peaks(states))
            at_limit += peak <= min(p for p, n in tables[-1].items() if not n) + 1e-3
    none, some = least_mean(tables, 0), least_mean(tables, cold)
    return Limits(
        rows=(
            ("  least hand-offs with nothing cold", handoffs),
            (f"  least peak with nothing cold, ours in {at_limit}", none),
            (f"  least peak with {cold} cold starts, as HA", some),
        ),
        why={
            "handoffs": f"{handoffs} is the least with nothing cold and racks at least cost",
            "peak_load": f"right after an event it is {none:.3f} at best with nothing cold, and "
            f"{some:.3f} with {cold} cold starts",
        },
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=Path, default=beside())
    parser.add_argument("--strategy", default="high_availability")
    options = parser.parse_args()
    folder = None if options.problems is None else options.problems / "open"
    problems = lines(folder / "problems.jsonl" if folder else SAMPLE)
    kafka = stored(folder, problems)["high_availability"]
    table = Table("problem", "hand-offs", "least", "peak load", "least", box=None)
    names = [d["name"] for d in problems if kafka.get(d["name"], {}).get("converged")]
    strategy = find_strategy(options.strategy)
    for data in problems:
        if data["name"] in names:
            states, handoffs, peak = after_events(data, strategy)
            least, found = sum(map(least_handoffs, states)), peaks(states)
            nothing_cold = min(p for p, cold in found.items() if not cold)
            if handoffs > least or peak > nothing_cold + 1e-3:
                cells = (handoffs, least, round(peak, 3), round(nothing_cold, 3))
                table.add_row(data["name"], *map(str, cells))
    console = Console(width=120)
    console.print("problems above a limit", highlight=False)
    console.print(table)
    cold = sum(kafka[name]["cold"] for name in names)
    for name, value in limits(problems, set(names), strategy, cold).rows:
        console.print(f"{name.strip()}: {value:.3f}".replace(".000", ""), highlight=False)


if __name__ == "__main__":
    main()
