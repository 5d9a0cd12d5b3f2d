"""Problem files: one JSON object a line, a group before a rebalance; and the answer to each.

The format is public: the command, the Spark job and the benchmarks read it, and any other assignor
can. A problem that makes no sense is refused with a sentence that names the client, the task and
the number; one that is only odd is answered, with a warning.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from assignor.config import AssignmentConfig, config_from_mapping
from assignor.errors import ConfigError, TaskAssignmentError
from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    ClientInput,
    GroupState,
    TaskAssignment,
    group_state,
)
from encoding import TaskId

_LAG_BY_WORD = {"running": LAG_RUNNING, "unknown": LAG_UNKNOWN}
_KNOWN_KEYS = frozenset(
    {"name", "config", "topics", "subtopologies", "end_offset_sums", "clients", "weights"}
    # For simulations only, or for the reader's eyes.
    | {"events", "stuck", "note"}
)
_KNOWN_PARTS = {
    "topics": frozenset({"partitions", "racks"}),
    "subtopologies": frozenset({"sources", "changelogs"}),
    "clients": frozenset({"threads", "rack", "tags", "active", "standby", "lags"})
    # What `assignor inspect --save` and `size` know besides.
    | {"consumers", "endpoint", "client", "versions"},
}
Json = Mapping[str, Any]


class ProblemError(TaskAssignmentError):
    """A problem contradicts itself or is not in the format; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem, read.

    Attributes:
        name: as given; answers carry it.
        state: the group.
        data: the JSON object itself.
    """

    name: str
    state: GroupState
    data: Json


@dataclass(slots=True)
class LagMemory:
    """The lags of the last problem, by client and task: what a leader remembers of its group.

    Only the problem read last is kept: a stream of rounds of one group has them one after another.
    """

    name: str | None = None
    lags: dict[str, dict[TaskId, int]] = field(default_factory=dict)

    def before(self, name: str) -> Mapping[str, Mapping[TaskId, int]]:
        """Lags at the rebalance before, where the problem of that name was read last."""
        return self.lags if name == self.name else {}

    def remember(self, name: str, clients: Sequence[ClientInput]) -> None:
        """Keep what the clients report now."""
        self.name = name
        self.lags = {client.process_id: dict(client.lags) for client in clients}


def parse_problem(line: str, *, number: int = 1) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        ProblemError: broken JSON (line and column), or not an object.
    """
    try:
        data = json.loads(line)
    except ValueError as error:
        count = sum(one.startswith("{") for one in line.splitlines())
        if count > 1:
            raise ProblemError(
                f"the file holds {count} problems; give one, for example with head -n 1"
            ) from None
        where = f"column {error.colno}" if isinstance(error, json.JSONDecodeError) else "a number"
        what = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise ProblemError(f"line {number}, {where}: broken JSON, {what}") from None
    except RecursionError:
        raise ProblemError(f"line {number}: broken JSON, nested too deeply") from None
    if not isinstance(data, dict):
        raise ProblemError(f"line {number} is no JSON object; give one problem a line")
    return data


def read_problem(
    data: Json, *, settings: Json | None = None, memory: LagMemory | None = None
) -> Problem:
    """Turn the JSON object of a problem into a group state.

    Args:
        data: the object; see the format in docs/problems.md.
        settings: settings that win over the problem's own.
        memory: lags of the rebalance before; read, then brought up to date.

    Raises:
        ProblemError: the problem is not in the format or contradicts itself.
        ConfigError: a setting is unknown or out of range.
        TaskAssignmentError: no clients, or numbers below 0.
    """
    name = data.get("name", "")
    if not isinstance(name, str):
        raise ProblemError(f"name is {name!r}; give text")
    config = _config(_object(data, "config"), settings or {})
    topology = _Tasks.of(data)
    before = memory.before(name) if memory else {}
    clients = [
        read_client(process_id, client, before=before.get(process_id, {}))
        for process_id, client in sorted(_object(data, "clients").items())
    ]
    _check_owners(clients)
    ends = _numbers(data, "end_offset_sums")
    state = group_state(
        tasks=topology.sources,
        stateful_tasks=topology.changelogs,
        clients=clients,
        config=config,
        # A sum that is not given is 0, says the format.
        end_offset_sums={task: ends.get(task, 0) for task in topology.sources},
        weights={t: float(w) for t, w in _numbers(data, "weights").items()},
        partition_racks=topology.racks_of(topology.sources),
        changelog_racks=topology.racks_of(topology.changelogs),
    )
    if memory is not None:
        memory.remember(name, clients)
    return Problem(name=name, state=_with_odd_keys(state, data), data=data)


