"""Speed and memory of the simulator, the explorer and the matrix.

Times are CPU times (user and system), because wall-clock time depends on other work on the machine.
CPU time depends on the machine, too: the first line reports its speed, so that runs can be
compared. Every bounce has another seed, so caches help no more than in a run of thousands.

`python -m benchmarks.simulator` runs everything; `--bounces N --skip-explore --skip-matrix` less.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from assignor.workers import rare_garbage
from benchmarks.rows import at_least, at_most
from system_tests.sim import BounceOptions, run_bounce

PART = "simulator"
PATHS = {
    "drawn pairs": (None, None),
    "one version, 3.8.1 to 3.9.1": ("3.8.1", "3.9.1"),
    "one probing bounce, 2.8.2 to 3.9.1": ("2.8.2", "3.9.1"),
    "two bounces, 1.1.1 to 3.9.1": ("1.1.1", "3.9.1"),
    "to ours, 3.9.1 to native": ("3.9.1", "native"),
    "between ours, native to next": ("native", "next"),
}
CHUNK = 25
WARM = 100
LOOP = 300_000
BOUNCES_GOAL, BOUNCES_AIM = 150, 300
EXPLORE_GOAL_S, EXPLORE_AIM_S, EXPLORE_CORES = 30.0, 15.0, 2
MATRIX_GOAL_S, MATRIX_CORES = 180.0, 2
MEMORY_GOAL_MIB = 1024
_JSON = ("--format", "json")
COMMAND = Path(sys.executable).with_name("rolling-bounce")


def loops_a_second() -> float:
    """Speed of the machine: millions of steps of an empty loop per second of CPU time."""
    began = time.process_time()
    for _ in range(LOOP):
        pass
    return LOOP / 1e6 / (time.process_time() - began)


def bounces_a_second(old: str | None, new: str | None, count: int) -> tuple[list[float], float]:
    """Bounces per second of each chunk, slowest first, and the median speed of the machine."""
    for seed in range(WARM):
        run_bounce(BounceOptions(seed=seed, old=old, new=new))
    rates, paces = [], []
    for start in range(WARM, WARM + count, CHUNK):
        paces.append(loops_a_second())
        began = time.process_time()
        with rare_garbage():  # as `rolling-bounce simulate --seeds` does
            for seed in range(start, start + CHUNK):
                outcome = run_bounce(BounceOptions(seed=seed, old=old, new=new))
                assert outcome.ok, f"seed {seed} of {old} -> {new} broke {outcome.broken[0].rule}"
        rates.append(CHUNK / (time.process_time() - began))
    return sorted(rates), statistics.median(paces)


def run_command(*arguments: str) -> tuple[float, float, int, str]:
    """CPU seconds, wall-clock seconds, peak MiB of the largest process, and the output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    wall = time.monotonic() - began
    assert done.returncode in (0, 1), done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, wall, after.ru_maxrss // 1024, done.stdout


def memory(of: str, mib: int) -> None:
    at_most(PART, f"memory of the {of}", mib, MEMORY_GOAL_MIB, "MiB")


def bench_bounces(count: int) -> None:
    for path, (old, new) in PATHS.items():
        rates, pace = bounces_a_second(old, new, count)
        middle = statistics.median(rates)
        at_least(PART, f"bounces a second, {path}", middle, BOUNCES_GOAL)
        print(f"  best {rates[-1]:.0f}, aim {BOUNCES_AIM}; the machine at {pace:.0f}")
    memory("simulator", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def bench_explore() -> None:
    path = ("--from", "3.9.1", "--to", "native", "--workers", str(EXPLORE_CORES))
    spent, wall, mib, text = run_command("explore", *path)
    found = next((line for line in text.splitlines() if "states" in line), "").strip()
    row = f"explore 3.9.1 to native, one crash, CPU of each of {EXPLORE_CORES}"
    at_most(PART, row, spent / EXPLORE_CORES, EXPLORE_GOAL_S, "s")
    print(f"  {wall:.1f} s of wall clock, aim {EXPLORE_AIM_S:.0f}; {found}")
    memory("explorer", mib)


def bench_matrix() -> None:
    spent, wall, mib, text = run_command("matrix", "--workers", str(MATRIX_CORES))
    each = spent / MATRIX_CORES
    at_most(PART, f"the whole matrix, CPU of each of {MATRIX_CORES}", each, MATRIX_GOAL_S, "s")
    print(f"  {wall:.0f} s of wall clock; {text.strip().splitlines()[-1]}")
    memory("matrix", mib)


def bench_seeds(seeds: int, clusters: int) -> None:
    """Report seeds that broke a rule: bounces of pairs of releases, and clusters of brokers."""
    for what, count, more in (("bounces", seeds, ()), ("clusters", clusters, ("--world", "kraft"))):
        spent, wall, _, text = run_command("simulate", "--seeds", str(count), *more, *_JSON)
        failed = json.loads(text)["failed"]
        at_most(PART, f"{what} that broke a rule, of {count:,} seeds", failed, 0)
        print(f"  {spent:.0f} s of processor, {wall:.0f} s of wall clock")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bounces", type=int, default=500, help="of each path")
    parser.add_argument("--seeds", type=int, default=20_000, help="of pairs of releases")
    parser.add_argument("--clusters", type=int, default=1_000, help="of brokers and controllers")
    parser.add_argument("--skip-explore", action="store_true")
    parser.add_argument("--skip-matrix", action="store_true")
    options = parser.parse_args()
    print(f"this machine: {loops_a_second():.0f} million steps of an empty loop a second")
    bench_bounces(options.bounces)
    if not options.skip_explore:
        bench_explore()
    if not options.skip_matrix:
        bench_matrix()
    bench_seeds(options.seeds, options.clusters)


if __name__ == "__main__":
    main()
