"""Read one long problem into columns: a line of hundreds of megabytes, with millions of tasks.

The text is scanned once. A client is read as `read_problem` reads it; of its tasks only numbers are
kept, so memory is a few times the size of the line. A problem has as many tasks as it says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from assignor.config import setting_texts
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, NOBODY, ClientInput
from assignor.problems import (
    ProblemError,
    check_number,
    object_at,
    read_problem,
    read_schedule,
    task_of,
)
from encoding import TaskId, shown
from spark_assign.huge.lines.numbers import Numbers, code_of
from spark_assign.huge.lines.scanner import Scanner, repeated
from spark_assign.tables import printable_name

# Tasks are read here; keys for simulations have no meaning for a plan.
_OTHERS = frozenset({"topics", "subtopologies", "weights", "events", "stuck"})
_Racks = Mapping[str, Mapping[str, Sequence[str]]]
_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A subtopology: its topics, and the number of its tasks."""

    number: int
    sources: tuple[str, ...]
    logs: tuple[str, ...]
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LongProblem:
    """A problem as columns; its tasks are in order.

    Attributes:
        name: of the group.
        config: its settings as texts.
        warnings: what was ignored.
        clients: sorted by process id, without their tasks.
        codes: int [T], subtopology << 32 | partition.
        owner: int [T], the client that runs the task, or NOBODY.
        ends: int [T], end offset sums; LAG_UNKNOWN if unknown.
        copy_start, copy_client, copy_lag: as in a `GroupState`.
        weights: of tasks, by code, where they are given.
        topics: the number of partitions of each.
        racks: topic -> partition -> names.
        parts: the subtopologies.
    """

    name: str
    config: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    clients: tuple[ClientInput, ...]
    codes: _Ints
    owner: _Ints
    ends: _Ints
    copy_start: _Ints
    copy_client: _Ints
    copy_lag: _Ints
    weights: Mapping[int, float]
    topics: Mapping[str, int]
    racks: _Racks
    parts: tuple[Part, ...]


def read_long_problem(text: str) -> LongProblem:
    """Read a problem.

    Raises:
        ProblemError: it is invalid.
        ConfigError: a setting is.
        TaskAssignmentError: a number is below 0.
    """
    scanner, numbers, data = Scanner(text), Numbers(), {}
    seen: set[str] = set()
    for key in scanner.members():
        if key in seen:
            raise repeated(key)
        seen.add(key)
        if key == "clients" and scanner.has_object():
            numbers.read_clients(scanner)
        elif key == "end_offset_sums" and scanner.has_object():
            numbers.read_sums(scanner)
        else:
            data[key] = scanner.value()
    scanner.end()
    for key in ("clients", "end_offset_sums"):
        object_at(data, key)  # null, or an error
    # The reader of problems checks the rest: name, settings, unknown keys.
    left = {key: value for key, value in data.items() if key not in _OTHERS}
    head = read_problem(left | _odd_keys(data, numbers.odd_keys))
    parts, topics, racks = _parts(data)
    read_schedule(data, numbers.clients)
    _check_texts(head.name, numbers.clients.values(), racks)
    codes = _codes(parts)
    return LongProblem(
        name=head.name,
        config=tuple(sorted(setting_texts(head.state.config).items())),
        topics=topics,
        racks=racks,
        parts=parts,
        codes=codes,
        weights=_weights(data, codes),
        **_columns(numbers, codes, head.state.warnings),
    )


def _odd_keys(data: Mapping[str, Any], of_clients: Iterable[str]) -> dict[str, Any]:
    """A small problem with the keys of clients, topics and subtopologies, which may be unknown."""
    topics, parts = (object_at(data, key).values() for key in ("topics", "subtopologies"))
    own = {"partitions": 0, "racks": None, "sources": None, "changelogs": None}
    topic, part = (
        {key: own.get(key) for entry in entries if isinstance(entry, dict) for key in entry}
        for entries in (topics, parts)
    )
    return {
        "clients": {"any": dict.fromkeys(sorted(of_clients))},
        "topics": {"any": {"partitions": 0} | topic},
        "subtopologies": {"0": part},
    }


def _check_texts(name: str, clients: Iterable[ClientInput], racks: _Racks) -> None:
    """Check that texts can be written; ids of clients are checked already.

    Raises:
        ProblemError: one has half a surrogate pair.
    """
    texts = [
        name,
        *(rack for rows in racks.values() for row in rows.values() for rack in row or ()),
    ]
    for client in clients:
        texts += [client.rack or "", *chain.from_iterable(client.tags)]
    for text in texts:
        if printable_name(text) != text:
            raise ProblemError(
                f"{shown(text)} has half a surrogate pair, which UTF-8 cannot encode; give a valid"
                " text"
            )


def _weights(data: Mapping[str, Any], codes: _Ints) -> dict[int, float]:
    """The weights, by code of their task."""
    weights = {}
    for name, weight in object_at(data, "weights").items():
        task = task_of(name, "weights")
        check_number("weights", task, weight)
        weights[code_of(task)] = float(weight)
    if (missing := _places(codes, np.array([*weights], dtype=np.int64)) < 0).any():
        raise _not_there("weights", [*weights][int(np.argmax(missing))])
    return weights


def _not_there(key: str, code: int) -> ProblemError:
    return ProblemError(f"{key} names task {_task(code)}, which does not exist; leave it out")


