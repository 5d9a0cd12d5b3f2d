"""A background thread polls the level source for one member (KIP-584, T2 to T3).

The client's thread reads the newest levels before it writes a subscription; the background thread
never touches the member. Polls have a random jitter, so that a thousand members do not poll at
once.
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
"""A function that returns the finalized levels. It may wait for a broker, with its own deadline. If
it raises an exception, the last known levels stay in force."""


@runtime_checkable
class KeepsMinimums(Protocol):
    """A level source that also stores minimum levels (KIP-584): `GroupLevels`, `FolderLevels`."""

    def raise_minimums(self, members: Sequence[NodeSupport]) -> None:
        """Raise each minimum that all members support; it may wait and raise any exception."""
        ...


DEFAULT_EVERY_S = 60.0
_SPREAD = 0.2
_LEAST_BETWEEN_S = 0.5


class FolderLevels:
    """A level source for members that share a disk: the feature log in a directory.

    Args:
        folder: directory that `assignor storage format` created; `assignor features --directory`
            changes its levels.
    """

    def __init__(self, folder: str | Path) -> None:
        self._disk = FolderDisk(folder)

    def __call__(self) -> FinalizedLevels:
        """Return the finalized levels, without blocking a writer.

        Raises:
            StoreError: there is no log, or it is damaged.
        """
        return look_at_log(self._disk).state.levels

    def raise_minimums(self, members: Sequence[NodeSupport]) -> None:
        """Raise each minimum that all members support; only the group's leader calls this.

        Args:
            members: every member of the group, with what it supports.

        Raises:
            StoreError: another process is writing the log, or it is missing or damaged.
        """
        with opened_log(self._disk.folder) as log:
            minimums = raised_minimums(log.state.levels, log.state.minimums, members)
            if minimums:
                log.change({}, leader_note(minimums), minimums=minimums)


class LevelWatch:
    """A background thread that polls a level source, at once and then periodically.

    Args:
        source: level source; called on the thread.
        on_levels: called on the thread with newer levels.
        on_error: called on the thread with each new problem, as a sentence.
        every_s: mean seconds between two polls; the jitter is up to 20 %.
        rng: returns a random number from 0 to 1, for the jitter.
    """

    def __init__(
        self,
        source: LevelSource,
        *,
        on_levels: Callable[[FinalizedLevels], None],
        on_error: Callable[[str], None] = lambda _: None,
        every_s: float = DEFAULT_EVERY_S,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._source = source
        with_minimums: object = source
        self._minimums = with_minimums if isinstance(with_minimums, KeepsMinimums) else None
        self._on_levels = on_levels
        self._on_error = on_error
        self._every_s = every_s
        self._rng = rng
        self._found = UNKNOWN_LEVELS
        self._reported = ""
        self._group: tuple[NodeSupport, ...] = ()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feature-levels", daemon=True)

    @property
    def found(self) -> FinalizedLevels:
        """The newest levels of all polls so far; does not wait."""
        return self._found

    def leads(self, members: Sequence[NodeSupport]) -> None:
        """Set the members that this member leads; the next poll raises minimums that all support.

        Args:
            members: the members of the generation; empty if this member is not the leader.
        """
        self._group = tuple(members)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """Stop the thread; wait at most `timeout_s` for a poll in progress."""
        self._closed.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._look()
            spread = 1 + _SPREAD * (2 * self._rng() - 1)
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
        """Raise minimums that all members support; a leader without write permission fails here."""
        group = self._group
        try:
            if self._minimums is not None and raised_minimums(levels, {}, group):
                self._minimums.raise_minimums(group)
        except Exception as error:  # noqa: BLE001 as above
            self._failed("minimum levels cannot be raised", error)
            return
        self._reported = ""

    def _failed(self, what: str, error: Exception) -> None:
        known = isinstance(error, RebalanceError)
        why = f"{what}: {error if known else f'{type(error).__name__}: {error}'}"
        _log.warning("%s", why, exc_info=None if known else error)
        if why != self._reported:
            self._reported = why
            self._on_error(why)
