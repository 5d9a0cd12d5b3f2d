"""Figures of the assignor against exact solvers, and the port of Kafka's assignor against Java."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from assignor import AssignmentConfig, ClientInput, group_state, high_availability, sticky
from assignor.placement import find_strategy
from assignor.problems.files import read_problem, result_of
from assignor.problems.rounds import play, totals
from benchmarks.assign.bounds import least_handoffs
from benchmarks.assign.compare_kafka_port import difference, json_lines
from benchmarks.assign.restore_oracle import compare, small_group
from encoding import TaskId

ROOT = Path(__file__).resolve().parents[2]
GROUPS = 300
_TESTS = "tests/assignor/placement/racks/test_"
ORACLES = (
    f"{_TESTS}optimise.py::test_actives_cost_what_the_full_graph_costs_at_best_a_thousand_times",
    f"{_TESTS}standbys.py::test_one_standby_costs_what_the_full_graph_costs_at_best_a_thousand_times",
)
ORACLES_TWO = (
    f"{_TESTS}standbys.py::test_several_standbys_are_within_two_percent_of_the_best",
    f"{_TESTS}standbys.py::test_several_standbys_of_larger_groups_are_within_two_percent_of_the_best",
)


def oracles(report):
    """Add the figures that tests prove against exact solvers."""
    report.part("against exact optima")
    for figure, goal, tests in (
        ("rack cost, actives and one standby", "= full, 2,300 x", ORACLES),
        ("rack cost, two standbys", "<= 1.02 x best", ORACLES_TWO),
    ):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True)
        report.row(
            figure, goal, "holds" if done.returncode == 0 else "fails", good=not done.returncode
        )
    restores, least, groups, _ = compare(range(GROUPS))
    ratio = restores / least
    figure = f"restores over CP-SAT's least, {groups} small groups"
    report.row(figure, "<= 1.05", ratio, good=ratio <= 1.05)
    fewest = sum(least_handoffs(small_group(seed)) for seed in range(GROUPS))
    ours = sum(
        totals(list(play(small_group(seed), high_availability)))["handoffs"]
        for seed in range(GROUPS)
    )
    report.row("  hand-offs over the least, the same groups", "", ours / fewest, good=None)
    ours, moves = weighted()
    report.row("weighted load", "<= 1.05 x least possible", ours, good=ours <= 1.05)
    report.row("moves for it, of a new placement", "<= 0.2", moves, good=moves <= 0.2)


def weighted(count=40):
    """For weighted tasks: busiest client / least possible, and moves / those of a new placement."""
    loads, moved, fresh = [], 0, 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        tasks = [TaskId(0, n) for n in range(60)]
        weights = dict(zip(tasks, (1 + rng.pareto(1.5, size=60)).tolist(), strict=True))
        clients = [
            ClientInput(
                process_id=f"c{c}",
                active_tasks=frozenset(tasks[c::6]),
                lags=dict.fromkeys(tasks[c::6], -1),
            )
            for c in range(6)
        ]
        state = group_state(
            tasks=tasks,
            stateful_tasks=tasks,
            clients=clients,
            config=AssignmentConfig(),
            end_offset_sums=dict.fromkeys(tasks, 10**6),
            weights=weights,
        )
        active = sticky(state).active
        work = np.bincount(active, weights=list(weights.values()), minlength=6)
        best = max(work.sum() / 6, *weights.values())
        loads.append(work.max() / best)
        moved += int((active != state.owner).sum())
        fresh += int((_heaviest_first(list(weights.values())) != state.owner).sum())
    return float(np.mean(loads)), moved / fresh


def _heaviest_first(weights):
    load, place = [0.0] * 6, np.zeros(len(weights), dtype=np.int64)
    for task in sorted(range(len(weights)), key=lambda t: -weights[t]):
        place[task] = min(range(6), key=load.__getitem__)
        load[place[task]] += weights[task]
    return place


def port(report, folder):
    """Add the number of Java's stored answers that equal the port's, task by task."""
    kafkas = {
        answer["name"]: answer
        for answer in json_lines(folder, "java_results.jsonl")
        if answer["assignor"] == "high_availability" and "clients" in answer
    }
    same = 0
    for data in json_lines(folder, "problems.jsonl"):
        problem = read_problem(data)
        answer = find_strategy("kafka_high_availability")(problem.state)
        ours = result_of(problem, answer, assignor="", millis=0.0)
        same += problem.name in kafkas and not difference(ours, kafkas[problem.name])
    good = same == len(kafkas)
    report.row("kafka_high_availability = Java", "all", f"{same} / {len(kafkas)}", good=good)