def _parts(data: Mapping[str, Any]) -> tuple[tuple[Part, ...], dict[str, int], _Racks]:
    """The subtopologies by number, the partitions of all topics, and their racks."""
    counts, racks = {}, {}
    for name, topic in object_at(data, "topics").items():
        # Checks the topic, and the racks of its partitions.
        small = {"topics": {name: topic}, "subtopologies": {}, "clients": {"any": {}}}
        read_problem(small)
        counts[name] = topic["partitions"]
        racks[name] = topic.get("racks") or {}
    parts = []
    for number, part in object_at(data, "subtopologies").items():
        none = {name: {"partitions": 0} for name in counts}
        small = {"topics": none, "subtopologies": {number: part}, "clients": {"any": {}}}
        read_problem(small)
        sources, logs = part.get("sources") or (), part.get("changelogs") or ()
        width = max((counts[name] for name in sources), default=0)
        parts.append(Part(number=int(number), sources=(*sources,), logs=(*logs,), width=width))
    found = racks if any(any(rows.values()) for rows in racks.values()) else {}
    return tuple(sorted(parts, key=lambda part: part.number)), counts, found


def _codes(parts: Sequence[Part]) -> _Ints:
    ranges = [part.number << 32 | np.arange(part.width, dtype=np.int64) for part in parts]
    return np.concatenate([np.zeros(0, dtype=np.int64), *ranges])


def _columns(numbers: Numbers, codes: _Ints, warnings: tuple[str, ...]) -> dict[str, Any]:
    """The columns of a `LongProblem` that come from clients and sums.

    Raises:
        ProblemError: there are no clients, a task runs twice, or a sum is of no task.
    """
    if not (names := list(numbers.clients)):
        raise ProblemError("no clients: a group without members has no assignment")
    order = sorted(range(len(names)), key=names.__getitem__)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    given = (numbers.active, numbers.copies, numbers.sums)
    active, copies, sums = (_places(codes, np.array(part, dtype=np.int64)) for part in given)
    if (sums < 0).any():
        code = numbers.sums[int(np.argmax(sums < 0))]
        raise _not_there("end_offset_sums", code)
    if len(np.unique(sums)) < len(sums):
        twice = np.sort(sums)
        raise repeated(str(_task(int(codes[twice[:-1][twice[1:] == twice[:-1]][0]]))))
    runs = np.repeat(rank, numbers.active_counts)
    holds = np.repeat(rank, numbers.copy_counts)
    gone = (active < 0).sum() + (copies < 0).sum()
    if gone:
        warnings = (*warnings, f"clients report {gone} tasks that do not exist")
    runs, active = runs[active >= 0], active[active >= 0]
    owner = _owners(codes, active, runs, [names[place] for place in order])
    lags = np.array(numbers.lags, dtype=np.int64)[copies >= 0]
    holds, copies = holds[copies >= 0], copies[copies >= 0]
    is_running = np.flatnonzero(lags == LAG_RUNNING)
    known = owner.copy()
    unowned = is_running[owner[copies[is_running]] == NOBODY]
    # The first client in the file remains.
    known[copies[unowned[::-1]]] = holds[unowned[::-1]]
    odd = is_running[known[copies[is_running]] != holds[is_running]]
    if len(odd):
        task, (first, second) = copies[odd[0]], (known[copies[odd[0]]], holds[odd[0]])
        raise ProblemError(
            f"task {_task(int(codes[task]))} runs on {shown(names[order[first]])}, and "
            f'{shown(names[order[second]])} reports lag "running"; a task runs on one client'
        )
    by_task = np.lexsort((holds, copies))
    ends = np.full(len(codes), LAG_UNKNOWN, dtype=np.int64)
    ends[sums] = np.array(numbers.sum_values, dtype=np.int64)
    starts = np.zeros(len(codes) + 1, dtype=np.int64)
    np.cumsum(np.bincount(copies, minlength=len(codes)), out=starts[1:])
    return {
        "clients": tuple(numbers.clients[names[place]] for place in order),
        "warnings": warnings,
        "owner": owner,
        "ends": ends,
        "copy_start": starts,
        "copy_client": holds[by_task],
        "copy_lag": lags[by_task],
    }


def _owners(codes: _Ints, active: _Ints, runs: _Ints, names: Sequence[str]) -> _Ints:
    """The client of each task that runs, or NOBODY.

    Args:
        codes: of the tasks.
        active: int [A], places of tasks that run.
        runs: int [A], the client that runs each.
        names: of the clients.

    Raises:
        ProblemError: a task runs on two clients.
    """
    owner = np.full(len(codes), NOBODY, dtype=np.int64)
    owner[active] = runs
    if int((owner != NOBODY).sum()) < len(active):
        twice = active[np.argsort(active, kind="stable")]
        task = twice[:-1][twice[1:] == twice[:-1]][0]
        first, second = sorted(names[client] for client in runs[active == task][:2])
        raise ProblemError(
            f"task {_task(int(codes[task]))} is active on {shown(first)} and on {shown(second)}; "
            "a task runs on one client"
        )
    return owner


def _places(codes: _Ints, wanted: _Ints) -> _Ints:
    """Where each task is in `codes`; -1 where it is not."""
    place = np.searchsorted(codes, wanted)
    found = place < len(codes)
    found[found] = codes[place[found]] == wanted[found]
    return np.where(found, place, -1)


def _task(code: int) -> TaskId:
    return TaskId(code >> 32, code & 0xFFFF_FFFF)
