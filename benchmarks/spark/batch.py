"""Time of `spark-assign batch` compared with the time of Spark and of the core alone, in one run.

    python -m benchmarks.spark.batch --groups 5000

Ratios of the best of a few runs, on the same rows in the same session:
- the job over its baseline: an identity `mapInArrow` of the rows + CPU time of the core / cores,
- `applyInPandas`, one group at a time, over the job: in total, and without the time of the core,
- one core over several: each in a process that is bound to so many cores.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import click
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as f

from assignor import AssignmentConfig, ClientInput, group_state, read_problem, run_strategy
from assignor.cli import make_problem
from assignor.placement import LAG_UNKNOWN, find_strategy
from benchmarks.rows import at_least, at_most
from encoding import TaskId
from spark_assign.batch.job import place_groups
from spark_assign.cli.session import session
from spark_assign.tables.convert import group_batch
from spark_assign.tables.inputs import from_table, read_groups
from spark_assign.workers.balance import balanced, size_classes
from spark_assign.workers.kernel import Options

VARIANTS = 100
SAMPLE = 200
# Below this number Spark's fixed costs dominate, and no limit is checked.
FULL_SIZE = 5_000
PART = "Spark"
OVER_BASELINE, THAN_PANDAS, SCALING = 2.0, 5.0, 1.7


def make_groups(path, groups, tasks, clients):
    """Write groups as Parquet, of each of which a tenth of the clients has just left."""
    states = []
    for seed in range(min(groups, VARIANTS)):
        problem = make_problem(
            clients=clients, tasks=tasks, standbys=1, threads=2, subtopologies=4, seed=seed
        )
        for client in list(problem["clients"])[: clients // 10]:
            del problem["clients"][client]
        states.append(read_problem(problem).state)
    path.mkdir()
    for part, start in enumerate(range(0, groups, 500)):
        rows = [
            (f"group-{n:06}", states[n % len(states)])
            for n in range(start, min(groups, start + 500))
        ]
        pq.write_table(pa.Table.from_batches([group_batch(rows)]), path / f"{part:04}.parquet")
    return states


def core_seconds(states, groups):
    """CPU seconds that the core alone takes for all groups, from a sample."""
    strategy = find_strategy("high_availability")
    sample = [states[n % len(states)] for n in range(SAMPLE)]
    best = float("inf")
    for _ in range(2):
        started = time.process_time()
        for state in sample:
            run_strategy(state, strategy)
        best = min(best, time.process_time() - started)
    return best * groups / SAMPLE


def timed(job, runs):
    """Wall seconds of the best run, after one to warm up."""
    job()
    best = float("inf")
    for _ in range(runs):
        started = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - started)
    return best


def noop(frame):
    frame.write.format("noop").mode("append").save()


def measured_here(path, cores, runs, limit):
    """Wall seconds of the identity, of the job, and of applyInPandas on a part of the groups."""
    spark = session("bench_spark_batch", cores=cores, driver_memory="2g")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "256")
    groups = read_groups(spark, str(path))
    classes = size_classes(groups)

    def identity():
        rows = balanced(groups, classes, cores=cores)
        noop(rows.mapInArrow(lambda batches: batches, rows.schema))

    found = {
        "identity": timed(identity, runs),
        "job": timed(lambda: noop(place_groups(groups, Options())), runs),
    }
    if limit:
        part = groups.frame.limit(limit).localCheckpoint()
        found["pandas"] = timed(lambda: noop(in_pandas(part)), 1) / limit
        found["part"] = timed(lambda: noop(place_groups(from_table(part), Options())), 1) / limit
    spark.stop()
    return found


def measured(path, cores, runs, limit):
    """`measured_here` in a new process that is bound to `cores` cores."""
    words = [str(path), str(cores), str(runs), str(limit)]
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, "--measure", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def bind(cores):
    """Bind this process and its children to the first cores, if the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


def in_pandas(frame):
    """Place groups by `groupBy().applyInPandas()`: a row per task, a pandas table per group."""
    rows = frame.select("name", f.explode("tasks").alias("task"), "clients").select(
        "name", "clients", "task.*"
    )
    return rows.groupBy("name").applyInPandas(
        place_pandas, "name string, task string, client string"
    )


