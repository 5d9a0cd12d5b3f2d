"""Start each command that has processes, send a signal at a random moment, measure how it ends.

`python -m tests.cli.endings --moments 10 --seed 1` measures how long a command and all its
descendants take to end, for each signal. Run it on a quiet machine (Linux only).

Exit status 1: one took longer than two seconds, left a process or temporary files behind or,
interrupted, printed something else than one line.

Descendants are found by a variable in their environment, as the parent of an orphan is another one.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click
from click.testing import CliRunner

from assignor.cli import main as assignor
from spark_assign.cli.session import find_java
from spark_assign.tables.errors import SparkUnavailable

LIMIT_S = 2.0
WAIT_S = 240.0
PROCESSES = Path("/proc")
_MARK = "TESTS_CLI_ENDINGS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that starts processes, and runs longer than any moment.

    Attributes:
        words: module and arguments; FOLDER is a new folder, GROUPS a file with many groups.
        bound_s: the latest moment on a quiet machine: its processes work.
        processes: how many it has then, at least.
        asks: the first SIGINT or SIGTERM asks for what it has; the second one interrupts.
        removes: its temporary files are removed whatever ends it.
    """

    words: str
    bound_s: float
    processes: int
    asks: bool = False
    removes: bool = False


COMMANDS = {
    "assign": Command(
        words="assignor.entry assign --problem GROUPS --workers 2 --format json",
        bound_s=3,
        processes=3,
    ),
    "simulate": Command(
        words="system_tests.entry simulate --seeds 1000000 --workers 2", bound_s=4, processes=3
    ),
    "matrix": Command(words="system_tests.entry matrix --workers 2", bound_s=4, processes=3),
    "matrix --topology": Command(
        words="system_tests.entry matrix --topology all --workers 2", bound_s=4, processes=3
    ),
    "plan": Command(
        words="system_tests.entry plan --from 2.3.1 --to 4.1 --members 300",
        bound_s=6,
        processes=1 + (os.cpu_count() or 1),
    ),
    "explore": Command(
        words="system_tests.entry explore --from 3.9.1 --to native --workers 2",
        bound_s=8,
        processes=3,
    ),
    "live": Command(
        words="system_tests.entry live --from 3.1 --to native --members 3", bound_s=8, processes=4
    ),
    "soak": Command(
        words="system_tests.entry soak --minutes 60", bound_s=10, processes=5, asks=True
    ),
    "spark-assign": Command(
        words="spark_assign.entry simulate --seeds 1000000 --cores 2 --out FOLDER/out",
        bound_s=12,
        processes=5,
        removes=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal to the command alone, or to its whole process group, as from a terminal."""

    number: signal.Signals
    to_group: bool = False

    def __str__(self) -> str:
        return self.number.name + (" to the group" if self.to_group else "")


SIGNALS = (
    Signal(signal.SIGINT),
    Signal(signal.SIGINT, to_group=True),
    Signal(signal.SIGTERM),
    Signal(signal.SIGHUP),
    Signal(signal.SIGKILL),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How one run has ended.

    Attributes:
        seconds: from the signal to the end of the last process.
        last: command lines of the processes that ended last.
        orphans: command lines of the processes that had not ended after the limit; killed.
        status: exit status of the command.
        stderr: what it has printed.
        left: names in its folder.
        temporary: names of temporary files that it should have removed.
        was_ready: it handled interrupts when the signal was sent; the interpreter had started.
    """

    seconds: float
    last: Sequence[str]
    orphans: Sequence[str]
    status: int
    stderr: str
    left: Sequence[str]
    temporary: Sequence[str]
    was_ready: bool

    def is_tidy(self) -> bool:
        """Return whether it ended as an interrupted command: with one line, leaving nothing."""
        last = self.stderr.splitlines()[-1:]
        return not self.was_ready or (
            self.status == 130
            and "Traceback" not in self.stderr
            and [": interrupted" in line for line in last] == [True]
            and not self.left
        )


class Run:
    """A command that runs."""

    def __init__(self, command: Command, folder: Path, groups: Path) -> None:
        self.command, self.folder, self._temporary = command, folder / "out", folder / "temporary"
        self.folder.mkdir()
        self._temporary.mkdir()
        self._mark = f"{_MARK}={uuid.uuid4().hex}"
        self._stderr: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 closed by `kill`
        words = command.words.replace("FOLDER", str(self.folder)).replace("GROUPS", str(groups))
        name, _, value = self._mark.partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words.split()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            env=os.environ | {name: value, "TMPDIR": str(self._temporary)},
            start_new_session=True,
        )

    def running(self) -> dict[int, str]:
        """Process id -> command line of each process of the command that has not ended."""
        # One that is forked while the processes are listed may be missing: look again.
        return self._listed() or self._listed()

    def _listed(self) -> dict[int, str]:
        self.process.poll()
        found = {}
        for folder in PROCESSES.glob("[0-9]*"):
            try:
                if self._mark.encode() in (folder / "environ").read_bytes():
                    line = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(folder.name)] = line.decode(errors="replace").strip()
            except OSError:  # it has ended
                continue
        return found

    def end(self, how: Signal, *, limit_s: float = WAIT_S) -> Ending:
        """Send a signal, and wait until all processes have ended."""
        was_ready = self._threads() > 1
        if self.command.asks and how.number in {signal.SIGINT, signal.SIGTERM} and was_ready:
            self._send(how)
            time.sleep(0.3)
        sent = time.monotonic()
        self._send(how)
        last: dict[int, str] = {}
        while (orphans := self.running()) and time.monotonic() - sent < limit_s:
            last = orphans
            time.sleep(0.01)
        seconds = time.monotonic() - sent
        self._stderr.seek(0)
        stderr = self._stderr.read()
        self.kill()
        return Ending(
            seconds=seconds,
            last=list(last.values()),
            orphans=list(orphans.values()),
            status=self.process.wait(),
            stderr=stderr,
            left=[path.name for path in self.folder.iterdir()],
            temporary=[path.name for path in self._temporary.iterdir() if self.command.removes],
            was_ready=was_ready,
        )

    def kill(self) -> None:
        """Kill what runs."""
        for number in self.running():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.process.wait()
        self._stderr.close()

    def _threads(self) -> int:
        """Return the number of threads; the one that ends an interrupted command is the second."""
        try:
            return len(list((PROCESSES / str(self.process.pid) / "task").iterdir()))
        except OSError:
            return 0

    def _send(self, how: Signal) -> None:
        with suppress(ProcessLookupError):
            (os.killpg if how.to_group else os.kill)(self.process.pid, how.number)


