"""How many rebalances an experiment took, by cause; live and simulated ones count into the same."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalances:
    """Generations after the first settled one, by cause; each tuple ascends.

    Attributes:
        membership: members came or went.
        version: somebody asked for it to write another version.
        followup: partitions move, or a time had come.
        repeated: somebody only says again what it had said.
    """

    membership: tuple[int, ...]
    version: tuple[int, ...]
    followup: tuple[int, ...]
    repeated: tuple[int, ...]

    @property
    def total(self) -> int:
        """All generations that were counted."""
        return sum(map(len, (self.membership, self.version, self.followup, self.repeated)))
