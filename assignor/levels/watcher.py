"""A background thread polls the level source for one member (KIP-584, T2 to T3).

The client's thread reads the newest levels before it writes a subscription; the background thread
never touches the member. Polls have a random jitter, so that a thousand members do not poll at
once.
"""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from assignor.levels.log import leader_note, look_at_log, opened_log
from assignor.logs import line_logger
from assignor.stores import FolderDisk, read_reached, write_reached
from encoding import RebalanceError
from probing.features import (
    UNKNOWN_LEVELS,
    FinalizedLevels,
    NodeSupport,
    newest_levels,
    raised_minimums,
)
from probing.topologies import Reached, greatest, lacks, newest_memory

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


@runtime_checkable
class KeepsReached(Protocol):
    """A level source that also keeps reached versions of the topology: as `KeepsMinimums`."""

    def reached(self) -> Mapping[bytes, Reached]:
        """Return fingerprints of forms with their versions; may wait, and raise any exception.

        They may be more than a member remembers: it takes those that concern it.
        """
        ...

    def remember_reached(self, memory: Mapping[bytes, Reached]) -> None:
        """Add to what is kept; of each form the greater entry stays; as `reached`."""
        ...


DEFAULT_EVERY_S = 60.0
_LEVELS, _MINIMUMS, _REACHED = (
    "levels cannot be read",
    "minimum levels cannot be raised",
    "reached versions of the topology cannot be kept",
)
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

    def reached(self) -> Mapping[bytes, Reached]:
        """Return the reached versions of the topology that the directory keeps.

        Raises:
            StoreError: the file is damaged.
        """
        return read_reached(self._disk.folder)

    def remember_reached(self, memory: Mapping[bytes, Reached]) -> None:
        """Add to the reached versions; of each form the greater entry stays.

        Args:
            memory: fingerprint of a form -> reached version.

        Raises:
            StoreError: another process is writing the log, or a file is missing or damaged.
        """
        with opened_log(self._disk.folder):
            before = read_reached(self._disk.folder)
            merged = newest_memory(before, memory, first=memory.keys())
            if merged != before:
                write_reached(self._disk.folder, merged)


class LevelWatch:
    """A background thread that polls a level source, at once and then periodically.

    Args:
        source: level source; called on the thread.
        on_levels: called on the thread with newer levels.
        on_reached: called on the thread with newer reached versions of the topology.
        on_error: called on the thread with each new problem, as a sentence.
        every_s: mean seconds between two polls; the jitter is up to 20 %.
        rng: returns a random number from 0 to 1, for the jitter.
    """

    def __init__(
        self,
        source: LevelSource,
        *,
        on_levels: Callable[[FinalizedLevels], None],
        on_reached: Callable[[Mapping[bytes, Reached]], None] = lambda _: None,
        on_error: Callable[[str], None] = lambda _: None,
        every_s: float = DEFAULT_EVERY_S,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._source = source
        with_minimums: object = source
        self._minimums = with_minimums if isinstance(with_minimums, KeepsMinimums) else None
        self._memory = with_minimums if isinstance(with_minimums, KeepsReached) else None
        self._on_levels = on_levels
        self._on_reached = on_reached
        self._on_error = on_error
        self._every_s = every_s
        self._rng = rng
        self._found = UNKNOWN_LEVELS
        self._reached: Mapping[bytes, Reached] = {}
        self._to_keep: Mapping[bytes, Reached] = {}
        self._has_looked = False
        # Kind of problem -> the sentence that was reported last.
        self._reported: dict[str, str] = {}
        self._group: tuple[NodeSupport, ...] = ()
        self._closed = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feature-levels", daemon=True)

    @property
    def found(self) -> FinalizedLevels:
        """The newest levels of all polls so far; does not wait."""
        return self._found

    @property
    def reached(self) -> Mapping[bytes, Reached]:
        """The reached versions of the topology of the last poll; does not wait."""
        return self._reached

    def keep(self, memory: Mapping[bytes, Reached]) -> None:
        """Have the source keep what the group remembers, at once if it does not yet.

        Args:
            memory: fingerprint of a form -> reached version, by the answers of this leader.
        """
        self._to_keep = memory
        if self._memory is not None and lacks(self._reached, memory):
            self._wake.set()

    def leads(self, members: Sequence[NodeSupport]) -> None:
        """Set the members that this member leads; the next poll raises minimums that all support.

        Args:
            members: the members of the generation; empty if this member is not the leader.
        """
        self._group = tuple(members)

    def start(self) -> None:
        """Start the thread, unless this is closed."""
        if not self._closed.is_set():
            self._thread.start()

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop the thread; wait at most `timeout_s` for a poll in progress."""
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._closed.is_set():
            self._wake.clear()
            self._look()
            spread = 1 + _SPREAD * (2 * self._rng() - 1)
            if not self._closed.is_set():
                self._wake.wait(max(self._every_s * spread, _LEAST_BETWEEN_S))

    def _look(self) -> None:
        try:
            levels = self._source()
        except Exception as error:  # noqa: BLE001 a client may raise anything; keep running
            self._failed(_LEVELS, error)
            return
        self._reported.pop(_LEVELS, None)
        newest = newest_levels((self._found, levels))
        if newest != self._found:
            self._found = newest
            self._on_levels(newest)
        self._raise_minimums(levels)
        self._look_at_reached()

    def _raise_minimums(self, levels: FinalizedLevels) -> None:
        """Raise minimums that all members support; a leader without write permission fails here."""
        group = self._group
        try:
            if self._minimums is not None and raised_minimums(levels, {}, group):
                self._minimums.raise_minimums(group)
        except Exception as error:  # noqa: BLE001 as above
            self._failed(_MINIMUMS, error)
            return
        self._reported.pop(_MINIMUMS, None)

    def _look_at_reached(self) -> None:
        """Read and add to the memory of topologies: once when the member starts, then as leader.

        The other members learn it from the leader's answers.
        """
        if self._memory is None or (self._has_looked and not self._group):
            return
        try:
            found = dict(self._memory.reached())
            if found != self._reached:
                self._reached = found
                self._on_reached(found)
            self._has_looked = True
            if self._group and lacks(self._reached, self._to_keep):
                self._memory.remember_reached(self._to_keep)
                self._reached = greatest(self._reached, self._to_keep)
        except Exception as error:  # noqa: BLE001 as above
            self._failed(_REACHED, error)
            return
        self._reported.pop(_REACHED, None)

    def _failed(self, what: str, error: Exception) -> None:
        known = isinstance(error, RebalanceError)
        why = f"{what}: {error if known else f'{type(error).__name__}: {error}'}"
        _log.warning("%s", why, exc_info=None if known else error)
        if why != self._reported.get(what):
            self._reported[what] = why
            self._on_error(why)
