"""A member process, as the rehearsal sees it, and what its reports show."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

from system_tests.live.streams_move.member import JvmMemberConfig

_MODULE = "system_tests.live.streams_move.member"
_END_S = 30.0
REPORT_LAG_MS = 1000.0
"""Longest time for which a member may report a task that it has given up."""


class MemberProcess:
    """A member process; its reports are read on a thread.

    Args:
        config: of the member.
        log: file for its standard error.

    Attributes:
        config: of the member.
        reports: its reports, in order.
    """

    def __init__(self, config: JvmMemberConfig, log: Path) -> None:
        self.config, self._log = config, log
        self.reports: list[dict[str, Any]] = []
        with log.open("w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "system_tests.child", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.say(json.dumps(asdict(config)))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def say(self, line: str) -> None:
        """Write a line to the process, which may have ended."""
        with suppress(BrokenPipeError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()

    def of(self, event: str) -> list[dict[str, Any]]:
        """Return its reports of a kind, in order."""
        return [report for report in list(self.reports) if report["event"] == event]

    @property
    def active(self) -> tuple[str, ...]:
        """The active tasks that it reported last."""
        tasks = self.of("tasks")
        return tuple(tasks[-1]["active"]) if tasks else ()

    @property
    def ended(self) -> str:
        """Why its process has ended, or an empty text while it runs."""
        if self._process.poll() is None:
            return ""
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{self.config.name} ended: {lines[-1] if lines else self._process.returncode}"

    def end(self) -> None:
        """Wait until the process has ended; kill it if it does not."""
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_END_S)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self.end()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self.reports.append(json.loads(line))


def first_restores(members: list[MemberProcess]) -> tuple[dict[int, int], int]:
    """Return the first restore of each partition, and the number of later ones."""
    reports = sorted(
        (report for member in members for report in member.of("restored")),
        key=lambda report: report["at_ms"],
    )
    first: dict[int, int] = {}
    for report in reports:
        first.setdefault(report["partition"], report["records"])
    return dict(sorted(first.items())), len(reports) - len(first)


def overlaps(reports: Mapping[str, list[dict[str, Any]]]) -> Iterator[str]:
    """Yield which tasks two members reported at the same time, for longer than reports may lag.

    Kafka Streams has no callback for this: a member is asked again and again, and its answer is as
    old as its last poll. The changelog shows exactly whether a record was counted twice.

    Args:
        reports: member -> its reports of tasks, with `at_ms` and `active`, in order.
    """
    spans = [
        (task, start, end, name)
        for name, rows in sorted(reports.items())
        for task, start, end in _spans(rows)
    ]
    for (task, start, end, name), (other_task, other_start, other_end, other) in combinations(
        sorted(spans), 2
    ):
        together_ms = min(end, other_end) - max(start, other_start)
        if task == other_task and name != other and together_ms > REPORT_LAG_MS:
            yield f"task {task} ran on {name} and {other} for {together_ms:.0f} ms"


def _spans(rows: list[dict[str, Any]]) -> Iterator[tuple[str, float, float]]:
    """Yield task, start and end of each time in which a member reported a task."""
    since: dict[str, float] = {}
    for row in rows:
        active = set(row["active"])
        for task in sorted(since.keys() - active):
            yield task, since.pop(task), row["at_ms"]
        for task in sorted(active - since.keys()):
            since[task] = row["at_ms"]
    for task, start in sorted(since.items()):
        yield task, start, float("inf")
