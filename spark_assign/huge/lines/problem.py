"""Read one long problem into columns: a line of hundreds of megabytes, with millions of tasks.

The text is scanned once. A client is read as `read_problem` reads it; of its tasks only numbers are
kept, so memory is a few times the size of the line. A problem has as many tasks as it says.
"""

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from assignor.config import setting_texts
from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, NOBODY, ClientInput
from assignor.problems import (
    ProblemError,
    object_at,
    quoted,
    read_client,
    read_problem,
    task_of,
)
from encoding import TaskId, shown
from spark_assign.huge.lines.scanner import Scanner

# Tasks are read here; keys for simulations have no meaning for a plan.
_OTHERS = frozenset({"topics", "subtopologies", "weights", "events", "stuck"})
_OF_TASKS = frozenset({"active", "standby", "lags"})
_LAG_BY_WORD = {"running": LAG_RUNNING, "unknown": LAG_UNKNOWN}
_TASK = r"(?:0|[1-9]\d{0,8})_(?:0|[1-9]\d{0,8})"
_NAMES = re.compile(rf"{_TASK}(?:,{_TASK})*", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)
# Members of `end_offset_sums`, so many at a time.
_SUMS = re.compile(rf'(?:,\s*"{_TASK}"\s*:\s*\d{{1,18}}(?=\s*[,}}])){{1,4096}}', re.ASCII)
_Racks = Mapping[str, Mapping[str, Sequence[str]]]
_Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class _Numbers:
    """What the clients report and how large the state is; tasks are coded (`_code`)."""

    clients: dict[str, ClientInput] = field(default_factory=dict)
    active: Any = field(default_factory=lambda: array("q"))
    active_counts: list[int] = field(default_factory=list)
    copies: Any = field(default_factory=lambda: array("q"))
    copy_counts: list[int] = field(default_factory=list)
    lags: Any = field(default_factory=lambda: array("q"))
    sums: Any = field(default_factory=lambda: array("q"))
    sum_values: Any = field(default_factory=lambda: array("q"))

    def read_clients(self, scanner: Scanner) -> None:
        """Read the object `clients`.

        Raises:
            ProblemError: a client is invalid.
        """
        for process_id in scanner.members():
            given = scanner.value()
            if process_id in self.clients:
                raise ProblemError(f"client {shown(process_id)} is given twice; merge the two")
            if self._add_quickly(process_id, given):
                continue
            client = read_client(process_id, given)
            # The tasks of all clients are as many as those of the group: only numbers are kept.
            self.clients[process_id] = ClientInput(
                process_id=process_id, threads=client.threads, rack=client.rack, tags=client.tags
            )
            self.active.extend(map(_code, sorted(client.active_tasks)))
            self.active_counts.append(len(client.active_tasks))
            self.copies.extend(map(_code, client.lags))
            self.copy_counts.append(len(client.lags))
            self.lags.extend(client.lags.values())

    def _add_quickly(self, process_id: str, given: Any) -> bool:
        """Add a client whose tasks and lags are usual, without an object for each; else False."""
        try:
            active, standby = given.get("active") or [], given.get("standby") or []
            lags = given.get("lags") or {}
            codes = _codes_of([*active, *standby, *lags])
            values = [lag if type(lag) is int else _LAG_BY_WORD[lag] for lag in lags.values()]
            is_usual = type(active) is list and type(standby) is list and type(lags) is dict
            own, words = set(active), sum(type(lag) is str for lag in lags.values())
            is_usual &= len(own) == len(active) and own.isdisjoint(standby)
            is_usual &= sum(not 0 <= value < LAG_UNKNOWN for value in values) == words
        # Values of other types than usual; `read_client` names them.
        except (AttributeError, KeyError, TypeError, ValueError):
            return False
        if not is_usual:
            return False
        others = {key: value for key, value in given.items() if key not in _OF_TASKS}
        self.clients[process_id] = read_client(process_id, others)
        self.active.frombytes(codes[: len(active)].tobytes())
        self.active_counts.append(len(active))
        self.copies.frombytes(codes[len(active) + len(standby) :].tobytes())
        self.copy_counts.append(len(lags))
        self.lags.extend(values)
        return True

    def read_sums(self, scanner: Scanner) -> None:
        """Read the object `end_offset_sums`.

        Raises:
            ProblemError: a task or a number is invalid.
        """
        for name in scanner.members():
            value = scanner.value()
            for sums in scanner.matches(_SUMS):
                numbers = np.array(_NUMBER.findall(sums), dtype=np.int64).reshape(-1, 3)
                self.sums.frombytes((numbers[:, 0] << 32 | numbers[:, 1]).tobytes())
                self.sum_values.frombytes(np.ascontiguousarray(numbers[:, 2]).tobytes())
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not (is_whole and 0 <= value < LAG_UNKNOWN):
                raise ProblemError(
                    f"end_offset_sums of {shown(name)} is {quoted(value)}; give a whole number, "
                    "0 or more, below 2^63 - 1"
                )
            self.sums.append(_code(task_of(name, "end_offset_sums")))
            self.sum_values.append(value)


