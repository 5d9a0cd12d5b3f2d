"""Worker processes that expand the states of one search, with the result of a single process.

The search starts in one process. When enough states wait, worker processes are forked. Each keeps
every n-th world. A world stays in the process that made it: workers send keys to the parent, and
the parent sends a key back when its state is to be expanded. The parent numbers the states in the
order in which a single process would meet them, so states, findings and runbooks are the same for
any number of processes.
"""

from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any

from assignor.workers import start_workers
from system_tests.explore.expansion import Expanded, Expander, Outcome
from system_tests.explore.key import Key
from system_tests.explore.moves import Move

_CHUNK = 8  # states a message
_AHEAD = 3  # the most unanswered messages per worker


class Workers:
    """An `Expander` in several processes."""

    def __init__(self, expander: Expander, keys: Sequence[Key], count: int) -> None:
        """Fork the worker processes.

        Args:
            expander: holds the worlds of all waiting states.
            keys: keys of these states, in the order in which they will be expanded.
            count: number of processes, at least 1.
        """
        self._owner = {key: number % count for number, key in enumerate(keys)}
        self._todo: list[deque[Key]] = [deque() for _ in range(count)]
        self._dropped: list[list[Key]] = [[] for _ in range(count)]
        self._sent: list[deque[list[Key]]] = [deque() for _ in range(count)]
        self._done: dict[Key, Any] = {}
        self._moves: dict[tuple[Any, ...], Move] = {}
        self._now = 0  # worker whose state is being expanded
        kept = [(expander, set(keys[number::count])) for number in range(count)]
        self._workers = start_workers(_serve, kept)

    def queue(self, key: Key) -> None:
        """Add a state to the queue of its worker."""
        self._todo[self._owner[key]].append(key)

    def claim(self, key: Key) -> None:
        """Record that the current worker holds the world of a new state."""
        self._owner[key] = self._now

    def drop(self, key: Key) -> None:
        """Let the current worker release the world of a state that another worker holds."""
        self._dropped[self._now].append(key)

    def expand(self, key: Key) -> Expanded | None:
        """Return an expanded state; None if its worker failed to expand it.

        Raises:
            WorkerLostError: a worker ended early.
        """
        self._now = self._owner.pop(key)
        self._send()
        while key not in self._done:
            self._receive()
            self._send()
        packed = self._done.pop(key)
        if packed is None:
            return None
        kinds, outcomes = packed
        return Expanded(kinds, tuple(map(self._unpacked, outcomes)))

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.kill()

    def _send(self) -> None:
        for number, todo in enumerate(self._todo):
            sent = self._sent[number]
            while todo and (not sent or (len(sent) < _AHEAD and len(todo) >= _CHUNK)):
                keys = [todo.popleft() for _ in range(min(len(todo), _CHUNK))]
                sent.append(keys)
                order = (self._dropped[number], keys)
                self._dropped[number] = []
                self._workers[number].send(order)

    def _receive(self) -> None:
        busy = [w.connection for w, sent in zip(self._workers, self._sent, strict=True) if sent]
        ready = wait(busy)
        for number, worker in enumerate(self._workers):
            if worker.connection in ready:
                found = worker.receive()
                self._done.update(zip(self._sent[number].popleft(), found, strict=True))

    def _unpacked(self, packed: tuple[Any, ...]) -> Outcome:
        move, *others = packed
        known = self._moves.get(move)
        if known is None:
            known = self._moves[move] = Move(*move)
        return Outcome(known, *others)


def _serve(end: Connection, expander: Expander, kept: set[Key]) -> None:
    """Expand the requested states until the parent closes its end of the connection."""
    expander.keep(kept)
    while True:
        dropped, keys = end.recv()
        expander.drop(dropped)
        end.send([_packed(expander, key) for key in keys])


def _packed(expander: Expander, key: Key) -> tuple[Any, ...] | None:
    """Return an expanded state as plain values; None if it cannot be expanded."""
    try:
        kinds, outcomes = expander.expand(key)
    except Exception:  # noqa: BLE001 the parent repeats the expansion and raises the error
        return None
    return kinds, [(tuple(move), *others) for move, *others in outcomes]