def _with_odd_keys(state: GroupState, data: Json) -> GroupState:
    odd = sorted(set(data) - _KNOWN_KEYS)
    for part, known in _KNOWN_PARTS.items():
        found = {key for one in _object(data, part).values() for key in one if key not in known}
        odd += [f"{part}.*.{key}" for key in sorted(found)]
    if not odd:
        return state
    said = f"keys that the format does not have are ignored: {', '.join(odd)}"
    return replace(state, warnings=(*state.warnings, said))


def _config(given: Json, settings: Json) -> AssignmentConfig:
    merged = {key: value for key, value in given.items() if value is not None} | dict(settings)
    if "rack.aware.assignment.tags" in merged:
        tags = merged["rack.aware.assignment.tags"]
        if not isinstance(tags, list | tuple):
            raise ConfigError(f"rack.aware.assignment.tags is {tags!r}; give a list of keys")
    return config_from_mapping(merged)


def _is_object(value: object, what: str) -> Json:
    if not isinstance(value, dict):
        raise ProblemError(f"{what} is {type(value).__name__}; give an object")
    return value


def _object(data: Json, key: str) -> Json:
    value = data.get(key)
    return {} if value is None else _is_object(value, key)


def _list(data: Json, key: str, where: str) -> list[Any]:
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ProblemError(f"{where}: {key} is {type(value).__name__}; give a list")
    return value


def _task(name: object, where: str) -> TaskId:
    parts = str(name).split("_")
    if len(parts) != 2 or not all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts):  # noqa: PLR2004 0_1
        raise ProblemError(f"{where} names task {name!r}; tasks are SUBTOPOLOGY_PARTITION, as 0_1")
    return TaskId(int(parts[0]), int(parts[1]))


def _numbers(data: Json, key: str) -> dict[TaskId, Any]:
    values = {_task(name, key): value for name, value in _object(data, key).items()}
    for task, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ProblemError(f"{key} of {task} is {value!r}; give a number")
        if key == "end_offset_sums" and not (isinstance(value, int) and value < 2**63):
            raise ProblemError(f"end_offset_sums of {task} is {value!r}; give a whole number")
    return values


def read_client(
    process_id: str, given: object, *, before: Mapping[TaskId, int] | None = None
) -> ClientInput:
    """One entry of `clients`.

    Raises:
        ProblemError: it is not in the format; the message names the client and the value.
    """
    where = f"client {process_id}"
    client = _is_object(given, where)
    threads = client.get("threads", 1)
    if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= 10**6:
        raise ProblemError(f"{where} has threads {threads!r}; give a whole number, 0 to 1000000")
    rack = client.get("rack")
    if rack is not None and not isinstance(rack, str):
        raise ProblemError(f"{where} has rack {rack!r}; give text or null")
    tags = _object(client, "tags")
    _list(client, "standby", where)
    return ClientInput(
        process_id=process_id,
        threads=threads,
        active_tasks=frozenset(_task(t, where) for t in _list(client, "active", where)),
        lags={
            _task(task, where): _lag(value, where, task)
            for task, value in _object(client, "lags").items()
        },
        lags_before=before or {},
        rack=rack or None,
        tags=tuple(sorted((str(key), str(value)) for key, value in tags.items())),
    )


def _lag(value: object, where: str, task: str) -> int:
    if isinstance(value, str) and value in _LAG_BY_WORD:
        return _LAG_BY_WORD[value]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ProblemError(
            f'{where} reports lag {value!r} for task {task}; give "running", "unknown" or a number'
        )
    if not 0 <= value < LAG_UNKNOWN:
        raise ProblemError(f"{where} reports lag {value} for task {task}; lags are 0 or more")
    return value


