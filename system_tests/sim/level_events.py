"""Events of finalized levels: what is finalized, and what members find and go by."""

from typing import NamedTuple

from probing.features import FinalizedLevels


class Adopted(NamedTuple):
    """A thread goes by these finalized levels from now on."""

    at_ms: int
    thread: str
    levels: FinalizedLevels


class Looked(NamedTuple):
    """A thread looked for finalized levels at a broker; `asks`: it asks for a rebalance."""

    at_ms: int
    thread: str
    broker: str
    levels: FinalizedLevels
    asks: bool


class Finalized(NamedTuple):
    """These levels are finalized; `minimum`: the lowest version that is not deprecated, 0: any."""

    at_ms: int
    levels: FinalizedLevels
    why: str
    minimum: int = 0
