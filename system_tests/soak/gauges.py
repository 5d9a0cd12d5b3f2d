"""Memory, descriptors and threads of long-lived processes: sampled, thinned, compared.

A process that leaks grows for ever; one that warms up grows and stops. So the first quarter of its
samples is compared with the last one. The bounds are stated here and printed with the verdict.
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
    """A gauge in the first and in the last quarter of its samples, both as medians.

    Attributes:
        per_hour: slope of the straight line through all samples.
        bound: the largest accepted growth from the first to the last.
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
        """Whether it grew by no more than the bound."""
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
        """Add one sample."""
        self._seen += 1
        if self._seen % self._every:
            return
        self.points.append((at_s, value))
        if len(self.points) >= _KEPT:
            self.points = self.points[::2]
            self._every *= 2

    def growth(self) -> Growth | None:
        """Compare the ends; return None if there are too few samples."""
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
        processes: returns what to sample, as (name, process id) pairs; called before every sample.
            A name with another id than before is another process: its series begins again.
        every_s: between two samples.
        on_sample: gets every sample, name -> gauge -> value.
        warm_up_s: samples before this are passed on, and not compared.
    """

    def __init__(
        self,
        processes: Callable[[], Sequence[tuple[str, int]]],
        *,
        every_s: float,
        on_sample: Callable[[Mapping[str, Mapping[str, float]]], None],
        warm_up_s: float = 0.0,
    ) -> None:
        self._compared_from_s = monotonic() + warm_up_s
        self._processes = processes
        self._every_s = every_s
        self._on_sample = on_sample
        self._series: dict[tuple[str, str], Series] = {}
        self._known: dict[str, psutil.Process] = {}
        self._failures: dict[str, None] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gauges", daemon=True)

    def start(self) -> None:
        """Start sampling."""
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def growths(self) -> tuple[Growth, ...]:
        """Compare the ends of every series; call it after `stop`."""
        found = (series.growth() for _, series in sorted(self._series.items()))
        return tuple(growth for growth in found if growth is not None)

    @property
    def failures(self) -> tuple[str, ...]:
        """What could not be measured, one sentence each, in order."""
        return tuple(self._failures)

    def undecided(self) -> Mapping[str, tuple[str, ...]]:
        """Return the processes with too few samples to compare; call it after `stop`.

        Returns:
            Gauge -> a sentence for each process; a gauge without such processes is left out.
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

    def sample(self) -> None:
        """Sample all processes once."""
        at_s = monotonic()
        seen: dict[str, Mapping[str, float]] = {}
        for name, pid in self._processes():
            values = self._sample(name, pid)
            if values is None:
                continue
            seen[name] = values
            if at_s < self._compared_from_s:
                continue
            for gauge, value in values.items():
                series = self._series.setdefault((name, gauge), Series(process=name, gauge=gauge))
                series.add(at_s, value)
        self._on_sample(seen)

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
            return None  # it has just ended, which is reported elsewhere
        except Exception as error:  # noqa: BLE001 the other processes are still measured
            self._failures[f"{name} cannot be measured: {_text(error)}"] = None
            return None

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.sample()
            except Exception as error:  # noqa: BLE001 the thread must go on
                self._failures[f"sampling the processes failed: {_text(error)}"] = None
            self._stopping.wait(self._every_s)


def _text(error: Exception) -> str:
    """Return one line, the same for the same failure."""
    return f"{type(error).__name__}: {shown(str(error))}"