def _codes_of(names: list[str]) -> _Ints:
    """The codes of task names.

    Raises:
        ValueError: one is no task.
    """
    text = ",".join(names)
    if names and not _NAMES.fullmatch(text):
        raise ValueError(text)
    numbers = np.array(_NUMBER.findall(text), dtype=np.int64).reshape(-1, 2)
    return numbers[:, 0] << 32 | numbers[:, 1]


def _code(task: TaskId) -> int:
    return task.subtopology << 32 | task.partition


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
    scanner, numbers, data = Scanner(text), _Numbers(), {}
    for key in scanner.members():
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
    head = read_problem(left | {"clients": {"any": {}}})
    parts, topics, racks = _parts(data)
    codes = _codes(parts)
    return LongProblem(
        name=head.name,
        config=tuple(sorted(setting_texts(head.state.config).items())),
        topics=topics,
        racks=racks,
        parts=parts,
        codes=codes,
        weights={_code(task_of(name, "weights")): w for name, w in _weights(data)},
        **_columns(numbers, codes, head.state.warnings),
    )


def _weights(data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, weight in object_at(data, "weights").items():
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ProblemError(f"weights of {shown(name)} is {quoted(weight)}; give a number")
        yield name, float(weight)


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
    found = racks if any(racks.values()) else {}
    return tuple(sorted(parts, key=lambda part: part.number)), counts, found


def _codes(parts: Sequence[Part]) -> _Ints:
    ranges = [part.number << 32 | np.arange(part.width, dtype=np.int64) for part in parts]
    return np.concatenate([np.zeros(0, dtype=np.int64), *ranges])


def _columns(numbers: _Numbers, codes: _Ints, warnings: tuple[str, ...]) -> dict[str, Any]:
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
        raise ProblemError(f"end_offset_sums names task {_task(code)}, which does not exist")
    runs = np.repeat(rank, numbers.active_counts)
    holds = np.repeat(rank, numbers.copy_counts)
    gone = (active < 0).sum() + (copies < 0).sum()
    if gone:
        warnings = (*warnings, f"clients report {gone} tasks that do not exist")
    runs, active = runs[active >= 0], active[active >= 0]
    owner = np.full(len(codes), NOBODY, dtype=np.int64)
    owner[active] = runs
    if int((owner != NOBODY).sum()) < len(active):
        twice = active[np.argsort(active, kind="stable")]
        task = twice[:-1][twice[1:] == twice[:-1]][0]
        first, second = sorted(names[order[client]] for client in runs[active == task][:2])
        raise ProblemError(
            f"task {_task(int(codes[task]))} is active on {shown(first)} and on {shown(second)}; "
            "a task runs on one client"
        )
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


def _places(codes: _Ints, wanted: _Ints) -> _Ints:
    """Where each task is in `codes`; -1 where it is not."""
    place = np.searchsorted(codes, wanted)
    found = place < len(codes)
    found[found] = codes[place[found]] == wanted[found]
    return np.where(found, place, -1)


def _task(code: int) -> TaskId:
    return TaskId(code >> 32, code & 0xFFFF_FFFF)
