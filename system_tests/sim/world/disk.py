"""State directories: the copies of a process, their lags, and how long restoring takes.

Every task's changelog grows at one rate. A copy that is open - active, restoring or standby - comes
nearer at the restore rate until it has caught up; one at rest stays where it is. A clean stop keeps
all of it, a crash falls back to the last checkpoint, a lost disk has nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from encoding import TaskId
from probing.topologies import Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRates:
    """How state grows and is restored.

    Attributes:
        history: records in each changelog before the simulation begins.
        sizes: the same for each partition by its number, instead of `history`; empty: all alike.
        growth: records a second written to each changelog.
        growths: the same for each partition by its number, instead of `growth`; 0 for a task
            without changelog; empty: all alike.
        restore: records a second that a process reads of each.
        checkpoint_ms: how old a checkpoint is at most; a crash loses that much.
    """

    history: int = 100_000
    growth: int = 100
    restore: int = 50_000
    checkpoint_ms: int = 30_000
    sizes: tuple[int, ...] = ()
    growths: tuple[int, ...] = ()

    def growth_of(self, task: TaskId) -> int:
        """Records a second written to a task's changelogs."""
        return self.growths[task.partition] if self.growths else self.growth

    def end_offset_sum(self, task: TaskId, now_ms: int) -> int:
        """End offset sum of a task's changelogs."""
        history = self.sizes[task.partition] if self.sizes else self.history
        return history + self.growth_of(task) * max(0, now_ms) // 1000


class OpenCopy(NamedTuple):
    """A copy that is being kept up to date since `since_ms`, when it stood at `offset_sum`."""

    offset_sum: int
    since_ms: int


@dataclass(slots=True, kw_only=True)
class Disk:
    """The state directory of one process.

    Attributes:
        rates: of this world.
        at_rest: task -> offset sum of closed copies.
        open_copies: task -> copies that follow their changelog.
        reached: versions of the topology that the process remembers as reached.
    """

    rates: StateRates
    at_rest: dict[TaskId, int] = field(default_factory=dict)
    open_copies: dict[TaskId, OpenCopy] = field(default_factory=dict)
    reached: Mapping[bytes, Reached] = field(default_factory=dict)

    def copy(self) -> Self:
        """Return an independent disk with the same content."""
        other = object.__new__(type(self))
        other.rates = self.rates
        other.at_rest = self.at_rest.copy()
        other.open_copies = self.open_copies.copy()
        other.reached = self.reached
        return other

    def open(self, task: TaskId, now_ms: int) -> tuple[int, int]:
        """Open a copy, or go on with it; returns the records it lags and the ms until it is up."""
        if task not in self.open_copies:
            self.open_copies[task] = OpenCopy(self.at_rest.pop(task, 0), now_ms)
        lag = self.rates.end_offset_sum(task, now_ms) - self.offset_sum(task, now_ms)
        return lag, -(-lag * 1000 // self.rates.restore)

    def fill(self, now_ms: int) -> None:
        """Let all open copies be caught up, without that time passes."""
        for task in self.open_copies:
            end = self.rates.end_offset_sum(task, now_ms)
            self.open_copies[task] = OpenCopy(end, now_ms)

    def close(self, task: TaskId, now_ms: int) -> None:
        """Close a copy where it stands; one that is not open stays as it is."""
        if task in self.open_copies:
            self.at_rest[task] = self.offset_sum(task, now_ms)
            del self.open_copies[task]

    def offset_sum(self, task: TaskId, now_ms: int) -> int:
        """Offset sum of a copy, open or at rest; 0 where there is none."""
        copy = self.open_copies.get(task)
        if copy is None:
            return self.at_rest.get(task, 0)
        read = copy.offset_sum + self.rates.restore * max(0, now_ms - copy.since_ms) // 1000
        return min(self.rates.end_offset_sum(task, now_ms), read)

    def crash(self, now_ms: int) -> None:
        """Close every copy at its last checkpoint."""
        then = now_ms - self.rates.checkpoint_ms
        for task, copy in self.open_copies.items():
            opened_later = copy.since_ms > then
            self.at_rest[task] = copy.offset_sum if opened_later else self.offset_sum(task, then)
        self.open_copies.clear()

    def lose(self) -> None:
        """Forget everything."""
        self.at_rest.clear()
        self.open_copies.clear()
        self.reached = {}

    def report(self, now_ms: int) -> dict[TaskId, int]:
        """Task -> offset sum of every copy here, for a subscription."""
        found = dict(self.at_rest)
        for task in self.open_copies:
            found[task] = self.offset_sum(task, now_ms)
        return found
