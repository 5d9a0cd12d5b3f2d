"""The thread that looks where finalized levels are kept, for one member (KIP-584, T2 to T3).

What it finds is a value that the client's thread reads before it writes; the thread itself never
touches the member. Looks are spread, so that a thousand members do not ask at once.
"""

import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from assignor.levels.log import leader_note, look_at_log, opened_log
from assignor.logs import line_logger
from assignor.stores import FolderDisk
from encoding import RebalanceError
from probing.features import (
    UNKNOWN_LEVELS,
    FinalizedLevels,
    NodeSupport,
    newest_levels,
    raised_minimums,
)

_log = line_logger(__name__)

LevelSource = Callable[[], FinalizedLevels]
"""One look: the levels that are finalized now. It may wait for a broker, with a deadline of its
own, and raise what it likes; then nothing is known, and the group stays where it is."""


@runtime_checkable
class KeepsMinimums(Protocol):
    """A source whose log keeps the group's minimums (KIP-584): `GroupLevels`, `FolderLevels`."""

    def raise_minimums(self, members: Sequence[NodeSupport]) -> None:
        """Raise each minimum that all members have come to; may wait and raise as a look does."""
        ...


DEFAULT_EVERY_S = 60.0
_SPREAD = 0.2
_LEAST_BETWEEN_S = 0.5


class FolderLevels:
    """A source of levels for members that share a disk: the feature log in a folder.

    Args:
        folder: as `assignor storage format` made it and `assignor features --directory` changes it.
    """

    def __init__(self, folder: str | Path) -> None:
        self._disk = FolderDisk(folder)

    def __call__(self) -> FinalizedLevels:
        """Look; a writer is not disturbed.

        Raises:
            StoreError: there is no log, or it is broken.
        """
        return look_at_log(self._disk).state.levels

    def raise_minimums(self, members: Sequence[NodeSupport]) -> None:
        """Raise each minimum that all members have come to; for the group's leader.

        Args:
            members: every member of the group, with what it supports.

        Raises:
            StoreError: the log is written by somebody else just now, is missing or broken.
        """
        with opened_log(self._disk.folder) as log:
            minimums = raised_minimums(log.state.levels, log.state.minimums, members)
            if minimums:
                log.change({}, leader_note(minimums), minimums=minimums)


class LevelWatch:
    """Looks at levels at once, and from then on every minute or so.

    Args:
        source: where to look; called on the thread.
        on_levels: called on the thread whenever newer levels were found.
        on_error: called on the thread with each new sentence of what is wrong.
        every_s: seconds between two looks, give or take a fifth.
        dice: a number from 0 to 1, for that fifth.
    """

    def __init__(
        self,
        source: LevelSource,
        *,
        on_levels: Callable[[FinalizedLevels], None],
        on_error: Callable[[str], None] = lambda _: None,
        every_s: float = DEFAULT_EVERY_S,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self._source = source
        keeper: object = source
        self._keeper = keeper if isinstance(keeper, KeepsMinimums) else None
        self._on_levels = on_levels
        self._on_error = on_error
        self._every_s = every_s
        self._dice = dice
        self._found = UNKNOWN_LEVELS
        self._said = ""
        self._group: tuple[NodeSupport, ...] = ()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feature-levels", daemon=True)

    @property
    def found(self) -> FinalizedLevels:
        """The newest levels that any look found; returns at once."""
        return self._found

    def leads(self, members: Sequence[NodeSupport]) -> None:
        """Have minimums raised with the next look, if all these members have come to them.

        Args:
            members: the generation that this member leads; none when it leads no more.
        """
        self._group = tuple(members)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """End the thread; waits for a look under way at most so long."""
        self._closed.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._look()
            spread = 1 + _SPREAD * (2 * self._dice() - 1)
            self._closed.wait(max(self._every_s * spread, _LEAST_BETWEEN_S))

    def _look(self) -> None:
        try:
            levels = self._source()
        except Exception as error:  # noqa: BLE001 a client may raise anything; the group goes on
            self._failed("levels cannot be read", error)
            return
        newest = newest_levels((self._found, levels))
        if newest != self._found:
            self._found = newest
            self._on_levels(newest)
        self._raise_minimums(levels)

    def _raise_minimums(self, levels: FinalizedLevels) -> None:
        """Write what the group has outgrown; a leader may be allowed to read only."""
        group = self._group
        try:
            if self._keeper is not None and raised_minimums(levels, {}, group):
                self._keeper.raise_minimums(group)
        except Exception as error:  # noqa: BLE001 as above
            self._failed("minimum levels cannot be raised", error)
            return
        self._said = ""

    def _failed(self, what: str, error: Exception) -> None:
        known = isinstance(error, RebalanceError)
        why = f"{what}: {error if known else f'{type(error).__name__}: {error}'}"
        _log.warning("%s", why, exc_info=None if known else error)
        if why != self._said:
            self._said = why
            self._on_error(why)
