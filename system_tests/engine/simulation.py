"""A simulated system: one clock, one random generator, one trace; actors handle pending events.

A run may have several actors: a group with its coordinator, a cluster of controllers and brokers,
clients that look for levels. Each registers handlers by the kind of pending event.
"""

from collections.abc import Callable
from typing import Any

from system_tests.engine.scheduler import Pending, Scheduler

Handler = Callable[[Pending], None]


class Simulation:
    """A simulated system.

    Attributes:
        scheduler: the clock, the random generator, and what is going to happen.
        trace: what happened, in order.
        handlers: kind of a pending event -> what handles it; registered by actors.
    """

    scheduler: Scheduler
    trace: list[Any]
    handlers: dict[str, Handler]

    def __init__(self, scheduler: Scheduler) -> None:
        """Begin with an empty trace and without actors."""
        self.scheduler = scheduler
        self.trace = []
        self.handlers = {}

    @property
    def now_ms(self) -> int:
        """The simulated time."""
        return self.scheduler.now_ms

    def record(self, event: Any) -> None:
        """Add an event to the trace."""
        self.trace.append(event)

    def next_due_ms(self) -> int | None:
        """Return when the next event happens; None if there is none."""
        return self.scheduler.next_due_ms()

    def step(self) -> bool:
        """Take the earliest event; False if there is none."""
        if self.scheduler.next_due_ms() is None:
            return False
        self.dispatch(self.scheduler.pop())
        return True

    def dispatch(self, pending: Pending) -> None:
        """Let a pending event take effect; it is out of the queue already."""
        self.handlers[pending.kind](pending)

    def run(self, *, until: Callable[[], bool], within_ms: int) -> bool:
        """Step until a condition holds; False if it does not within this time."""
        end_ms = self.now_ms + within_ms
        while not until():
            if self.now_ms > end_ms or not self.step():
                return False
        return True

    def run_for(self, ms: int) -> None:
        """Let exactly this much time pass."""
        end_ms = self.now_ms + ms
        while (due_ms := self.next_due_ms()) is not None and due_ms <= end_ms:
            self.step()
        self.scheduler.now_ms = max(self.now_ms, end_ms)


class Actor:
    """A part of a simulated system; shares its clock, its random generator and its trace.

    Attributes:
        simulation: the system.
        scheduler, trace: those of the system.
    """

    def __init__(self, simulation: Simulation) -> None:
        """Join a system."""
        self.simulation = simulation
        self.scheduler = simulation.scheduler
        self.trace = simulation.trace

    @property
    def now_ms(self) -> int:
        """The simulated time."""
        return self.scheduler.now_ms

    def record(self, event: Any) -> None:
        """Add an event to the trace."""
        self.trace.append(event)