def _check_owners(clients: Sequence[ClientInput]) -> None:
    owner: dict[TaskId, str] = {}
    for client in clients:
        for task in sorted(client.active_tasks):
            other = owner.setdefault(task, client.process_id)
            if other != client.process_id:
                raise ProblemError(
                    f"task {task} is active on {other} and on {client.process_id}; "
                    "a task runs on one client"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tasks:
    """Tasks with the partitions that they read (sources) and restore (changelogs)."""

    sources: dict[TaskId, list[tuple[str, int]]]
    changelogs: dict[TaskId, list[tuple[str, int]]]
    racks: dict[tuple[str, int], frozenset[str]]

    @classmethod
    def of(cls, data: Json) -> "_Tasks":
        topics = _object(data, "topics")
        counts = {name: _partitions(name, topic) for name, topic in topics.items()}
        sources: dict[TaskId, list[tuple[str, int]]] = {}
        changelogs: dict[TaskId, list[tuple[str, int]]] = {}
        for number, part in sorted(_object(data, "subtopologies").items()):
            if not (number.isascii() and number.isdigit() and len(number) < 10):  # noqa: PLR2004 as above
                raise ProblemError(f"subtopology {number!r} is no number; give 0, 1, 2, ...")
            body = _is_object(part, where := f"subtopology {number}")
            names = [str(name) for name in _list(body, "sources", where)]
            missing = sorted(set(names) - counts.keys())
            if missing:
                raise ProblemError(
                    f"{where} reads topics that are not in topics: "
                    f"{', '.join(missing)}; add their partition counts"
                )
            logs = [str(name) for name in _list(body, "changelogs", where)]
            for index in range(max((counts[name] for name in names), default=0)):
                task = TaskId(int(number), index)
                sources[task] = [(name, index) for name in names if index < counts[name]]
                own = [(n, index) for n in logs if index < counts.get(n, index + 1)]
                if own:
                    changelogs[task] = own
        return cls(sources=sources, changelogs=changelogs, racks=dict(_replica_racks(topics)))

    def racks_of(
        self, partitions: Mapping[TaskId, Sequence[tuple[str, int]]]
    ) -> dict[TaskId, tuple[frozenset[str] | None, ...]] | None:
        """Racks of the replicas, task by task; None when no partition has any."""
        if not self.racks:
            return None
        get = self.racks.get
        return {task: tuple(get(p) for p in read) for task, read in partitions.items()}


def _partitions(name: str, topic: object) -> int:
    count = _is_object(topic, f"topic {name}").get("partitions")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= 10**7:
        raise ProblemError(f"topic {name} has partitions {count!r}; give a whole number, 0 or more")
    return count


def _replica_racks(topics: Json) -> Iterator[tuple[tuple[str, int], frozenset[str]]]:
    for name, topic in sorted(topics.items()):
        rows = _object(topic, "racks")
        for partition in rows:
            if not (partition.isascii() and partition.isdigit()):
                raise ProblemError(
                    f"racks of topic {name} name partition {partition!r}; give a number"
                )
            if racks := _list(rows, partition, f"racks of topic {name}"):
                yield (name, int(partition)), frozenset(map(str, racks))


def result_of(
    problem: Problem, assignment: TaskAssignment, *, assignor: str, millis: float
) -> dict[str, Any]:
    """The answer to a problem, in the public result format; clients sorted, tasks sorted."""
    state = problem.state
    names = [str(task) for task in state.tasks]
    clients: list[dict[str, list[str]]] = [
        {"active": [], "standby": [], "warmup": []} for _ in state.clients
    ]
    for task, client in enumerate(assignment.active.tolist()):
        clients[client]["active"].append(names[task])
    warmups = set(assignment.warmups)
    for pair in assignment.standbys:
        kind = "warmup" if pair in warmups else "standby"
        clients[pair[1]][kind].append(names[pair[0]])
    answer: dict[str, Any] = {
        "name": problem.name,
        "assignor": assignor,
        "millis": round(millis, 3),
        "probing": assignment.followup,
        "clients": dict(zip(state.clients, clients, strict=True)),
    }
    warnings = [*state.warnings, *assignment.warnings]
    if warnings:
        answer["warnings"] = warnings
    return answer
