"""The group that a search explores, and the limits of the search."""

from dataclasses import dataclass

from system_tests.sim import NO_DIMENSIONS, Dimensions


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The group and the limits of a search.

    Attributes:
        members, threads, static, partitions: size and kind of the group.
        crashes: number of crashes that may occur, at any moment.
        max_states: stop the search, incomplete, at more states than this.
        more_states: number of states to visit after the first finding, to find other rules.
        symmetric: merge states that differ by process letters and partition numbers only.
        reduced: leave out orders of moves that have the same result as another order.
        dimensions: further properties of the group, such as endpoints and standby replicas.
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
