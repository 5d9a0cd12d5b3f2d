"""How far a search looks, and at which group."""

from dataclasses import dataclass

from system_tests.sim import NO_DIMENSIONS, Dimensions


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What is explored.

    Attributes:
        members, threads, static, partitions: of the group.
        crashes: how many may strike, anywhere.
        max_states: give up, and say so, beyond it.
        more_states: once something was found, look at so many states more for other rules.
        symmetric, reduced: merge states and orders that nobody could tell apart.
        dimensions: what else the group has. Members that serve queries are told apart by it.
    """

    members: int = 3
    threads: int = 1
    static: bool = False
    partitions: int = 6
    crashes: int = 1
    max_states: int = 200_000
    more_states: int = 60_000
    symmetric: bool = True
    reduced: bool = True
    dimensions: Dimensions = NO_DIMENSIONS
