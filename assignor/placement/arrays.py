"""Searches in columns of integers."""

from itertools import pairwise

import numpy as np

from assignor.placement.state import BoolArray, IntArray


def rows_by_value(column: IntArray, rows: IntArray) -> dict[int, list[int]]:
    """Value -> the entries of `rows` that have it, in their order; by value; O(M log M).

    Args:
        column: int [M], the value of each row, such as its client.
        rows: int [M], such as tasks.
    """
    order = np.argsort(column, kind="stable")
    values, starts = np.unique(column[order], return_index=True)
    bounds = pairwise([*starts.tolist(), len(order)])
    ordered = rows[order].tolist()
    return {
        value: ordered[start:end]
        for value, (start, end) in zip(values.tolist(), bounds, strict=True)
    }


def is_among(keys: IntArray, ascending: IntArray) -> BoolArray:
    """Bool [keys]: which keys are in a sorted column; faster than `np.isin`, which hashes it."""
    place = np.searchsorted(ascending, keys)
    found: BoolArray = place < len(ascending)
    found[found] = ascending[place[found]] == keys[found]
    return found
