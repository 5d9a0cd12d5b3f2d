"""Run the tests with a clock many times, in random order, while other processes keep cores busy.

Each run has a seed, from which the order of its tests follows. A failure is printed when it occurs,
with the seed, the five tests that ran last before it in the same process, and the command that
repeats the run; every minute, how far each lane is. What load can break is a defect of the test or
of the product, not of the machine.

Exit status 1: a run had a failure, or no test of TESTS (all without) has the fixture `clock`; 130:
interrupted (Ctrl-C, SIGTERM), with the sums of the tests that had ended. A second one kills.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
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
    r"(?:\[(gw\d+)\] \[ *\d+%\] )?(PASSED|FAILED|ERROR|SKIPPED) (\S+)|"
    r"(\S+::\S+)(?: \S+)? (PASSED|FAILED|ERROR|SKIPPED)\b"
)
# Behind the tests: what they printed may look like an outcome.
_REPORTS: Final = re.compile(r"=+ (FAILURES|ERRORS|warnings summary|short test summary info) =+")
_BEFORE: Final = 5
_PROGRESS_S: Final = 60
_STOPS: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True, kw_only=True)
class Lane:
    """One lane of one run, as far as it is.

    Attributes:
        seed: of the order; lane: "clock" or "alone".
        passed, skipped: how many tests.
        failures: each with up to five tests before it in its process, the last one nearest.
        output: the lines that pytest printed.
        status: pytest's exit status; None while it runs.
    """

    seed: int
    lane: str
    passed: int = 0
    skipped: int = 0
    failures: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    status: int | None = None
    _ran: dict[str, list[str]] = field(default_factory=dict)
    _has_ended: bool = False

    def __str__(self) -> str:
        return (
            f"seed {self.seed}, {self.lane}: {self.passed} passed, {self.skipped} skipped,"
            f" {len(self.failures)} failed"
        )

    def read(self, line: str) -> bool:
        """Take a line of `pytest -v`; return whether it is a new failure, the last of them."""
        self.output.append(line)
        self._has_ended |= _REPORTS.match(line) is not None
        found = None if self._has_ended else _ENDED.match(line)
        if found is None:
            return False
        worker, first, test, other, second = found.groups()
        outcome, name = first or second, test or other
        before = self._ran.setdefault(worker, [])
        self.passed += outcome == "PASSED"
        self.skipped += outcome == "SKIPPED"
        is_failure = outcome in {"FAILED", "ERROR"}
        if is_failure:
            self.failures.append((name, tuple(before[-_BEFORE:])))
        before.append(name)
        return is_failure

    def is_good(self, tests: Sequence[str]) -> bool:
        """Return whether it ended without a failure; of some TESTS, none may be in this lane."""
        return not self.failures and self.status in ((0, 5) if tests else (0,))


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


def start(words: Sequence[str]) -> subprocess.Popen[str]:
    """Start pytest; a signal from the terminal reaches it only through `_Runs`."""
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "pytest", "-v", "-o", f"timeout={_TIMEOUT_S}", *words],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "400"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


class _Runs:
    """Runs, and what is known of them so far.

    Attributes:
        lanes: those that have begun; whole: seeds of the runs whose lanes have ended.
    """

    def __init__(self, workers: int, tests: Sequence[str], out: Path | None) -> None:
        self._workers, self._tests, self._out = workers, tests, out
        self._running: dict[subprocess.Popen[str], Lane] = {}
        self._is_stopped = False
        self.lanes: list[Lane] = []
        self.whole: list[int] = []

    def run_all(self, seeds: Sequence[int], together: int) -> None:
        """Run all, some at a time; print what fails, and each minute how far they are.

        Raises:
            KeyboardInterrupt: interrupted; what ran has ended.
        """
        with ThreadPoolExecutor(together) as threads:
            waiting = {threads.submit(self._run, seed) for seed in seeds}
            try:
                while waiting:
                    ended, waiting = wait(waiting, _PROGRESS_S, FIRST_COMPLETED)
                    for run in ended:
                        run.result()
                    for lane in [] if ended else list(self._running.values()):
                        click.echo(f"{lane} so far")
            except BaseException:
                for number in _STOPS:
                    signal.signal(number, lambda *_: self._stop(signal.SIGKILL))
                threads.shutdown(wait=False, cancel_futures=True)
                self._stop()
                raise

    def _run(self, seed: int) -> None:
        """Run both lanes in the order of a seed."""
        for name in _LANES:
            lane = Lane(seed=seed, lane=name)
            self.lanes.append(lane)
            words = command_of(name, seed, self._workers, self._tests)
            with start(words) as process:
                self._running[process] = lane
                if self._is_stopped:
                    self._stop()
                assert process.stdout is not None
                for line in process.stdout:
                    if lane.read(line):
                        test, before = lane.failures[-1]
                        after = ", ".join(before) or "no other test"
                        click.echo(
                            f"seed {seed}, {name}: FAILED {test}\n    after {after}\n"
                            f"    repeat: python -m pytest {shlex.join(words)}"
                        )
            del self._running[process]
            lane.status = process.returncode
            if self._is_stopped:
                return
            self._report(lane)
        self.whole.append(seed)

    def _report(self, lane: Lane) -> None:
        click.echo(lane)
        if lane.is_good(self._tests):
            return
        output = "".join(lane.output)
        if not lane.failures:
            click.echo(f"  pytest ended with status {lane.status}: {output[-1_000:]}")
        if self._out is not None:
            self._out.mkdir(parents=True, exist_ok=True)
            path = self._out / f"{lane.lane}-{lane.seed}.log"
            path.write_text(output, encoding="utf-8")

    def _stop(self, number: int = signal.SIGINT) -> None:
        """Interrupt or kill what runs; start nothing."""
        self._is_stopped = True
        for process in list(self._running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    def sums(self) -> str:
        """Return how many tests had which outcome."""
        passed = sum(lane.passed for lane in self.lanes)
        failed = sum(len(lane.failures) for lane in self.lanes)
        return f"{passed} tests passed, {failed} failed; {len(self.bad())} runs with a failure"

    def bad(self) -> set[int]:
        """Return the seeds of runs with a failure, also of those that have not ended."""
        ended = [lane for lane in self.lanes if lane.seed in self.whole]
        return {lane.seed for lane in self.lanes if lane.failures} | {
            lane.seed for lane in ended if not lane.is_good(self._tests)
        }


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


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
    for number in _STOPS:  # a job that a script starts in the background ignores SIGINT
        signal.signal(number, _interrupt)
    found = _Runs(workers, tests, out)
    what = f"{runs} runs from seed {from_seed} with {load} busy processes"
    with busy_processes(load), suppress(KeyboardInterrupt):
        found.run_all(range(from_seed, from_seed + runs), together)
    if len(found.whole) < runs:
        done = ", ".join(map(str, sorted(found.whole))) or "none"
        click.echo(f"interrupted: {what}; whole are {done}; {found.sums()}")
        sys.exit(130)
    click.echo(f"{what}: {found.sums()}")
    is_empty = not any(lane.passed or lane.failures for lane in found.lanes)
    if is_empty and not found.bad():
        click.echo("no test of these has the clock")
    sys.exit(is_empty or bool(found.bad()))


if __name__ == "__main__":
    main()
