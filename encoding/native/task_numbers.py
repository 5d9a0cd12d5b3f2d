"""Task numbers: positions in (subtopology, partition) order, given the sizes of subtopologies.

A number takes one or two bytes as a gap, or one bit; Kafka uses eight bytes and a name. The sizes
are equal for a whole group, so numberings are cached.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate, groupby

import numpy as np
import numpy.typing as npt

from encoding.native.schema import MAX_SUBTOPOLOGIES, MAX_TASKS
from encoding.primitives import Cursor, WireFault, encode_varints

Int32Column = npt.NDArray[np.int32]
_KEPT = 16  # numberings kept; a process works for few groups at a time


class Numbering:
    """The task numbering for ``sizes``, the number of tasks of each subtopology.

    Attributes:
        sizes: tasks of each subtopology.
        starts: number of each subtopology's first task, and the number of all tasks at the end.
        total: number of all tasks.
        written: the sizes on the wire.
    """

    __slots__ = ("_sizes", "_starts", "sizes", "starts", "total", "written")

    def __init__(self, sizes: tuple[int, ...], written: bytes) -> None:
        self.sizes, self.written = sizes, written
        self.starts = list(accumulate(sizes, initial=0))
        self.total = self.starts[-1]
        self._sizes = np.array(sizes, np.int32)
        self._starts = np.array(self.starts, np.int32)

    def numbers_of(
        self, subtopologies: Int32Column, partitions: Int32Column
    ) -> tuple[Int32Column, npt.NDArray[np.bool_] | None]:
        """Numbers of the tasks that have one, and a mask of these tasks (``None``: all)."""
        known = subtopologies.view(np.uint32) < len(self.sizes)  # negative ones are huge
        subs = subtopologies if bool(known.all()) else np.where(known, subtopologies, 0)
        if not self.sizes:
            return np.empty(0, np.int32), known
        inside = known & (partitions.view(np.uint32) < self._sizes[subs])
        numbers: Int32Column = self._starts[subs] + partitions
        if bool(inside.all()):
            return numbers, None
        return numbers[inside], inside

    def tasks_of(self, numbers: Int32Column) -> tuple[Int32Column, Int32Column]:
        """Subtopologies and partitions of numbers, all of them below ``total``."""
        subs = np.searchsorted(self._starts, numbers, side="right").astype(np.int32)
        subs -= 1
        return subs, numbers - self._starts[subs]


@lru_cache(maxsize=_KEPT)
def numbering_of(sizes: tuple[int, ...]) -> Numbering:
    """The numbering of these sizes; ``WireFault`` for sizes that readers refuse."""
    if len(sizes) > MAX_SUBTOPOLOGIES:
        raise WireFault(f"{len(sizes)} subtopologies; at most {MAX_SUBTOPOLOGIES} fit")
    if any(type(size) is not int or size < 0 for size in sizes):
        raise WireFault("sizes are numbers of tasks: integers from 0 on")
    if sum(sizes) > MAX_TASKS:
        raise WireFault(f"{sum(sizes)} tasks in all; at most {MAX_TASKS} fit")
    return Numbering(sizes, encode_varints(_runs(sizes)))


@lru_cache(maxsize=_KEPT)
def read_numbering(data: bytes) -> Numbering:
    """The numbering of the sizes in these bytes; ``WireFault`` for too many."""
    cursor = Cursor(data)
    sizes: list[int] = []
    total = 0
    while cursor.left:
        size, repeats = cursor.varint(), cursor.varint() + 1
        total += size * repeats
        if len(sizes) + repeats > MAX_SUBTOPOLOGIES:
            raise WireFault(f"more than {MAX_SUBTOPOLOGIES} subtopologies")
        if total > MAX_TASKS:
            raise WireFault(f"more than {MAX_TASKS} tasks in all")
        sizes += [size] * repeats
    return Numbering(tuple(sizes), data)


def _runs(sizes: Iterable[int]) -> list[int]:
    runs = []
    for size, equal in groupby(sizes):
        runs += [size, len(list(equal)) - 1]
    return runs
