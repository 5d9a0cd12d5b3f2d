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

    def counted(self, version_bound: int) -> str:
        """Return how many there were for each cause; `version_bound` is the most for the version.

        >>> Rebalances(membership=(2, 3), version=(4,), followup=(), repeated=()).counted(4)
        '3 in all: 2 for members that left or came, 1 of at most 4 for the version'
        """
        text = (
            f"{self.total} in all: {len(self.membership)} for members that left or came,"
            f" {len(self.version)} of at most {version_bound} for the version"
        )
        text += f", {len(self.followup)} to move partitions" if self.followup else ""
        return text + (f", {len(self.repeated)} repeated for slow members" * bool(self.repeated))
