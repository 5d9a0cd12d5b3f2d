"""All figures of the assignor in one table, beside Kafka, kafka-python and a Faust-like bound.

    python -m benchmarks.assign [--problems FOLDER] [--random N] [--quick] [--strategy NAME]

FOLDER holds `open` and `scale`, each with problems.jsonl and java_metrics.json (or .gz). By default
it is a folder beside the checkout; if there is none, the sample of the tests is used and its goals
are not checked. Java's figures and times come from the folder; on random groups the port of Kafka's
assignor replaces Java. Exit status 1: a goal is missed.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Column, Table

from assignor import read_problem, sticky
from assignor.placement import find_strategy
from benchmarks.assign import speed
from benchmarks.assign.bounds import least_handoffs, limits
from benchmarks.assign.oracles import oracles, port
from benchmarks.assign.peers import faust_like, kafka_python_sticky
from benchmarks.assign.problem_sets import SAMPLE, beside, lines, stored
from benchmarks.assign.quality import play_all
from benchmarks.assign.random_groups import random_problem
from benchmarks.assign.reasons import why_above, why_over
from benchmarks.rows import Row, record, shown

SUMS = ("rounds", "handoffs", "restores", "stateless_moves", "cold")
TITLES = {"handoffs": "hand-offs", "stateless_moves": "stateless moves", "cold": "cold starts"}
GOALS = {"rounds": 0.3, "handoffs": 0.07, "restores": 0.5, "stateless_moves": 0.03, "cold": 1.0}
WHY_RANDOM = {
    "rounds": "such small groups need few rounds with HA; moves and warm-ups need rounds here",
    "handoffs": "more than that is unavoidable, as the row below says",
    "stateless_moves": "clients that join or leave always move a share of the few tasks",
}
PER_PROBLEM = ("rounds", "handoffs", "restores")
PEERS = ("Java HA", "Java sticky", "kafka-python", "Faust-like")


class Report:
    """The rows of the table, and the goals that were missed."""

    def __init__(self):
        self.rows, self.missed, self.about = [], [], ""

    def part(self, title, about=""):
        """Begin a section; `about` distinguishes its figures from equal names elsewhere."""
        self.rows.append((title,))
        self.about = about

    def row(self, figure, goal, ours, peers=(), *, good, why=""):
        """Add a figure; `good` is None if it has no goal, `why` explains a missed goal."""
        row = Row(
            part="assignor",
            name=f"{figure.strip()} ({self.about})" if self.about else figure.strip(),
            goal=goal,
            measured=shown(ours) + (f", HA {shown(peers[0])}" if "HA" in goal and peers else ""),
            met=None if good is None else bool(good),
        )
        record(row)
        cells = [*map(shown, peers), *[""] * (len(PEERS) - len(peers))]
        self.rows.append((figure, goal, shown(ours), *cells, row.mark))
        if good is False:
            self.missed.append(f"{figure.strip()}: {why or 'no reason known'}")

    def table(self):
        columns = [
            Column(title, no_wrap=True) for title in ("figure", "goal", "ours", *PEERS, "met")
        ]
        table = Table(*columns, title="assignment")
        for column in table.columns[2:-1]:
            column.justify = "right"
        for row in self.rows:
            if len(row) == 1:
                table.add_section()
                table.add_row(f"[bold]{row[0]}[/bold]")
            else:
                table.add_row(*row)
        return table


def total(figures, names, key):
    known = [figures[name][key] for name in names if name in figures]
    return sum(known) if len(known) == len(names) else "-"


def quality(report, problems, kafka, strategy, *, is_whole):
    """Add totals over the problems that both settle; return exceptions problem by problem.

    The goals are for a whole set; the figures of a sample are not checked.
    """
    own_figures = play_all(problems, strategy)
    java, java_sticky = kafka["high_availability"], kafka["sticky"]
    peers = [play_all(problems, peer) for peer in (kafka_python_sticky, faust_like)]
    both = [
        n for n in own_figures if n in java and java[n]["converged"] and own_figures[n]["converged"]
    ]
    report.part(
        f"until settled, {len(both)} problems that Java HA settles too",
        "open set" if is_whole else "sample",
    )
    least = limits(problems, set(both), strategy, total(java, both, "cold"))
    for key in SUMS:
        ours, kafkas = total(own_figures, both, key), total(java, both, key)
        others = [total(figures, both, key) for figures in (java_sticky, *peers)]
        goal = "<= HA, aim 0" if key == "cold" else f"<= {GOALS[key]} x HA"
        good = ours <= GOALS[key] * kafkas if is_whole else None
        name = TITLES.get(key, key)
        report.row(name, goal, ours, [kafkas, *others], good=good, why=least.why.get(key))
        if key == "handoffs" and others[0] != "-":
            goal = "<= Java sticky"
            why = f"{least.why['handoffs']}; Java sticky starts tasks cold"
            report.row("hand-offs", goal, ours, [kafkas, *others], good=ours <= others[0], why=why)
    loads = [
        float(np.mean([f[n]["peak_load"] for n in both])) if all(n in f for n in both) else "-"
        for f in (own_figures, java, java_sticky, *peers)
    ]
    good, why = loads[0] <= 1.2 if is_whole else None, least.why["peak_load"]
    report.row("peak load, mean", "<= 1.2", loads[0], loads[1:], good=good, why=why)
    for name, value in least.rows:
        report.row(name, "", value, good=None)
    wrong = sum(bool(f["invalid"]) or not f["converged"] for f in own_figures.values())
    report.row(f"endless or invalid, of {len(own_figures)}", "0", wrong, good=not wrong)
    above_share(
        report, own_figures, play_all(problems, find_strategy("kafka_high_availability")), peers
    )
    times = [sum(f[n]["millis"] for n in both) for f in (own_figures, *peers)]
    java_ms = [
        sum(f[n].get("millis_total", 0) for n in both) if all(n in f for n in both) else "-"
        for f in (java, java_sticky)
    ]
    shown_ms = [round(v) if v != "-" else v for v in (*java_ms, *times[1:])]
    report.row("all assign calls, ms", "", round(times[0]), shown_ms, good=None)
    for key in ("handoffs", "restores"):
        least = total(own_figures, both, f"{key}_unavoidable")
        report.row(f"  {TITLES.get(key, key)} that cannot be avoided", "", least, good=None)
    return per_problem(report, {d["name"]: d for d in problems}, own_figures, java, both)


def above_share(report, own_figures, kafka, others=()):
    """Add the stateful tasks above their client's share at the end; `kafka` is the port."""
    ours, kafkas, *rest = (
        sum(f[n]["final"]["above_share"] for n in own_figures)
        for f in (own_figures, kafka, *others)
    )
    cells = [kafkas, "-", *rest] if others else [kafkas]
    report.row("tasks above a client's share", "<= HA", ours, cells, good=ours <= kafkas)


