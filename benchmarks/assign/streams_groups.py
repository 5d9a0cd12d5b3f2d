"""A group of the classic protocol and as a streams group (KIP-1071), in one table.

    python -m benchmarks.assign.streams_groups [FOLDER] [--draws N] [--java]

FOLDER holds the set `open`; by default it is looked for beside the checkout, else the sample of the
tests is played. The first table plays all problems; the second stops and starts all members of each
group that had state, as a move to a streams group does: state stays on disk. Brokers of 4.3 place
it without knowing that. Where loads are equal, ids decide; N other draws of ids give the range.
--java also asks the real class for each problem of the folder, and counts equal answers.
"""

import argparse
import random
import sys
import uuid
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from assignor import read_problem
from assignor.placement import find_strategy
from assignor.placement.streams_groups import assign_members, member_specs
from assignor.problems import play as play_rounds
from assignor.problems import totals
from assignor.problems.measures import records_to_restore
from benchmarks.assign.problem_sets import SAMPLE, beside, lines
from benchmarks.assign.quality import active_records, play_all
from probing import NEWEST_KAFKA
from system_tests.support.jvm import BrokerAssignor

STRATEGIES = ("high_availability", "kafka_high_availability", "kafka_streams_group")
RELEASE = NEWEST_KAFKA
SUMS = {
    "rounds": "rebalances",
    "handoffs": "hand-offs",
    "stateless_moves": "stateless moves",
    "restores": "restores",
    "restored_records": "records to restore",
    "cold": "cold starts",
    "active_records": "records that active tasks restore",
    "active_cross_rack": "partitions read from another rack, active",
    "standby_cross_rack": "partitions read from another rack, standby",
    "rack_shortfall": "racks that copies lack",
    "tag_shortfall": "tag values that copies lack",
    "above_share": "stateful tasks above a client's share",
}
MEANS = {"peak_load": "peak load, mean", "failover_worst": "load after a crash, mean"}


def played(problems, strategy):
    """Figures of each problem played to the end."""
    return {
        name: {**figures, **figures.pop("final")}
        for name, figures in play_all(problems, find_strategy(strategy)).items()
    }


def restarted(problems, strategy):
    """Figures of each group after all members stop and start; their state is on disk, caught up."""
    found = {}
    for data in problems:
        if (read_problem(data).state.owner < 0).all():
            continue
        clients = {name: stopped(client) for name, client in data["clients"].items()}
        state = read_problem({**data, "clients": clients}).state
        rounds = list(play_rounds(state, find_strategy(strategy)))
        found[data["name"]] = {
            **totals(rounds),
            "restored_records": sum(
                records_to_restore(round_.state, round_.assignment)[0] for round_ in rounds
            ),
            "active_records": sum(map(active_records, rounds)),
        }
    return found


def stopped(client):
    """The client when it starts again."""
    lags = {task: 0 if lag == "running" else lag for task, lag in client.get("lags", {}).items()}
    return {**client, "active": [], "standby": [], "lags": lags}


def renamed(data, seed):
    """The problem with other process ids; their members get other ids, too."""
    rng = random.Random(seed)
    new = {name: str(uuid.UUID(int=rng.getrandbits(128))) for name in sorted(all_names(data))}
    changed = {**data, "clients": {new[name]: c for name, c in data["clients"].items()}}
    if "stuck" in data:
        changed["stuck"] = {new[name]: lag for name, lag in data["stuck"].items()}
    if "events" in data:
        changed["events"] = [
            {**event, "clients": with_names(event["clients"], new)} for event in data["events"]
        ]
    return changed


def all_names(data):
    joining = [
        event["clients"] for event in data.get("events", ()) if isinstance(event["clients"], dict)
    ]
    return {name for clients in (data["clients"], *joining) for name in clients}


def with_names(clients, new):
    if isinstance(clients, dict):
        return {new[name]: client for name, client in clients.items()}
    return [new[name] for name in clients]


def stateful_tasks(problems, names):
    states = [read_problem(data).state for data in problems if data["name"] in names]
    return sum(int(state.stateful.sum()) for state in states)


def table(title, problems, figures, draws):
    """One row for each sum or mean that the figures have."""
    made = Table(title=title)
    for column in ("figure", "this project", "Java HA (the port)", "streams group", "other ids"):
        made.add_column(column, justify="left" if column == "figure" else "right", no_wrap=True)
    known = set.intersection(*(set(found) for found in figures.values()))
    settled = [
        name
        for name in sorted(known)
        if all(f[name].get("converged", True) for f in figures.values())
    ]
    for key, label in {**SUMS, **MEANS}.items():
        if key not in next(iter(figures[STRATEGIES[0]].values())):
            continue
        cells = [total(figures[name], settled, key) for name in STRATEGIES]
        others = [total(found, settled, key) for found in draws]
        spread = f"{shown(min(others))} to {shown(max(others))}" if others else ""
        made.add_row(label, *map(shown, cells), spread)
    tasks = stateful_tasks(problems, set(settled))
    made.caption = (
        f"{len(settled)} of {len(known)} groups, which all three settle; "
        f"{tasks:,} stateful tasks at the start"
    )
    return made


def total(figures, names, key):
    values = [figures[name][key] for name in names]
    if key == "failover_worst":
        values = [value for value in values if value]
    return float(np.mean(values)) if key in MEANS else sum(values)


def shown(value):
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}"


def equal_answers(problems):
    """Number of problems that the real class answers as the model, member by member."""
    equal = 0
    with BrokerAssignor(RELEASE) as broker:
        for data in problems:
            state = read_problem(data).state
            chosen = {
                "stateful": [t for t, has in zip(state.tasks, state.stateful, strict=True) if has],
                "stateless": state.tasks,
                "num_standby_replicas": state.config.num_standby_replicas,
            }
            specs = member_specs(state)
            equal += broker.assign_members(specs, **chosen) == assign_members(specs, **chosen)
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=beside())
    parser.add_argument("--draws", type=int, default=5, help="other draws of ids")
    parser.add_argument("--java", action="store_true", help="ask the real class, too")
    options = parser.parse_args()
    console = Console(width=140)
    folder = options.folder
    problems = lines(folder / "open/problems.jsonl" if folder else SAMPLE)
    others = [[renamed(data, seed) for data in problems] for seed in range(options.draws)]
    for title, measure in (
        ("all problems, until settled", played),
        ("all members stop and start", restarted),
    ):
        figures = {name: measure(problems, name) for name in STRATEGIES}
        draws = [measure(other, STRATEGIES[-1]) for other in others]
        console.print(table(title, problems, figures, draws))
    if not options.java:
        return 0
    sets = sorted(folder.glob("*/problems.jsonl*")) if folder else [SAMPLE]
    asked = {path: lines(path) for path in sets}
    equal = {path: equal_answers(given) for path, given in asked.items()}
    for path, count in equal.items():
        console.print(f"{path.parent.name}: {count} of {len(asked[path])} equal to Kafka {RELEASE}")
    return int(any(count < len(asked[path]) for path, count in equal.items()))


if __name__ == "__main__":
    sys.exit(main())
