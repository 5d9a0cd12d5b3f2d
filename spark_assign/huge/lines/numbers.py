"""What the clients of a long problem report, and its end offset sums, as numbers."""

import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, ClientInput
from assignor.problems import CLIENT_KEYS, check_number, read_client, task_of
from encoding import TaskId
from spark_assign.huge.lines.scanner import Scanner, repeated

_OF_TASKS: Mapping[str, Any] = {"active": [], "standby": [], "lags": {}}
_LAG_BY_WORD = {"running": LAG_RUNNING, "unknown": LAG_UNKNOWN}
_TASK = r"(?:0|[1-9]\d{0,8})_(?:0|[1-9]\d{0,8})"
_NAMES = re.compile(rf"{_TASK}(?:,{_TASK})*", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)
# Members of `end_offset_sums`, so many at a time.
_SUMS = re.compile(rf'(?:,\s*"{_TASK}"\s*:\s*\d{{1,18}}(?=\s*[,}}])){{1,4096}}', re.ASCII)
_Ints = npt.NDArray[np.int64]


@dataclass(slots=True)
class Numbers:
    """What the clients report and how large the state is; tasks are coded (`code_of`)."""

    clients: dict[str, ClientInput] = field(default_factory=dict)
    active: Any = field(default_factory=lambda: array("q"))
    active_counts: list[int] = field(default_factory=list)
    copies: Any = field(default_factory=lambda: array("q"))
    copy_counts: list[int] = field(default_factory=list)
    lags: Any = field(default_factory=lambda: array("q"))
    sums: Any = field(default_factory=lambda: array("q"))
    sum_values: Any = field(default_factory=lambda: array("q"))
    odd_keys: set[str] = field(default_factory=set)

    def read_clients(self, scanner: Scanner) -> None:
        """Read the object `clients`.

        Raises:
            ProblemError: a client is invalid.
        """
        for process_id in scanner.members():
            given = scanner.value()
            if process_id in self.clients:
                raise repeated(process_id)
            if isinstance(given, dict):
                self.odd_keys |= given.keys() - CLIENT_KEYS
            if self._add_quickly(process_id, given):
                continue
            client = read_client(process_id, given)
            # The tasks of all clients are as many as those of the group: only numbers are kept.
            self.clients[process_id] = ClientInput(
                process_id=process_id, threads=client.threads, rack=client.rack, tags=client.tags
            )
            self.active.extend(map(code_of, sorted(client.active_tasks)))
            self.active_counts.append(len(client.active_tasks))
            self.copies.extend(map(code_of, client.lags))
            self.copy_counts.append(len(client.lags))
            self.lags.extend(client.lags.values())

    def _add_quickly(self, process_id: str, given: Any) -> bool:
        """Add a client whose tasks and lags are usual, without an object for each; else False."""
        try:
            active, standby, lags = (_or_empty(given, *part) for part in _OF_TASKS.items())
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
            task = task_of(name, "end_offset_sums")
            check_number("end_offset_sums", task, value)
            self.sums.append(code_of(task))
            self.sum_values.append(value)


def _or_empty(given: Mapping[str, Any], key: str, empty: Any) -> Any:
    value = given.get(key)
    return empty if value is None else value


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


def code_of(task: TaskId) -> int:
    """A task as a number, in the order of tasks."""
    return task.subtopology << 32 | task.partition