def per_problem(report, problems, own_figures, java, both):
    exceptions = [
        f"{n}: {key} {own_figures[n][key]} against HA's {java[n][key]}"
        for n in both
        for key in PER_PROBLEM
        if own_figures[n][key] > java[n][key]
    ]
    named = {line.partition(":")[0] for line in exceptions}
    share = 1 - len(named) / len(both)
    report.row("problems never above HA", ">= 97 %", f"{100 * share:.1f} %", good=share >= 0.97)
    final = {n: own_figures[n]["final"] for n in both}
    diff = max(f["stateful_thread_diff"] for f in final.values())
    report.row("threads, most less fewest", "<= 1", diff, good=diff <= 1)
    free = {n: f for n, f in final.items() if f["is_free"] and f["failover_worst"]}
    over = [n for n, f in free.items() if f["failover_worst"] > max(1.2, f["failover_best"] + 1e-3)]
    exceptions += [f"{n}: failover {free[n]['failover_worst']}; {why_over(free[n])}" for n in over]
    mean = float(np.mean([f["failover_worst"] for f in free.values()])) if free else 0.0
    report.row(
        f"failover overload, mean {mean:.2f}",
        "0 over 1.2 or best",
        len(over),
        good=not over,
        why="each group is listed with its reason above",
    )
    for key in ("active_cross_rack", "standby_cross_rack"):
        known = [n for n in both if "final" in java[n]]
        above = [n for n in known if final[n][key] > java[n]["final"][key]]
        ours = sum(final[n][key] for n in known)
        kafkas = sum(java[n]["final"][key] for n in known)
        goal, name = "never above HA", f"{key.replace('_', ' ')}, above HA in {len(above)}"
        why = "each is listed with its reason above"
        report.row(name, goal, ours, [kafkas], good=not above if known else None, why=why)
        exceptions += [
            f"{n}: {key} {final[n][key]} against HA's {java[n]['final'][key]}; "
            + why_above(problems[n], key, final[n], java[n]["final"])
            for n in above
        ]
    for key in ("rack_shortfall", "tag_shortfall"):
        ours = sum(f[key] for f in final.values())
        report.row(key.replace("_", " "), "0", ours, good=ours == 0)
    return exceptions


