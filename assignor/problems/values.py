"""Read and check values of a problem file: objects, lists, texts, tasks, lags."""

import difflib
import functools
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from assignor.errors import TaskAssignmentError
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, ClientInput
from encoding import TaskId, shown
from encoding.inspection import is_integer
from encoding.primitives import has_half_pair

_LAG_BY_WORD = {"running": LAG_RUNNING, "unknown": LAG_UNKNOWN}
_QUOTED_CHARS = 100
_DIGITS_MAX = 9
_TASK_NAME_MAX = 2 * _DIGITS_MAX + 1
# Groups of a file have mostly the same task names; an entry takes about 200 bytes.
_NAMES_REMEMBERED = 1 << 16
_THREADS_MAX = 10**6
_WEIGHT_MAX = 1e15
Json = Mapping[str, Any]
INSTANCES_KEY: Final = "instance_ids"
"""Key of a client whose members are static: the group.instance.id of each."""
CLIENT_KEYS: Final = frozenset(
    {"threads", "rack", "tags", "active", "standby", "lags"}
    # Written by `assignor inspect --save`, read by `size`.
    | {"consumers", "endpoint", "client", "versions", INSTANCES_KEY}
)


class ProblemError(TaskAssignmentError):
    """A problem is invalid or contradicts itself; the message says where."""


def quoted(value: object) -> str:
    """The `repr` of a value on one printable line of limited length."""
    try:
        return shown(repr(value), limit=_QUOTED_CHARS)
    except (ValueError, RecursionError):  # a number of thousands of digits, lists within lists
        return f"{type(value).__name__} too long to be shown"


def checked_object(value: object, what: str) -> Json:
    """The value, checked to be a JSON object.

    Raises:
        ProblemError: it has another type; the message calls it `what`.
    """
    if not isinstance(value, dict):
        raise ProblemError(f"{what} is {type(value).__name__}; give an object")
    return value


def check_keys(given: Iterable[str], known: Collection[str], where: str, kind: str) -> None:
    """Check that all keys are known.

    Raises:
        ProblemError: one is not; names the place, the key, and the most similar of `known`.
    """
    odd = sorted(set(given) - set(known))
    if odd:
        near = difflib.get_close_matches(odd[0], sorted(known), n=1)
        hint = f"did you mean {near[0]}?" if near else "leave it out"
        raise ProblemError(f"{where} has key {shown(odd[0])}, which {kind} do not have; {hint}")


def object_at(data: Json, key: str) -> Json:
    """The JSON object at a key; empty if it is missing or null.

    Raises:
        ProblemError: the value has another type.
    """
    value = data.get(key)
    return {} if value is None else checked_object(value, key)


def list_at(data: Json, key: str, where: str) -> list[Any]:
    """The list at a key; empty if it is missing or null.

    Raises:
        ProblemError: the value has another type.
    """
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ProblemError(f"{where}: {key} is {type(value).__name__}; give a list")
    return value


def texts_at(data: Json, key: str, where: str) -> list[str]:
    """The list of texts at a key; empty if it is missing or null.

    Raises:
        ProblemError: the value or one of its entries has another type.
    """
    values = list_at(data, key, where)
    for value in values:
        if not isinstance(value, str):
            raise ProblemError(f"{where}: {key} has entry {quoted(value)}; give texts")
    return values


def index_of(text: str) -> int | None:
    """The number of a text of up to nine digits without leading zeros; None for other texts."""
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    return int(text) if is_number and (text == "0" or text[0] != "0") else None


def task_of(name: object, where: str) -> TaskId:
    """The task id of a name.

    Raises:
        ProblemError: the name is not SUBTOPOLOGY_PARTITION.
    """
    is_short = isinstance(name, str) and len(name) <= _TASK_NAME_MAX
    task = _task_named(name) if is_short else None
    if task is None:
        raise ProblemError(
            f"{where} names task {quoted(name)}; tasks are SUBTOPOLOGY_PARTITION, as 0_1"
        )
    return task


