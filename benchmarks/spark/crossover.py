"""From how many groups `spark-assign batch` is faster than `assignor assign` on one machine.

    python -m benchmarks.spark.crossover --groups 40 --groups 500 --groups 5000

For each size, the same file of groups is placed by `assignor assign` in one process and with
`--workers`, and by `spark-assign batch` on as many cores. Wall time, and processor time of all
processes, which is steadier on a machine that does other work. The work of `batch` alone is what it
takes more than a session of Spark that counts ten rows. The last row compares one core with more.
All of them take turns, `--runs` times, and the medians are printed.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from benchmarks.rows import at_least, at_most, say
from benchmarks.spark.processor_time import processor_times

PART = "Spark"
FULL_SIZE = 5_000
OVER_PROCESSES, SCALING = 1.1, 1.7
_BARE = """
from spark_assign.cli.session import session
spark = session("bare", cores={cores}, is_brief=True)
spark.range(10).count()
spark.stop()
"""


def timed(words, cores):
    """Wall and processor seconds of a command with all its descendants.

    Args:
        words: the command.
        cores: it is bound to so many.
    """
    all_cores = os.sched_getaffinity(0)
    with processor_times() as seconds:
        os.sched_setaffinity(0, sorted(all_cores)[:cores])
        started = time.perf_counter()
        status = subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode
        wall = time.perf_counter() - started
        os.sched_setaffinity(0, all_cores)
        if status:
            raise SystemExit(f"{words} ended with {status}")
        _wait_for_orphans()
    return {"wall": wall, "cpu": sum(seconds.values())}


def _wait_for_orphans():
    """Wait for what a command leaves behind: this process is their parent then."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def write_groups(path, groups, tasks, clients):
    """Write sample groups; in two thirds of them one or two clients have just joined."""
    program = Path(sys.executable).parent / "assignor"
    words = ["sample", "--standbys", 1, "--joined", "0-2", "--groups", groups]
    words += ["--tasks", tasks, "--clients", clients, "--out", path]
    subprocess.run([program, *map(str, words)], check=True)


def one_size(path, groups, cores, runs):
    """The times of all ways to place the groups of a file; medians of runs that take turns."""
    program = Path(sys.executable).parent
    assign = [f"{program}/assignor", "assign", "--problem", path, "--format", "json"]
    batch = [f"{program}/spark-assign", "batch", "--in", path, "--overwrite", "--format", "json"]
    batch += ["--out", f"{path}.plans", "--cores"]
    ways = {
        "alone": (assign, 1),
        "workers": ([*assign, "--workers", str(cores)], cores),
        "session": ([sys.executable, "-c", _BARE.format(cores=cores)], cores),
        "batch": ([*batch, str(cores)], cores),
    }
    if groups >= FULL_SIZE:
        ways["session, one core"] = ([sys.executable, "-c", _BARE.format(cores=1)], 1)
        ways["batch, one core"] = ([*batch, "1"], 1)
    every = [{name: timed(*way) for name, way in ways.items()} for _ in range(runs)]
    for run in every:
        run["work"] = _difference(run["batch"], run["session"])
        if "batch, one core" in run:
            run["work, one core"] = _difference(run["batch, one core"], run["session, one core"])
    middle = {
        name: {what: statistics.median(run[name][what] for run in every) for what in times}
        for name, times in every[0].items()
    }
    return {"groups": groups, **middle}


def _difference(times, less):
    return {what: seconds - less[what] for what, seconds in times.items()}


def rows_of(found, cores):
    """Print the rows of one size."""
    title, is_full = f"{found['groups']:,} groups", found["groups"] >= FULL_SIZE
    for name, times in found.items():
        if name == "groups":
            continue
        wall, cpu = times["wall"], times["cpu"]
        say(PART, f"{title}, {name}, seconds; processor seconds", f"{wall:.1f}; {cpu:.1f}")
    of_cpu = found["work"]["cpu"] / found["workers"]["cpu"]
    of_wall = found["work"]["wall"] / found["workers"]["wall"]
    ratios = (("processor time", of_cpu), ("time", of_wall))
    rows = [
        at_most(
            PART,
            f"{title}, {what} of the work over --workers {cores}",
            ratio,
            OVER_PROCESSES,
            "x",
            has_goal=is_full,
        )
        for what, ratio in ratios
    ]
    if "work, one core" in found:
        gain = found["work, one core"]["wall"] / found["work"]["wall"]
        rows.append(at_least(PART, f"{title}, one core over {cores}", gain, SCALING, "x"))
    return rows


@click.command(help=__doc__.split("\n\n", maxsplit=1)[0])
@click.option("--groups", "sizes", type=click.IntRange(10), multiple=True, default=(40, 500, 5_000))
@click.option("--tasks", type=click.IntRange(4), default=200, show_default=True)
@click.option("--clients", type=click.IntRange(2), default=20, show_default=True)
@click.option("--cores", type=click.IntRange(2), default=2, show_default=True)
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True)
def main(sizes, tasks, clients, cores, runs):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for groups in sizes:
            path = f"{folder}/{groups}.jsonl"
            write_groups(path, groups, tasks, clients)
            rows += rows_of(one_size(path, groups, cores, runs), cores)
    sys.exit(int(any(row.met is False for row in rows)))


if __name__ == "__main__":
    main()