def random_groups(report, count, strategy):
    """Add figures of random groups; the port of Kafka's assignor replaces Java."""
    problems = [random_problem(seed) for seed in range(count)]
    port = find_strategy("kafka_high_availability")
    others = (port, sticky, kafka_python_sticky, faust_like)
    own_figures, kafka, *rest = (play_all(problems, played) for played in (strategy, *others))
    both = [n for n in own_figures if kafka[n]["converged"] and own_figures[n]["converged"]]
    report.part(f"{count} random groups; Java HA: the port; Java sticky: ours", "random")
    for key in SUMS:
        ours, kafkas = total(own_figures, both, key), total(kafka, both, key)
        goal = "<= HA, aim 0" if key == "cold" else f"<= {GOALS[key]} x HA"
        cells = [kafkas, *(total(figures, both, key) for figures in rest)]
        name, good = TITLES.get(key, key), ours <= GOALS[key] * kafkas
        report.row(name, goal, ours, cells, good=good, why=WHY_RANDOM.get(key))
    first = [read_problem(data).state for data in problems if data["name"] in both]
    least = sum(map(least_handoffs, first))
    report.row("  least hand-offs with nothing cold", "", least, good=None)
    for key in ("handoffs", "restores"):
        least = total(own_figures, both, f"{key}_unavoidable")
        report.row(f"  {TITLES.get(key, key)} that cannot be avoided", "", least, good=None)
    worse = {
        n: ", ".join(
            f"{key} {own_figures[n][key]} against HA's {kafka[n][key]}"
            for key in PER_PROBLEM
            if own_figures[n][key] > kafka[n][key]
        )
        for n in both
    }
    worse = {n: figures_above for n, figures_above in worse.items() if figures_above}
    share = 1 - len(worse) / len(both)
    report.row("problems never above HA", ">= 97 %", f"{100 * share:.1f} %", good=share >= 0.97)
    above_share(report, own_figures, kafka)
    wrong = sum(bool(f["invalid"]) or not f["converged"] for f in own_figures.values())
    report.row("endless or invalid", "0", wrong, good=not wrong)
    diff = max(own_figures[n]["final"]["stateful_thread_diff"] for n in both)
    report.row("threads, most less fewest", "<= 1", diff, good=diff <= 1)
    return [f"{n}: {figures_above}" for n, figures_above in worse.items()]


def java_times(java, name):
    """Stored milliseconds of Java's call, cold / warm."""
    both = (java.get(name, {}).get(key) for key in ("cold_millis", "millis_min"))
    return " / ".join("-" if ms is None else f"{ms:,.0f}" for ms in both)


