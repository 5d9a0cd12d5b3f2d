"""Check and convert rows of the JSON form; an error names the field and the expected value."""

from typing import Any

from encoding.primitives import EncodeError, TaskId


def wrong(field: str, value: object, expected: str) -> EncodeError:
    """The error for a JSON value of the wrong shape; ``expected`` describes a correct one."""
    return EncodeError(field, value, None, f"give {expected}")


def is_row(row: object, width: int) -> bool:
    """Whether this is a list of ``width`` values."""
    return isinstance(row, list | tuple) and len(row) == width


def is_integer(value: object) -> bool:
    """Whether this is an integer and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def task_of_row(field: str, row: Any) -> TaskId:
    """The task of ``[subtopology, partition]`` or ``[subtopology, partition, name or null]``."""
    match row:
        case [a, b] if is_integer(a) and is_integer(b):
            return TaskId(a, b)
        case [a, b, str() | None as name] if is_integer(a) and is_integer(b):
            return TaskId(a, b, name or None)
    raise wrong(field, row, "a task as [subtopology, partition, name or null]")


def sums_of_rows(field: str, rows: list[Any]) -> dict[TaskId, int]:
    """Offset sums by task, from rows ``[subtopology, partition, name, offset sum]``."""
    for row in rows:
        if not is_row(row, 4) or not is_integer(row[3]):
            expected = "a list of [subtopology, partition, name, offset sum]"
            raise wrong(field, row, expected)
    return {task_of_row(field, row[:3]): row[3] for row in rows}


def partitions_of_rows(field: str, rows: Any) -> list[tuple[str, int]]:
    """Partitions from rows ``[topic, partition]``."""
    pairs: list[Any] = list(rows) if isinstance(rows, list | tuple) else [rows]
    for pair in pairs:
        match pair:
            case [str(), number] if is_integer(number):
                continue
        raise wrong(field, pair, "partitions as [[topic, partition]]")
    return [(topic, number) for topic, number in pairs]