@functools.lru_cache(maxsize=_NAMES_REMEMBERED)
def _task_named(name: str) -> TaskId | None:
    """The task SUBTOPOLOGY_PARTITION; None for other texts."""
    first, _, second = name.partition("_")
    subtopology, partition = index_of(first), index_of(second)
    if subtopology is None or partition is None:
        return None
    return TaskId(subtopology, partition)


def read_client(
    process_id: str, given: object, *, before: Mapping[TaskId, int] | None = None
) -> ClientInput:
    """Read one entry of `clients`.

    Raises:
        ProblemError: it is invalid; the message names the client and the value.
    """
    where = f"client {shown(process_id)}"
    if has_half_pair(process_id):
        raise ProblemError(
            f"{where} has half a surrogate pair in its id, which UTF-8 cannot encode;"
            " give a valid text"
        )
    client = checked_object(given, where)
    threads = client.get("threads", 1)
    if not is_integer(threads) or not 0 <= threads <= _THREADS_MAX:
        raise ProblemError(
            f"{where} has threads {quoted(threads)}; give a whole number, 0 to {_THREADS_MAX}"
        )
    rack = client.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise ProblemError(f"{where} has rack {quoted(rack)}; give text or null")
    tags = object_at(client, "tags")
    for key, value in tags.items():
        if not isinstance(value, str):
            raise ProblemError(f"{where} has tag {shown(key)} {quoted(value)}; give text")
    active = frozenset(task_of(t, where) for t in list_at(client, "active", where))
    standby = frozenset(task_of(t, where) for t in list_at(client, "standby", where))
    both = sorted(active & standby)
    if both:
        raise ProblemError(
            f"{where} has task {both[0]} both in active and in standby; remove it from one"
        )
    lags = {
        task_of(task, where): _lag(value, where, task)
        for task, value in object_at(client, "lags").items()
    }
    return ClientInput(
        process_id=process_id,
        threads=threads,
        active_tasks=active,
        lags=lags,
        left_over=frozenset(lags.keys() - active - standby),
        lags_before=before or {},
        rack=rack or None,
        tags=tuple(sorted(tags.items())),
    )


def _lag(value: object, where: str, task: str) -> int:
    if isinstance(value, str) and value in _LAG_BY_WORD:
        return _LAG_BY_WORD[value]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProblemError(
            f"{where} reports lag {quoted(value)} for task {task}; "
            'give "running", "unknown" or a number'
        )
    if not 0 <= value < LAG_UNKNOWN:
        raise ProblemError(
            f"{where} reports lag {quoted(value)} for task {task}; lags are 0 to {LAG_UNKNOWN - 1}"
        )
    return value


def records_behind(value: object, where: str) -> int:
    """A lag in records.

    Raises:
        ProblemError: it is not a whole number, or below 0; the message starts with `where`.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LAG_UNKNOWN:
        raise ProblemError(
            f"{where} has lag {quoted(value)}; give a whole number, 0 to {LAG_UNKNOWN - 1}"
        )
    return value


def check_number(key: str, task: TaskId, value: object) -> None:
    """Check an entry of `end_offset_sums` or `weights`.

    Raises:
        ProblemError: it is no number, or out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ProblemError(f"{key} of {task} is {quoted(value)}; give a number")
    if key == "end_offset_sums" and not (isinstance(value, int) and value < LAG_UNKNOWN):
        raise ProblemError(
            f"end_offset_sums of {task} is {quoted(value)}; give a whole number below 2^63 - 1"
        )
    # `not <=` rejects NaN too.
    if key == "weights" and not value <= _WEIGHT_MAX:
        raise ProblemError(f"weights of {task} is {quoted(value)}; give a number up to 1e15")
    if key == "weights" and value <= 0:
        raise ProblemError(f"task {task} has weight {quoted(value)}; weights are above 0")
    if value < 0:
        raise ProblemError(f"task {task} has end offset sum {quoted(value)}; it is 0 or more")
