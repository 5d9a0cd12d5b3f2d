"""Time of `spark-assign group` for one huge group, compared with reading and writing its rows.

    python -m benchmarks.spark.group --tasks 10000000

All cases run in one session on local[2] with a heap of 1g, after a warm-up on fewer tasks. The
baseline reads the task table and writes it; the job plans and writes the plan. The limit is on
their ratio. A second table compares each size with the next: ten times the tasks may take at most
ten times the time and memory. Plans are checked against independent numbers: hand-offs against the
minimum for balance, rack costs against an optimum by OR-Tools, loads against their bands. Ratios
have limits from ten million tasks on: below that Spark's fixed costs dominate. The ratio of
processor seconds is steadier than that of seconds on a machine that does other work.
"""

import shutil
import sys
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from assignor import AssignmentConfig
from benchmarks.rows import at_most, say
from benchmarks.spark.make_group_tables import make_tables
from benchmarks.spark.peak_memory import forget_peaks, peaks_mb
from benchmarks.spark.processor_time import descendants
from spark_assign.cli.session import session
from spark_assign.huge.group_rows import OneGroup
from spark_assign.huge.run import run_group
from spark_assign.tables.output import staged

PART = "Spark"
PER_CLIENT = 100
FULL_SIZE = 10_000_000
# Kafka's costs of the strategy sticky.
TRAFFIC, OVERLAP = 1, 10
# case -> standbys, racks, limit of the ratio to the baseline.
CASES = {
    "sticky": (0, 0, 1.5),
    "sticky, 1 standby": (1, 0, 1.6),
    "sticky, min_traffic": (0, 6, 4.0),
}


def timed(work):
    """What a function returns, its seconds, and the processor seconds of all processes."""
    started, spent = time.perf_counter(), processor_seconds()
    result = work()
    return result, time.perf_counter() - started, processor_seconds() - spent


def processor_seconds():
    """Processor seconds of this process, the JVM and the Python workers so far."""
    return time.process_time() + sum(descendants().values())


def baseline(spark, tables, out):
    """Read the task table and write it."""
    spark.read.parquet(f"{tables}/tasks").write.mode("overwrite").parquet(str(out))


def run(spark, tables, out, *, standbys, racks):
    """Place the group; the summary."""
    config = AssignmentConfig(
        num_standby_replicas=standbys,
        rack_aware_assignment_strategy="min_traffic" if racks else "none",
    )
    group = OneGroup(
        name="bench",
        tasks=spark.read.parquet(f"{tables}/tasks"),
        clients=spark.read.parquet(f"{tables}/clients"),
        config=config,
    )
    with staged(spark, str(out), overwrite=True) as stage:
        return run_group(group, stage, strategy="sticky")


def check(tables, out, summary, *, tasks, clients, standbys, racks):
    """Errors of the plan as sentences, computed from the files by pyarrow."""
    plan = pq.read_table(out, columns=["subtopology", "partition", "client", "role"])
    role = plan.column("role").combine_chunks().dictionary_encode()
    names = plan.column("client").combine_chunks().dictionary_encode()
    is_active = role.indices.to_numpy() == role.dictionary.index("active").as_py()
    client = names.indices.to_numpy()
    task = plan.column("subtopology").to_numpy().astype(np.int64) << 32
    task |= plan.column("partition").to_numpy()
    wrong = []
    if len(np.unique(task[is_active])) != tasks or int(is_active.sum()) != tasks:
        wrong.append("a task is not active exactly once")
    if len(task) != tasks * (1 + standbys):
        wrong.append(f"{len(task) - tasks} standbys instead of {tasks * standbys}")
    if len(np.unique(task * 2**20 + client)) != len(task) and clients < 2**20:
        wrong.append("a client holds two copies of a task")
    for kind, is_counted in (("active tasks", is_active), ("copies", is_active | True)):
        load = np.bincount(client[is_counted], minlength=clients)
        if load.max() - load.min() > 1:
            wrong.append(f"{kind}: {load.min()} to {load.max()} on a client")
    owners = pq.read_table(f"{tables}/tasks", columns=["owner"]).column("owner")
    held = np.bincount(owners.combine_chunks().dictionary_encode().indices.to_numpy())
    # Clients have one thread: as many as possible keep one task more.
    low, extra = divmod(tasks, clients)
    keeps = int(np.minimum(held, low).sum()) + min(extra, int((held > low).sum()))
    if not racks and summary.moved != tasks - keeps:
        wrong.append(f"{summary.moved} tasks move, {tasks - keeps} are enough")
    load = np.bincount(_numbers(plan, tables, is_active), minlength=clients)
    if racks and summary.rack_cost != (least := least_cost(tables, load)):
        wrong.append(f"rack cost {summary.rack_cost}, the least is {least}")
    traffic = TRAFFIC * summary.active_traffic + OVERLAP * summary.moved
    if racks and traffic != summary.rack_cost:
        wrong.append(f"rack cost on disk {traffic}, decided {summary.rack_cost}")
    return wrong


