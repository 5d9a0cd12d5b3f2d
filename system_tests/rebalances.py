"""The rebalances of a live or simulated experiment, by cause."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalances:
    """Generations after the first settled one, by cause; each tuple ascends.

    Attributes:
        membership: members started or ended.
        version: a member rejoined to write another version.
        followup: partitions moved, or a probing rebalance was due.
        repeated: a member rejoined with an unchanged version.
    """

    membership: tuple[int, ...]
    version: tuple[int, ...]
    followup: tuple[int, ...]
    repeated: tuple[int, ...]

    @property
    def total(self) -> int:
        """All generations that were counted."""
        return sum(map(len, (self.membership, self.version, self.followup, self.repeated)))
