"""Quality and speed of assignment, beside Kafka's own figures where a set brings them.

Run by hand: python benchmarks/bench_assign.py [FOLDER...] [--strategy NAME]

A folder holds problems.jsonl (or .jsonl.gz) and, where Java was run, java_metrics.json; one with
"scale" in its name is timed, others are played to the end. Without a folder the sample of the tests
is played, for which the goals, set for a whole set, are only a hint. Exit status 1: one is missed.
"""

import argparse
import gzip
import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from assignor import LagMemory, find_strategy, read_problem, validate
from assignor.problem_events import play_problem
from assignor.simulate import totals

SAMPLE = Path(__file__).resolve().parent.parent / "tests/assignor/problems/open_sample.jsonl.gz"
SUMS = ("rounds", "handoffs", "restores", "stateless_moves", "cold")
# key -> most that ours may be of Kafka's high_availability
GOALS = {"rounds": 0.3, "handoffs": 0.06, "restores": 0.5, "stateless_moves": 0.03, "cold": 1.0}
PEAK_LOAD_MEAN = 1.2
FRESH_MS, SECOND_MS = 500, 100


def lines(path):
    found = path if path.exists() else path.with_name(path.name + ".gz")
    data = found.read_bytes()
    return (gzip.decompress(data) if found.suffix == ".gz" else data).splitlines()


def play_all(problems, strategy):
    """Name -> totals over all rounds, with the milliseconds of the whole play."""
    played = {}
    for data in problems:
        problem = read_problem(data, memory=LagMemory())
        started = time.perf_counter()
        rounds = [one for _, part in play_problem(problem, strategy) for one in part]
        wrong = [w for one in rounds for w in validate(one.state, one.assignment)]
        played[data["name"]] = {
            **totals(rounds),
            "settled": not rounds[-1].assignment.followup,
            "wrong": wrong,
            "ms": (time.perf_counter() - started) * 1000,
        }
    return played


def kafka_figures(folder, problems):
    """Name -> Kafka's figures, from the folder or from the problems' own notes."""
    metrics = folder / "java_metrics.json"
    if metrics.exists():
        return json.loads(metrics.read_text())["problems"]["high_availability"]
    return {d["name"]: d["note"]["kafka"] for d in problems if "note" in d}


def quality(title, played, kafka):
    """Print ours beside Kafka's; False when a goal is missed."""
    both = [n for n in played if n in kafka and kafka[n]["converged"]]
    table = Table("figure", "ours", "Kafka", "ratio", "goal", "met", title=title)
    is_met = True
    for key in SUMS:
        mine, theirs = (sum(side[n][key] for n in both) for side in (played, kafka))
        ratio = mine / theirs if theirs else float(mine > 0)
        good = ratio <= GOALS[key]
        is_met &= good
        table.add_row(
            key, str(mine), str(theirs), f"{ratio:.3f}", f"{GOALS[key]}", "yes" if good else "NO"
        )
    mine, theirs = (sum(side[n]["peak_load"] for n in both) / len(both) for side in (played, kafka))
    good = mine <= PEAK_LOAD_MEAN
    table.add_row(
        "peak load, mean",
        f"{mine:.3f}",
        f"{theirs:.3f}",
        "",
        f"{PEAK_LOAD_MEAN}",
        "yes" if good else "NO",
    )
    worse = [
        f"{n}: {k} {played[n][k]} against {kafka[n][k]}"
        for n in both
        for k in ("rounds", "handoffs", "restores")
        if played[n][k] > kafka[n][k]
    ]
    endless = [n for n in played if not played[n]["settled"]]
    wrong = [n for n in played if played[n]["wrong"]]
    console = Console(width=100)
    console.print(table)
    console.print(
        f"{len(both)} problems; worse than Kafka in {len(worse)} figures; "
        f"{len(endless)} never settled; {len(wrong)} invalid"
    )
    for line in (*worse, *endless, *wrong):
        console.print(f"  {line}")
    return is_met and good and not endless and not wrong


def speed(folder, strategy, repeat=3):
    """One call of each problem of a scale set, first and best; False when a goal is missed."""
    kafka = json.loads("".join(line.decode() for line in lines(folder / "java_metrics.json")))
    table = Table(
        "problem", "first ms", "best ms", "Kafka cold", "Kafka warm", "met", title="speed"
    )
    is_met = True
    for line in lines(folder / "problems.jsonl"):
        data = json.loads(line)
        state = read_problem(data).state
        times = []
        for _ in range(repeat):
            started = time.perf_counter()
            strategy(state)
            times.append((time.perf_counter() - started) * 1000)
        theirs = kafka["high_availability"].get(data["name"], {})
        cold, warm = theirs.get("cold_millis"), theirs.get("millis_min")
        most = SECOND_MS if data["name"].endswith("-second") else FRESH_MS
        good = times[0] < most and (cold is None or times[0] * 3 <= cold)
        is_met &= good
        shown = [f"{value:.1f}" if value else "" for value in (times[0], min(times), cold, warm)]
        table.add_row(data["name"], *shown, "yes" if good else "NO")
    Console(width=100).print(table)
    return is_met


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--strategy", default="high_availability")
    options = parser.parse_args()
    strategy = find_strategy(options.strategy)
    results = []
    for folder in options.folders or [None]:
        if folder is not None and "scale" in folder.name:
            results.append(speed(folder, strategy))
            continue
        path = SAMPLE if folder is None else folder / "problems.jsonl"
        problems = [json.loads(line) for line in lines(path)]
        played = play_all(problems, strategy)
        kafka = kafka_figures(path.parent, problems)
        results.append(quality(f"{options.strategy} on {path.parent.name}", played, kafka))
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