def _numbers(plan, tables, is_active):
    """The client of every active task, by the order of their ids."""
    clients = pq.read_table(f"{tables}/clients", columns=["client"]).column("client").to_pylist()
    active = plan.column("client").filter(pa.array(is_active)).combine_chunks()
    return pc.index_in(active, pa.array(sorted(clients))).to_numpy()


def least_cost(tables, load):
    """The least rack cost with this number of tasks on every client (KIP-925), by OR-Tools."""
    clients = pq.read_table(f"{tables}/clients", columns=["client", "rack"])
    order = np.argsort(clients.column("client").to_numpy())
    racks = clients.column("rack").combine_chunks().dictionary_encode()
    rack, names = racks.indices.to_numpy()[order], racks.dictionary.to_pylist()
    tasks = pq.read_table(f"{tables}/tasks", columns=["owner", "partition_racks"])
    ids = pa.array(sorted(clients.column("client").to_pylist()))
    owner = pc.index_in(tasks.column("owner").combine_chunks(), ids).to_numpy()
    texts = pa.array(
        [
            ",".join(racks_of_task[0])
            for racks_of_task in tasks.column("partition_racks").to_pylist()
        ]
    )
    coded = texts.dictionary_encode()
    kind, lists = coded.indices.to_numpy(), coded.dictionary.to_pylist()
    weight = np.array(
        [[TRAFFIC * (name not in names_text.split(",")) for name in names] for names_text in lists]
    )
    pairs, held = np.unique(kind.astype(np.int64) * len(ids) + owner, return_counts=True)
    pool, client = np.divmod(pairs, len(ids))
    # Nodes: classes of tasks, racks, clients, the end.
    pools, places = len(lists), len(names)
    first = pools + places
    grid = np.indices((pools, places)).reshape(2, -1)
    spots, total = np.arange(len(ids)), len(kind)
    arcs = [
        (pool, first + client, held, weight[pool, rack[client]]),
        (grid[0], pools + grid[1], np.full(grid.shape[1], total), weight.reshape(-1) + OVERLAP),
        (pools + rack, first + spots, load, np.zeros(len(ids), np.int64)),
        (first + spots, np.full(len(ids), first + len(ids)), load, np.zeros(len(ids), np.int64)),
    ]
    flow = SimpleMinCostFlow()
    columns = (np.concatenate(part).astype(np.int64) for part in zip(*arcs, strict=True))
    flow.add_arcs_with_capacity_and_unit_cost(*columns)
    for number, count in enumerate(np.bincount(kind, minlength=pools).tolist()):
        flow.set_node_supply(number, count)
    flow.set_node_supply(first + len(ids), -total)
    if flow.solve() != flow.OPTIMAL:
        raise RuntimeError("OR-Tools finds no flow; the loads of the plan do not add up")
    return flow.optimal_cost()