def place_pandas(table):
    """Place one group given as a pandas table."""
    active, lags = defaultdict(set), defaultdict(dict)
    tasks = list(map(TaskId, table["subtopology"].tolist(), table["partition"].tolist()))
    for task, owner, copies in zip(tasks, table["owner"], table["copies"], strict=True):
        if owner is not None:
            active[owner].add(task)
        for copy in copies:
            lag = copy["lag"]
            lags[copy["client"]][task] = LAG_UNKNOWN if lag is None else lag
    state = group_state(
        tasks=tasks,
        stateful_tasks=[
            t for t, is_stateful in zip(tasks, table["stateful"], strict=True) if is_stateful
        ],
        clients=[
            ClientInput(
                process_id=client["client"],
                threads=client["threads"],
                active_tasks=frozenset(active[client["client"]]),
                lags=lags[client["client"]],
            )
            for client in table["clients"].iloc[0]
        ],
        config=AssignmentConfig(num_standby_replicas=1),
        end_offset_sums=dict(zip(tasks, table["end_offset_sum"].tolist(), strict=True)),
    )
    answer = run_strategy(state, find_strategy("high_availability"))
    return pd.DataFrame(
        {
            "name": table["name"].iloc[0],
            "task": [str(task) for task in state.tasks],
            "client": [state.clients[client] for client in answer.active.tolist()],
        }
    )


def ratio_rows(found, core, cores, groups):
    """Print the three ratios; limits are checked from `FULL_SIZE` groups on."""
    alone, many = found[1], found[cores]
    baseline = many["identity"] + core / cores
    size, is_full = f"{groups:,} groups", groups >= FULL_SIZE
    return [
        at_most(
            PART,
            f"{size}, job over baseline",
            many["job"] / baseline,
            OVER_BASELINE,
            "x",
            has_goal=is_full,
        ),
        at_least(
            PART,
            f"{size}, faster than applyInPandas by",
            many["pandas"] / many["part"],
            THAN_PANDAS,
            "x",
            has_goal=is_full,
        ),
        at_least(
            PART,
            f"{size}, one core over {cores}",
            alone["job"] / many["job"],
            SCALING,
            "x",
            has_goal=is_full,
        ),
    ]


@click.command(help=__doc__.split("\n\n", maxsplit=1)[0])
@click.option("--groups", type=click.IntRange(10), default=5_000, show_default=True)
@click.option("--tasks", type=click.IntRange(4), default=200, show_default=True)
@click.option("--clients", type=click.IntRange(10), default=20, show_default=True)
@click.option("--cores", type=click.IntRange(2), default=2, show_default=True)
@click.option("--runs", type=click.IntRange(1), default=2, show_default=True)
@click.option("--measure", nargs=4, hidden=True)
def main(*, groups, tasks, clients, cores, runs, measure):
    if measure:
        path, *numbers = measure
        bind(int(numbers[0]))
        click.echo(json.dumps(measured_here(path, *map(int, numbers))))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "groups"
        states = make_groups(path, groups, tasks, clients)
        core = core_seconds(states, groups)
        pandas_groups = max(10, groups // 2)
        found = {
            cores: measured(path, cores, runs, pandas_groups),
            1: measured(path, 1, runs, 0),
        }
    many = found[cores]
    rate, alone = groups / many["job"], found[1]["job"]
    click.echo(f"{groups} groups x {tasks} tasks x {clients} clients, local[{cores}]")
    click.echo(f"identity {many['identity']:.1f} s, the core alone {core:.1f} s of CPU")
    click.echo(f"job {many['job']:.1f} s, {rate:.0f} groups/s; on one core {alone:.1f} s")
    own = core / groups / cores
    around = (many["pandas"] - own) / max(many["part"] - own, 1e-9)
    click.echo(f"applyInPandas adds {around:.1f} times as much to the core's own time")
    rows = ratio_rows(found, core, cores, groups)
    sys.exit(int(any(row.met is False for row in rows)))


if __name__ == "__main__":
    main()
