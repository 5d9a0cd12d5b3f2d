"""Run the tests with a clock many times, in random order, while other processes keep cores busy.

Each run has a seed, from which the order of its tests follows. Each lane of a run is printed when
it has ended, so a stop loses only what is under way. A failure is printed with the seed, the five
tests that ran last before it in the same process, and the command that repeats the run.
What load can break is a defect of the test or of the product, not of the machine.

Exit status 1: a run had a failure, or no test of TESTS (all without) has the fixture `clock`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

import click

ROOT: Final = Path(__file__).resolve().parent.parent
# A busy process ends with its parent, at the end of its input.
_BUSY: Final = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True:
    pass
"""
# A test under load may take long; one that hangs must end all the same.
_TIMEOUT_S: Final = 1_800
_LANES: Final = {
    "clock": ("-m", "clock and not alone and not real", "--dist", "loadgroup"),
    "alone": ("-m", "alone and not real"),
}
_ENDED: Final = re.compile(
    r"^(?:\[(gw\d+)\] \[ *\d+%\] )?(PASSED|FAILED|ERROR|SKIPPED) (\S+)|"
    r"^(\S+::\S+)(?: \S+)? (PASSED|FAILED|ERROR|SKIPPED)\b",
    re.MULTILINE,
)
_BEFORE: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One lane of one run.

    Attributes:
        seed: of the order; lane: "clock" or "alone".
        passed, skipped: how many tests.
        failures: each with up to five tests before it in its process, the last one nearest.
        output: everything that pytest printed.
        status: pytest's exit status.
    """

    seed: int
    lane: str
    passed: int
    skipped: int
    failures: tuple[tuple[str, tuple[str, ...]], ...]
    output: str
    status: int


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep `count` processes computing during the block."""
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _BUSY], stdin=subprocess.PIPE)
            )
            stack.callback(process.kill)
        yield


def command_of(lane: str, seed: int, workers: int, tests: Sequence[str]) -> list[str]:
    """Return the words after `pytest` that repeat a lane of a run."""
    processes = str(workers) if lane == "clock" else "0"
    return [*_LANES[lane], "-n", processes, "--shuffle", str(seed), *tests]


def run_lane(lane: str, seed: int, workers: int, tests: Sequence[str]) -> Result:
    """Run one lane in the order of a seed."""
    words = command_of(lane, seed, workers, tests)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-o", f"timeout={_TIMEOUT_S}", *words],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "400"},
        capture_output=True,
        text=True,
        check=False,
    )
    return read_result(lane, seed, done.returncode, done.stdout + done.stderr)


def read_result(lane: str, seed: int, status: int, output: str) -> Result:
    """Return what the lines of `pytest -v` say of each test."""
    outcomes: list[str] = []
    ran: dict[str, list[str]] = {}
    failures = []
    for worker, first, test, other, second in _ENDED.findall(output.partition("short test sum")[0]):
        outcome, name = first or second, test or other
        outcomes.append(outcome)
        before = ran.setdefault(worker, [])
        if outcome in {"FAILED", "ERROR"}:
            failures.append((name, tuple(before[-_BEFORE:])))
        before.append(name)
    return Result(
        seed=seed,
        lane=lane,
        passed=outcomes.count("PASSED"),
        skipped=outcomes.count("SKIPPED"),
        failures=tuple(failures),
        output=output,
        status=status,
    )


def report(result: Result, workers: int, tests: Sequence[str], out: Path | None) -> bool:
    """Print one line for a lane of a run and three for each failure; return whether it is good."""
    click.echo(
        f"seed {result.seed}, {result.lane}: {result.passed} passed, {result.skipped} skipped,"
        f" {len(result.failures)} failed"
    )
    for test, before in result.failures:
        click.echo(f"  FAILED {test}")
        click.echo(f"    after {', '.join(before) or 'no other test'}")
        words = command_of(result.lane, result.seed, workers, tests)
        click.echo(f"    repeat: python -m pytest {shlex.join(words)}")
    # Status 5: no test has this lane, of those that were named.
    is_good = not result.failures and result.status in ((0, 5) if tests else (0,))
    if not is_good and not result.failures:
        click.echo(f"  pytest ended with status {result.status}: {result.output[-1_000:]}")
    if not is_good and out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{result.lane}-{result.seed}.log").write_text(result.output, encoding="utf-8")
    return is_good


@click.command(help=__doc__)
@click.option("--runs", default=1, show_default=True, help="Number of runs, each with its seed.")
@click.option("--from-seed", default=1, show_default=True, help="Seed of the first run.")
@click.option("--load", default=8, show_default=True, help="Number of busy processes.")
@click.option("--workers", default=os.cpu_count() or 1, help="Processes that test, in each run.")
@click.option("--together", default=1, show_default=True, help="Runs at a time: load of their own.")
@click.option("--out", type=click.Path(path_type=Path), help="Directory for outputs of bad runs.")
@click.argument("tests", nargs=-1)
def main(
    *,
    runs: int,
    from_seed: int,
    load: int,
    workers: int,
    together: int,
    out: Path | None,
    tests: tuple[str, ...],
) -> None:
    """Run, print, sum up."""
    for path in (test.partition("::")[0] for test in tests):
        if not (ROOT / path).exists():
            raise click.UsageError(f"there is no {path} in the checkout")
    printing = Lock()

    def run(seed: int) -> list[tuple[Result, bool]]:
        ended = []
        for lane in _LANES:
            result = run_lane(lane, seed, workers, tests)
            with printing:
                ended.append((result, report(result, workers, tests, out)))
        return ended

    with busy_processes(load), ThreadPoolExecutor(together) as threads:
        ended = list(threads.map(run, range(from_seed, from_seed + runs)))
    results = [result for lanes in ended for result, _ in lanes]
    passed = sum(result.passed for result in results)
    failed = sum(len(result.failures) for result in results)
    bad = sum(not all(is_good for _, is_good in lanes) for lanes in ended)
    click.echo(
        f"{runs} runs from seed {from_seed} with {load} busy processes: {passed} tests passed,"
        f" {failed} failed; {bad} runs with a failure"
    )
    if not (passed or bad):
        click.echo("no test of these has the clock")
    sys.exit(bool(bad or not passed))


if __name__ == "__main__":
    main()
