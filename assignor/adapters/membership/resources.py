"""What a member uses besides its client."""

from dataclasses import dataclass

from assignor.adapters.membership.level_polling import LevelPolling
from assignor.embedding import ClusterWatch, ProcessDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a member uses besides its client.

    Attributes:
        cluster: partition counts, internal topics and lags, read on a thread.
        levels: finalized levels, polled on a thread.
        directory: the state directory, or None.
    """

    cluster: ClusterWatch
    levels: LevelPolling
    directory: ProcessDirectory | None = None

    def close(self) -> None:
        """End the threads and release the state directory."""
        self.levels.close()
        self.cluster.close()
        if self.directory is not None:
            self.directory.close()
