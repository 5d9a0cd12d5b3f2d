"""Task numbers of one topology as those of another."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from assignor.rebalance.forms.numbering import NOT_HERE
from assignor.topology import Subtopology, content_fingerprint
from encoding import Assignment, TaskId, TaskOffsetSums


def renumbered(sums: TaskOffsetSums, to_group: Sequence[int]) -> TaskOffsetSums:
    """Return offset sums in a group's numbers; tasks without one are left out.

    Args:
        sums: in the numbering of their writer.
        to_group: number in the group of each of the writer's numbers; -1: none.
    """
    if not len(sums):
        return sums
    table = np.array([*to_group, NOT_HERE], np.int64)
    known = (sums.subtopologies >= 0) & (sums.subtopologies < len(to_group))
    numbers = table[np.where(known, sums.subtopologies, len(to_group))]
    kept = numbers != NOT_HERE
    if sums.names is not None:
        kept &= np.array([name is None for name in sums.names])
    return TaskOffsetSums.from_columns(
        numbers[kept].astype(np.int32), sums.partitions[kept], sums.sums[kept]
    )


def own_numbers(
    numbered_by: Sequence[bytes], subtopologies: Sequence[Subtopology]
) -> dict[int, int]:
    """Return the group's number of each subtopology that a member has -> its own number."""
    own = {content_fingerprint(part): part.id for part in subtopologies}
    return {number: own[form] for number, form in enumerate(numbered_by) if form in own}


def in_own_numbers(value: Assignment, numbers: dict[int, int]) -> tuple[Assignment, list[TaskId]]:
    """Return an answer in a member's own task numbers, and the tasks that the member has not."""
    native = value.native
    tasks = {*value.active_tasks, *value.standby_tasks}
    unknown = sorted(t for t in tasks if t.subtopology not in numbers or t.topology_name)

    def own(task: TaskId) -> TaskId:
        return TaskId(numbers[task.subtopology], task.partition)

    if unknown:
        return value, unknown
    return (
        replace(
            value,
            active_tasks=tuple(map(own, value.active_tasks)),
            standby_tasks={own(task): inputs for task, inputs in value.standby_tasks.items()},
            native=native
            and replace(
                native,
                warmup_tasks=tuple(
                    own(task) for task in native.warmup_tasks if task.subtopology in numbers
                ),
            ),
        ),
        [],
    )
