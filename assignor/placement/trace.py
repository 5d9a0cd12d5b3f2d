"""The intermediate decisions of a strategy, recorded only if a caller asks for them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from assignor.placement.state import GroupState, IntArray, TaskAssignment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """The intermediate steps of an assignment: the final places that a strategy wants.

    Attributes:
        home: int [T], the client that keeps each stateful task if balance allows, or NOBODY.
        balanced: int [T], the client of each active task by balance alone, before racks count.
        target: int [T], the client where each active task belongs once copies have caught up.
        standbys: (task, client) pairs of the final standbys; None if the strategy has no such set.
        why: a sentence that explains all targets, or empty.
    """

    home: IntArray
    balanced: IntArray
    target: IntArray
    standbys: frozenset[tuple[int, int]] | None
    why: str = ""


Record = Callable[[Trace], None]
"""A function that takes a trace; a strategy with a keyword parameter `record` calls it once."""


class TraceableStrategy(Protocol):
    """A strategy that can record a trace of its assignment."""

    def __call__(self, state: GroupState, /, *, record: Record | None = None) -> TaskAssignment:
        """Place every task; call `record`, if it is given, with the trace."""