def times(report, folder, strategy):
    """Add the times of the scale set beside Java's stored times."""
    metrics = json.loads((folder / "java_metrics.json").read_text(encoding="utf-8"))
    java = metrics["high_availability"]
    problems = lines(folder / "problems.jsonl")
    found = speed.scale(problems, strategy)
    report.part("scale set, ms a call; Java: stored, cold / warm")
    for kind, goal in (("fresh", 500), ("second", 100), ("join", None), ("leave", None)):
        own = {n: v[0] for n, v in found.items() if n.endswith(kind)}
        slowest = max(own, key=own.get)
        state = read_problem(next(d for d in problems if d["name"] == slowest)).state
        peers = (kafka_python_sticky, faust_like)
        spent = [1000 * speed.seconds(lambda p=peer, s=state: p(s)) for peer in peers]
        own_sticky = java_times(metrics["sticky"], slowest)
        cells = [java_times(java, slowest), own_sticky, *(round(ms, 1) for ms in spent)]
        goal_text = f"< {goal}" if goal else ""
        good = own[slowest] < goal if goal else None
        report.row(
            f"slowest {kind}: {slowest}", goal_text, round(own[slowest], 1), cells, good=good
        )
    for data in problems:
        if "-second" in data["name"] or data["name"].startswith("rack"):
            name = data["name"]
            report.row(name, "", round(found[name][0], 1), [java_times(java, name)], good=None)
    known = [n for n in found if java.get(n, {}).get("cold_millis")]
    least = min(known, key=lambda n: java[n]["cold_millis"] / found[n][0])
    ratio = java[least]["cold_millis"] / found[least][0]
    report.row(f"cold Java / ours, least: {least}", ">= 3 x", ratio, good=ratio >= 3)
    slow = [n for n in known if (java[n]["millis_min"] or 0) > 20]
    least = min(slow, key=lambda n: java[n]["millis_min"] / found[n][1])
    ratio = java[least]["millis_min"] / found[least][1]
    report.row(f"warm Java / ours, least: {least}", ">= 1 x", ratio, good=ratio >= 1)
    rack = [n for n in known if n.startswith("rack-400x40")]
    if rack:
        ratio = min(java[n]["cold_millis"] / found[n][0] for n in rack)
        report.row("rack-aware 400 x 40, cold Java / ours", ">= 1,000 x", ratio, good=ratio >= 1000)


def beyond(report, problems, strategy):
    """Add figures of larger groups, threads, import time and determinism."""
    report.part("beyond")
    big = speed.in_its_own_process("million")
    report.row(
        "1,000,000 x 50,000 x 6 racks: optimum, s", "< 1.5", big["rack_s"], good=big["rack_s"] < 1.5
    )
    report.row("  whole assignment, s", "< 15", big["whole_s"], good=big["whole_s"] < 15)
    report.row("  memory, GiB", "< 1.5", big["gib"], good=big["gib"] < 1.5)
    steady = speed.steady()
    good = steady["assign_s"] <= steady["codec_s"]
    goal = f"<= codec, {steady['codec_s']:.2f}"
    report.row("100,000 x 10,000 steady, s", goal, steady["assign_s"], good=good)
    dealt = 1000 * speed.threads()
    report.row("100,000 tasks to threads, ms", "< 50", dealt, good=dealt < 50)
    took = speed.import_seconds()
    report.row("from assignor import Topology, s", "< 0.3", took, good=took < 0.3)
    differ = speed.is_deterministic(problems, strategy)
    report.row("answers that shuffled input changes", "0", len(differ), good=not differ)
    moved = speed.moved_by_a_join()
    report.row("tasks that a join moves, of T / C", "<= 1", moved, good=moved <= 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=Path, default=beside())
    parser.add_argument("--random", type=int, default=2_000, help="random groups")
    parser.add_argument("--quick", action="store_true", help="leave the long parts out")
    parser.add_argument("--strategy", default="high_availability")
    options = parser.parse_args()
    strategy, report = find_strategy(options.strategy), Report()
    sets = options.problems
    if sets is not None and not (sets / "open").is_dir():
        parser.error(f"{sets} has no folder open; give one that holds the sets open and scale")
    folder = None if sets is None else sets / "open"
    problems = lines(folder / "problems.jsonl" if folder else SAMPLE)
    exceptions = quality(
        report, problems, stored(folder, problems), strategy, is_whole=folder is not None
    )
    if options.random:
        exceptions += random_groups(report, options.random, strategy)
    if folder:
        port(report, folder)
    if not options.quick:
        oracles(report)
    if sets is not None and (sets / "scale").is_dir():
        times(report, sets / "scale", strategy)
    if not options.quick:
        beyond(report, problems, strategy)
    console = Console(width=160)
    console.print(report.table())
    for line in exceptions:
        console.print(f"  exception: {line}", highlight=False)
    source = folder or "the sample of the tests, without the marks of the whole set"
    for line in report.missed:
        console.print(f"  goal missed: {line}", highlight=False)
    console.print(f"set: {source}; {len(report.missed)} goals missed", highlight=False)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
