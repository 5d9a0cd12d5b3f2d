"""Quotas: how many tasks each client gets, and how many of each pool stay."""

import numpy as np

from assignor import quotas, thread_bands
from assignor.placement import Bands
from spark_assign.huge.worker.rows import Bools, Ints

# Clients processed at a time.
_SLICE = 8_192


def fast_quotas(wanted: Ints, capacity: Ints, total: int, *, at_least: Ints | None = None) -> Ints:
    """As `quotas` of `assignor`, in time that does not grow with the number of missing tasks.

    Finds the level of whole tasks per thread; `quotas` adds the rest, less than one per thread.
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
    """Raise or lower all clients to `level` tasks per thread, within their bands."""
    if sign > 0:
        return np.minimum(bands.high, np.maximum(start, level * capacity))
    return np.maximum(bands.low, np.minimum(start, level * capacity))


def active_quotas(home: Ints, preferred: Ints, capacity: Ints, total: int) -> Ints:
    """Int [C]: quotas within the bands that keep most homes, then use most copies.

    Args:
        home: int [C], tasks whose home is the client.
        preferred: int [C], tasks without a home that have a copy on the client.
        capacity: int [C], threads.
        total: number of tasks.
    """
    bands = thread_bands(capacity, total)
    base: Ints = np.clip(home, bands.low, bands.high)
    spare = total - int(base.sum())
    if spare <= 0:
        return fast_quotas(home, capacity, total)
    wish = np.minimum(home + preferred, bands.high)
    return fast_quotas(np.maximum(base, wish), capacity, total, at_least=base)


def levelled_release(held: Ints, release: Ints) -> Ints:
    """Int [C, P]: how many tasks of each pool leave a client; the largest pools give first.

    Args:
        held: int [C, P], tasks of each client.
        release: int [C], tasks that leave, at most the sum of the row in `held`.
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
    # Find the lowest level for which at most `release` tasks leave.
    while (low < high).any():
        middle = (low + high) // 2
        over = np.maximum(held - middle[:, None], 0).sum(axis=1) > release
        low, high = np.where(over, middle + 1, low), np.where(over, high, middle)
    gone: Ints = np.maximum(held - low[:, None], 0)
    rest = release - gone.sum(axis=1)
    # The last pools at the level give one more each.
    at_level: Bools = (held - gone > 0) & (held - gone == low[:, None])
    turn = np.cumsum(at_level[:, ::-1], axis=1)[:, ::-1]
    gone += at_level & (turn <= rest[:, None])
    return gone


def shared_out(offered: Ints, limit: Ints) -> Ints:
    """Int [C, P]: as many of each row of `offered` as its limit allows, first pools first."""
    before = np.cumsum(offered, axis=1) - offered
    taken: Ints = np.clip(limit[:, None] - before, 0, offered)
    return taken
