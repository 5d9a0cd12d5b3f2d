"""Memory, descriptors and threads of processes that live long: sampled, thinned, judged.

A process that leaks grows for ever; one that warms up grows and stops. So the first quarter of its
life is compared with the last one. The bounds are stated here and printed with the verdict.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic

import numpy as np
import psutil

from encoding import shown

MIB = 1024 * 1024
_KEPT = 2048
_QUARTER = 4
_HOUR_S = 3600.0
_LEAST_SAMPLES = 8

GAUGES = ("memory", "descriptors", "threads")
"""What is measured of a process: MiB of resident memory, open descriptors, threads."""
MEMORY_MIB = 16.0
"""How much the resident memory of a process may grow from its first quarter to its last..."""
MEMORY_SHARE = 0.15
"""...or this share of what it was, whichever is more."""
DESCRIPTORS = 24.0
"""How many more open descriptors it may have: members come and go, with pipes and connections."""
THREADS = 16.0
"""How many more threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """A gauge in the first quarter of its samples against the last, both as medians.

    Attributes:
        per_hour: slope of the straight line through all samples.
        bound: how much more the last may be than the first.
    """

    process: str
    gauge: str
    samples: int
    first: float
    last: float
    most: float
    per_hour: float
    bound: float

    @property
    def ok(self) -> bool:
        """Whether it grew no more than it may."""
        return self.last - self.first <= self.bound


@dataclass(slots=True)
class Series:
    """Samples of one gauge, evenly thinned when there are too many of them."""

    process: str
    gauge: str
    points: list[tuple[float, float]] = field(default_factory=list)
    _every: int = 1
    _seen: int = 0

    def add(self, at_s: float, value: float) -> None:
        """Take in one sample."""
        self._seen += 1
        if self._seen % self._every:
            return
        self.points.append((at_s, value))
        if len(self.points) >= _KEPT:
            self.points = self.points[::2]
            self._every *= 2

    def growth(self) -> Growth | None:
        """Compare the ends; None where there are too few samples to say anything."""
        if len(self.points) < _LEAST_SAMPLES:
            return None
        quarter = len(self.points) // _QUARTER
        values = [value for _, value in self.points]
        seconds = np.array([at_s for at_s, _ in self.points])
        first, last = median(values[:quarter]), median(values[-quarter:])
        return Growth(
            process=self.process,
            gauge=self.gauge,
            samples=self._seen,
            first=first,
            last=last,
            most=max(values),
            per_hour=float(np.polyfit(seconds, np.array(values), 1)[0]) * _HOUR_S,
            bound=_bound(self.gauge, first),
        )


def _bound(gauge: str, first: float) -> float:
    if gauge == "memory":
        return max(MEMORY_MIB, MEMORY_SHARE * first)
    return DESCRIPTORS if gauge == "descriptors" else THREADS


class Gauges:
    """Samples processes from a thread of its own.

    Args:
        processes: what to look at now, as (name, process id) pairs; asked before every look. A name
            with another id than before is another process: its series begins again.
        every_s: between two looks.
        tell: gets every look, name -> gauge -> value.
        warm_up_s: what is seen before is told, and not judged.
    """

    def __init__(
        self,
        processes: Callable[[], Sequence[tuple[str, int]]],
        *,
        every_s: float,
        tell: Callable[[Mapping[str, Mapping[str, float]]], None],
        warm_up_s: float = 0.0,
    ) -> None:
        self._judged_from_s = monotonic() + warm_up_s
        self._processes = processes
        self._every_s = every_s
        self._tell = tell
        self._series: dict[tuple[str, str], Series] = {}
        self._known: dict[str, psutil.Process] = {}
        self._failures: dict[str, None] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gauges", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def growths(self) -> tuple[Growth, ...]:
        """Compare the ends of every series; call it after `stop`."""
        found = (series.growth() for _, series in sorted(self._series.items()))
        return tuple(growth for growth in found if growth is not None)

    @property
    def failures(self) -> tuple[str, ...]:
        """What could not be measured, one sentence each, the first one first."""
        return tuple(self._failures)

    def unjudged(self) -> Mapping[str, tuple[str, ...]]:
        """Return the processes with too few samples to be judged; call it after `stop`.

        Returns:
            Gauge -> a sentence for each process; without the gauges that can be judged everywhere.
        """
        found: dict[str, list[str]] = {}
        for gauge in GAUGES:
            for name in sorted(self._known):
                series = self._series.get((name, gauge))
                count = 0 if series is None else len(series.points)
                if count < _LEAST_SAMPLES:
                    sentence = f"{name}: {count} samples of {gauge}, {_LEAST_SAMPLES} are needed"
                    found.setdefault(gauge, []).append(sentence)
        return {gauge: tuple(sentences) for gauge, sentences in found.items()}

    def look(self) -> None:
        """Take one sample of everything."""
        at_s = monotonic()
        seen: dict[str, Mapping[str, float]] = {}
        for name, pid in self._processes():
            values = self._sample(name, pid)
            if values is None:
                continue
            seen[name] = values
            if at_s < self._judged_from_s:
                continue
            for gauge, value in values.items():
                series = self._series.setdefault((name, gauge), Series(process=name, gauge=gauge))
                series.add(at_s, value)
        self._tell(seen)

    def _sample(self, name: str, pid: int) -> Mapping[str, float] | None:
        process = self._known.get(name)
        try:
            if process is None or process.pid != pid:
                for key in [key for key in self._series if key[0] == name]:
                    del self._series[key]
                process = self._known[name] = psutil.Process(pid)
            with process.oneshot():
                return {
                    "memory": round(process.memory_info().rss / MIB, 2),
                    "descriptors": float(process.num_fds()),
                    "threads": float(process.num_threads()),
                }
        except psutil.NoSuchProcess:
            return None  # it has just ended; whoever watches it says so
        except Exception as error:  # noqa: BLE001 the other processes are still to be measured
            self._failures[f"{name} cannot be measured: {_said(error)}"] = None
            return None

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 a thread that ends would not be missed
                self._failures[f"a look at the processes failed: {_said(error)}"] = None
            self._stopping.wait(self._every_s)


def _said(error: Exception) -> str:
    """One line; the same for the same failure, whenever it comes."""
    return f"{type(error).__name__}: {shown(str(error))}"