def write_groups(path: Path) -> None:
    """Write a problem file that takes `assignor assign` minutes."""
    words = ["sample", "--groups", "1000", "--out", str(path)]
    assert CliRunner().invoke(assignor, words).exit_code == 0
    path.write_text(path.read_text(encoding="utf-8") * 100, encoding="utf-8")


def without_spark() -> str:
    """Return why Spark does not start here, or an empty text."""
    try:
        find_java()
    except SparkUnavailable as error:
        return str(error)
    return ""


def measured(name: str, how: Signal, moments: Sequence[float], groups: Path) -> list[Ending]:
    """Run a command once for each moment, and send the signal then."""
    found = []
    for moment in moments:
        with tempfile.TemporaryDirectory() as folder:
            run = Run(COMMANDS[name], Path(folder), groups)
            try:
                time.sleep(moment)
                if run.process.poll() is not None:
                    raise click.ClickException(f"{name} ended by itself before {moment:.1f} s")
                found.append(run.end(how, limit_s=30))
            finally:
                run.kill()
    return found


_ROW = "{:<18}{:<22}{:>8}{:>12}{:>10}{:>9}{:>8}"


@click.command(help=__doc__)
@click.option(
    "--moments",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Runs of each command and signal.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random moments.")
@click.option(
    "--command",
    "names",
    multiple=True,
    type=click.Choice(list(COMMANDS)),
    help="Only this command; can be repeated.",
)
def main(moments: int, seed: int, names: tuple[str, ...]) -> None:
    """Measure how commands with processes end, and print a table."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    titles = ("command", "signal", "moments", "within 2 s", "slowest", "orphans", "untidy")
    click.echo(_ROW.format(*titles))
    is_good = True
    with tempfile.TemporaryDirectory() as folder:
        groups = Path(folder) / "groups.jsonl"
        write_groups(groups)
        for name in names or COMMANDS:
            for how in SIGNALS:
                draw = random.Random(f"{seed} {name} {how}")  # noqa: S311 repeatable
                drawn = [draw.uniform(0, COMMANDS[name].bound_s) for _ in range(moments)]
                is_good &= _report(name, how, measured(name, how, drawn, groups))
    sys.exit(0 if is_good else 1)


def _report(name: str, how: Signal, endings: Sequence[Ending]) -> bool:
    """Print the row of a command and a signal; return whether all is good."""
    soon = sum(ending.seconds <= LIMIT_S for ending in endings)
    orphans = [line for ending in endings for line in ending.orphans]
    untidy = [
        ending
        for ending in endings
        if ending.temporary or (how.number == signal.SIGINT and not ending.is_tidy())
    ]
    slowest = f"{max(ending.seconds for ending in endings):.2f} s"
    click.echo(_ROW.format(name, str(how), len(endings), soon, slowest, len(orphans), len(untidy)))
    for line in orphans:
        click.echo(f"  orphan: {line[:200]}")
    for ending in endings:
        if ending.seconds > LIMIT_S:
            lines = "; ".join(line[:100] for line in ending.last)
            click.echo(f"  {ending.seconds:.2f} s: the last were {lines}")
    for ending in untidy:
        left = [*ending.left, *ending.temporary]
        click.echo(f"  status {ending.status}, left {left}: {ending.stderr}")
    return soon == len(endings) and not orphans and not untidy


if __name__ == "__main__":
    main()
