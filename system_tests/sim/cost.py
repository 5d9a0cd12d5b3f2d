"""What a bounce cost: pauses, state to restore, tasks that moved, bytes on the wire.

A partition pauses from the moment that its owner gives it up, or dies, until another has it and has
read its state; records go on being written meanwhile. Counted from the first settled group on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from encoding import TopicPartition
from system_tests.sim.happenings import Answered, Ended, Gave, Happening, Settled, Took, Wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of one trace.

    Attributes:
        pause_ms: sum over all partitions; longest_pause_ms: of one partition at a time.
        paused_records: written while their partition paused, at the rate that was given.
        restored: records of state that were read again.
        moved: tasks that came to another process than the one that had them before.
        bytes: of all subscriptions and answers.
    """

    pause_ms: int
    longest_pause_ms: int
    paused_records: int
    restored: int
    moved: int
    bytes: int


def cost_of(trace: Iterable[Happening], *, records_per_second: int) -> Cost:
    """Add up a trace.

    Args:
        trace: of one simulation, from its beginning.
        records_per_second: written to each partition.
    """
    idle_since: dict[TopicPartition, int] = {}
    owner: dict[TopicPartition, str] = {}
    last_process: dict[TopicPartition, str] = {}
    pauses: list[int] = []
    restored = moved = size = 0
    counts = False
    for one in trace:
        match one:
            case Took():
                for partition in one.gained:
                    since_ms = idle_since.pop(partition, one.at_ms)
                    process = process_of(one.thread)
                    if counts:
                        pauses.append(one.at_ms - since_ms + one.restore_ms)
                        moved += last_process.get(partition, process) != process
                    owner[partition], last_process[partition] = one.thread, process
                restored += one.restored if counts else 0
            case Gave():
                for partition in one.partitions:
                    if owner.get(partition) == one.thread:
                        idle_since[partition] = one.at_ms
                        del owner[partition]
            case Ended():
                for partition in [p for p, thread in owner.items() if thread == one.thread]:
                    idle_since[partition] = one.at_ms
                    del owner[partition]
            case Wrote():
                size += one.size if counts else 0
            case Answered():
                size += sum(answer.size for answer in one.answers) if counts else 0
            case Settled():
                counts = True
            case _:
                pass
    return Cost(
        pause_ms=sum(pauses),
        longest_pause_ms=max(pauses, default=0),
        paused_records=sum(pauses) * records_per_second // 1000,
        restored=restored,
        moved=moved,
        bytes=size,
    )


def process_of(thread: str) -> str:
    """Name of the process that a thread belongs to: its lane without the number.

    >>> process_of("a2")
    'a'
    """
    return thread.rstrip("0123456789")
