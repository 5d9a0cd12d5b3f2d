"""What ``assignor reset`` writes."""

from assignor.cli.reset.plan import OffsetMove, Reset
from assignor.cli.toolkit import say
from assignor.cli.toolkit.text import print_line
from assignor.inspection import few
from encoding import shown


def print_reset(group: str, found: Reset, *, is_executed: bool) -> None:
    """Print what is reset, and what is not."""
    again = sum(move.end - move.to for move in found.moves)
    print_line(f"group {shown(group)} has no members; {again} records of input to process")
    for move in found.moves:
        print_line(f"  {_move_text(move)}")
    verb = "are deleted" if is_executed else "would be deleted"
    if found.partitions:
        print_line(f"internal topics that {verb}:")
        for name, count in sorted(found.partitions.items()):
            print_line(f"  {shown(name)}, {count} partitions")
    for name in found.missing:
        print_line(f"  {shown(name)} does not exist")
    for path, tasks in found.state.items():
        size = sum(task.size for task in tasks)
        named = ", ".join(str(task.task) for task in tasks) or "none"
        print_line(f"tasks in {shown(str(path))} that {verb}: {named}; {size} bytes")
    if found.unnamed:
        say(
            "assignor",
            f"topics with names of internal topics of this group that stay: {few(found.unnamed)}; "
            "if one is of this application, name it with --internal-topic",
        )
    if not is_executed:
        print_line("nothing was changed; add --execute to reset")
    elif found.partitions:
        print_line(
            "done; reset the state directories on other machines, too, before a member starts there"
        )


def _move_text(move: OffsetMove) -> str:
    """Return what becomes of a committed offset.

    >>> from encoding import TopicPartition
    >>> words = TopicPartition("words", 0)
    >>> _move_text(OffsetMove(partition=words, committed=80, to=20, start=20, end=90, wanted=0))
    'words-0: committed offset 80 -> 20 of 20 to 90; 0 is before the first record'
    """
    topic, number = move.partition
    before = "none" if move.committed is None else str(move.committed)
    limited = ""
    if move.wanted != move.to:
        where = "before the first record" if move.wanted < move.to else "beyond the end"
        limited = f"; {move.wanted} is {where}"
    return (
        f"{shown(topic)}-{number}: committed offset {before} -> {move.to} "
        f"of {move.start} to {move.end}{limited}"
    )


def reset_object(group: str, found: Reset, *, is_executed: bool) -> dict[str, object]:
    """Return what is reset, for ``--format json``."""
    return {
        "executed": is_executed,
        "group": group,
        "offsets": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "committed": move.committed,
                "to": move.to,
                "start": move.start,
                "end": move.end,
                "wanted": move.wanted,
            }
            for move in found.moves
        ],
        "deleted": dict(sorted(found.partitions.items())),
        "missing": list(found.missing),
        "unnamed": list(found.unnamed),
        "state": [
            {"directory": str(path), "task": str(task.task), "bytes": task.size}
            for path, tasks in found.state.items()
            for task in tasks
        ],
    }
