"""How many tasks each client gets, and of which pools they stay; arrays, never tasks."""

import numpy as np

from assignor import quotas, thread_bands
from assignor.placement import Bands
from spark_assign.huge.worker.rows import Bools, Ints

# Clients whose pools are levelled at a time.
_SLICE = 8_192


def fast_quotas(wanted: Ints, capacity: Ints, total: int, *, at_least: Ints | None = None) -> Ints:
    """As `quotas` of `assignor`, in time that does not grow with the tasks that are missing.

    Whole tasks a thread are handed out at once; what is left is less than one for each.
    """
    bands = thread_bands(capacity, total, at_least)
    start: Ints = np.clip(wanted, bands.low, bands.high)
    missing = total - int(start.sum())
    low, high = 0, int(bands.high.max(initial=0)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        level = _levelled(start, capacity, middle, bands, missing)
        is_beyond = int(level.sum()) > total if missing > 0 else int(level.sum()) >= total
        low, high = (low, middle) if is_beyond else (middle, high)
    if missing > 0:
        start = _levelled(start, capacity, low, bands, missing)
    elif missing < 0:
        start = _levelled(start, capacity, high, bands, missing)
    return quotas(start, capacity, total, at_least=at_least)


def _levelled(start: Ints, capacity: Ints, level: int, bands: Bands, sign: int) -> Ints:
    """Everybody up to, or down to, so many tasks a thread, as far as bands allow."""
    if sign > 0:
        return np.minimum(bands.high, np.maximum(start, level * capacity))
    return np.maximum(bands.low, np.minimum(start, level * capacity))


def active_quotas(home: Ints, preferred: Ints, capacity: Ints, total: int) -> Ints:
    """Int [C]: quotas inside the bands that keep as many homes, then as many copies, as can be.

    Args:
        home: int [C], tasks that run well there.
        preferred: int [C], tasks without a home that have a copy there.
        capacity: int [C], threads.
        total: tasks.
    """
    bands = thread_bands(capacity, total)
    base: Ints = np.clip(home, bands.low, bands.high)
    spare = total - int(base.sum())
    if spare <= 0:
        return fast_quotas(home, capacity, total)
    wish = np.minimum(home + preferred, bands.high)
    return fast_quotas(np.maximum(base, wish), capacity, total, at_least=base)


def levelled_release(held: Ints, release: Ints) -> Ints:
    """Int [C, P]: which of a client's tasks leave, out of its largest pools.

    Args:
        held: int [C, P].
        release: int [C], at most the sums of the rows.
    """
    gone = np.zeros_like(held)
    givers = np.flatnonzero(release > 0)
    for start in range(0, len(givers), _SLICE):
        rows = givers[start : start + _SLICE]
        gone[rows] = _levelled_release(held[rows], release[rows])
    return gone


def _levelled_release(held: Ints, release: Ints) -> Ints:
    low = np.zeros(len(held), dtype=np.int64)
    high = held.max(axis=1)
    # The lowest level down to which not more than `release` leave.
    while (low < high).any():
        middle = (low + high) // 2
        over = np.maximum(held - middle[:, None], 0).sum(axis=1) > release
        low, high = np.where(over, middle + 1, low), np.where(over, high, middle)
    gone: Ints = np.maximum(held - low[:, None], 0)
    rest = release - gone.sum(axis=1)
    # Among pools at the level the last ones give one more.
    at_level: Bools = (held - gone > 0) & (held - gone == low[:, None])
    turn = np.cumsum(at_level[:, ::-1], axis=1)[:, ::-1]
    gone += at_level & (turn <= rest[:, None])
    return gone


def shared_out(offered: Ints, limit: Ints) -> Ints:
    """Int [C, P]: as much of each row as its limit allows, first pools first."""
    before = np.cumsum(offered, axis=1) - offered
    taken: Ints = np.clip(limit[:, None] - before, 0, offered)
    return taken
