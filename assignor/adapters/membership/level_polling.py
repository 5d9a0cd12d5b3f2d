"""Finalized levels of one member: polled on a thread, from the first connection to the end."""

from collections.abc import Callable, Mapping, Sequence

from assignor.levels import LevelSource, LevelWatch, generation_support
from assignor.rebalance import GroupMember
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.topologies import Reached


class LevelPolling:
    """Polls a level source, if the member has one.

    Args:
        source: where finalized levels are kept, or None.
        every_s: seconds between two polls, give or take a fifth.
    """

    def __init__(self, source: LevelSource | None, every_s: float) -> None:
        self._source = source
        self._every_s = every_s
        self._watch: LevelWatch | None = None
        self._is_closed = False

    @property
    def is_on(self) -> bool:
        """Whether a source is polled."""
        return self._watch is not None

    @property
    def found(self) -> FinalizedLevels:
        """The newest levels that any poll found; returns at once."""
        return UNKNOWN_LEVELS if self._watch is None else self._watch.found

    @property
    def reached(self) -> Mapping[bytes, Reached]:
        """The reached versions of the topology that polls found; returns at once."""
        return {} if self._watch is None else self._watch.reached

    def start(
        self,
        on_levels: Callable[[FinalizedLevels], None],
        on_reached: Callable[[Mapping[bytes, Reached]], None],
        on_error: Callable[[str], None],
    ) -> None:
        """Begin to poll, unless closed; all functions are called on the thread."""
        if self._source is None or self._watch is not None or self._is_closed:
            return
        self._watch = LevelWatch(
            self._source,
            on_levels=on_levels,
            on_reached=on_reached,
            on_error=on_error,
            every_s=self._every_s,
        )
        self._watch.start()

    def lead(self, group: Sequence[GroupMember]) -> None:
        """Have minimums raised that all members of this generation have reached.

        Args:
            group: the generation that this member leads.
        """
        if self._watch is not None:
            self._watch.leads(generation_support(group))

    def stop_leading(self) -> None:
        """Raise no minimums: this member leads no generation now."""
        self.lead(())

    def keep(self, memory: Mapping[bytes, Reached]) -> None:
        """Have the source keep the reached versions that this leader's answers named."""
        if self._watch is not None:
            self._watch.keep(memory)

    def close(self) -> None:
        """End the thread; it does not start again."""
        self._is_closed = True
        if self._watch is not None:
            self._watch.close()