def one_case(spark, folder, name, tasks):
    standbys, racks, goal = CASES[name]
    tables, out = Path(folder, "tables"), Path(folder, "plan")
    clients = max(10, tasks // PER_CLIENT)
    make_tables(tables, tasks=tasks, clients=clients, standbys=standbys, racks=racks)
    copy = partial(baseline, spark, tables, Path(folder, "copy"))
    least, least_processor = map(min, zip(*(timed(copy)[1:] for _ in range(2)), strict=True))
    forget_peaks()
    summary, seconds, processor = timed(
        partial(run, spark, tables, out, standbys=standbys, racks=racks)
    )
    peaks = peaks_mb()
    numbers = {"tasks": tasks, "clients": clients, "standbys": standbys, "racks": racks}
    wrong = check(tables, out, summary, **numbers)
    for part in (tables, out, Path(folder, "copy")):
        shutil.rmtree(part)
    return {
        "case": name,
        **numbers,
        "baseline_s": round(least, 2),
        "seconds": round(seconds, 2),
        "ratio": round(seconds / least, 2),
        "processor_s": round(processor, 2),
        "processor_ratio": round(processor / least_processor, 2),
        "goal": goal,
        "moved": summary.moved,
        "passes": summary.passes,
        "peaks_mb": peaks,
        "rack_cost": summary.rack_cost,
        "rack_bound": summary.rack_bound,
        "wrong": wrong,
    }


@click.command(help=__doc__.split("\n\n", maxsplit=1)[0])
@click.option(
    "--tasks",
    type=click.IntRange(1_000),
    default=FULL_SIZE,
    show_default=True,
    help="The largest size; a tenth and a hundredth of it are measured too.",
)
@click.option("--case", "cases", type=click.Choice(list(CASES)), multiple=True, help="[all]")
@click.option("--driver-memory", default="1g", show_default=True)
def main(tasks, cases, driver_memory):
    spark = session("bench", cores=2, driver_memory=driver_memory)
    sizes = sorted({max(1_000, tasks // part) for part in (100, 10, 1)})
    found, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in cases or CASES:
            one_case(spark, folder, name, 10_000)  # workers start, the JVM warms up
            for size in sizes:
                found.append(one_case(spark, folder, name, size))
                rows += case_rows(found[-1])
    spark.stop()
    for pair in pairwise(found):
        if pair[0]["case"] == pair[1]["case"]:
            rows += growth(*pair, is_full=tasks >= FULL_SIZE)
    largest = max(case["peaks_mb"]["jvm"] for case in found)
    rows.append(say(PART, f"most that the JVM held, heap {driver_memory}", f"{largest:,} MB"))
    sys.exit(int(any(row.met is False for row in rows)))


def case_rows(case):
    """The rows of a case: its ratio to the baseline, and the number of errors of the plan."""
    title = f"{case['case']}, {case['tasks']:,} tasks"
    peaks = ", ".join(f"{name} {size}" for name, size in case["peaks_mb"].items())
    is_full = case["tasks"] >= FULL_SIZE
    rows = [
        at_most(
            PART, f"{title}, over baseline", case["ratio"], case["goal"], "x", has_goal=is_full
        ),
        say(PART, f"{title}, over baseline, processor seconds", f"{case['processor_ratio']} x"),
        at_most(PART, f"{title}, faults of the plan", len(case["wrong"]), 0),
    ]
    click.echo(
        f"  {case['seconds']:.1f} s ({case['processor_s']:.1f} of processors), baseline "
        f"{case['baseline_s']:.1f} s; {case['moved']:,} move, {case['passes']} passes; "
        f"peaks in MB: {peaks}"
    )
    for sentence in case["wrong"]:
        click.echo(f"  WRONG: {sentence}")
    return rows


def growth(small, large, *, is_full):
    """Rows: growth of time and memory from the smaller to the larger size."""
    times = large["tasks"] / small["tasks"]
    memory = [sum(row["peaks_mb"].values()) for row in (small, large)]
    title = f"{small['case']}, {small['tasks']:,} to {large['tasks']:,} tasks"
    return [
        at_most(PART, f"{title}, {what}", ratio, times, "x", has_goal=is_full)
        for what, ratio in (
            ("time", large["seconds"] / small["seconds"]),
            ("memory", memory[1] / max(1, memory[0])),
        )
    ]


if __name__ == "__main__":
    main()
