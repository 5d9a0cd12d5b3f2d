"""Problem files: one JSON object per line, a group before a rebalance; and the answers.

The format is public: the command, the Spark job and the benchmarks read it, and other assignors can
read it. An invalid problem is an error that names the client, the task and the number. Unknown keys
are a warning.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from assignor.config import AssignmentConfig, config_from_mapping
from assignor.errors import ConfigError
from assignor.placement import (
    LAG_RUNNING,
    ClientInput,
    GroupState,
    TaskAssignment,
    group_state,
    least_lags,
    work_of,
)
from assignor.problems.measures import Measures
from assignor.problems.schedule import Schedule, read_schedule
from assignor.problems.values import (
    CLIENT_KEYS,
    Json,
    ProblemError,
    check_number,
    checked_object,
    index_of,
    object_at,
    quoted,
    read_client,
    task_of,
    texts_at,
)
from encoding import TaskId, shown

TOPOLOGY_VERSION_KEY = "topology_version"
PROTOCOL_KEY = "protocol"  # "streams" for a saved streams group (KIP-1071)
UNATTRIBUTED_KEY = "unattributed_changelogs"  # name -> records, or null
_PROTOCOLS = (None, "classic", "streams")
_TASKS_MAX = 10**6
_PARTITIONS_MAX = 10**7
_ODD_SHOWN = 10
_KNOWN_KEYS = frozenset(
    {"name", "config", "topics", "subtopologies", "end_offset_sums", "clients", "weights"}
    # Keys for simulations, comments, and plans of a new topology.
    | {"events", "stuck", "note", TOPOLOGY_VERSION_KEY, PROTOCOL_KEY, UNATTRIBUTED_KEY}
)
_KNOWN_PARTS = {
    "topics": frozenset({"partitions", "racks"}),
    "subtopologies": frozenset({"sources", "changelogs"}),
    "clients": CLIENT_KEYS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem as read from its file.

    Attributes:
        name: of the problem, copied to its answer.
        state: the group.
        data: the JSON object.
        schedule: events of a simulation.
    """

    name: str
    state: GroupState
    data: Json
    schedule: Schedule = field(default_factory=Schedule)


@dataclass(slots=True)
class LagMemory:
    """The lowest lags so far, by client and task, which a leader remembers between rebalances.

    Keeps the lags of the last problem only: rounds of one group follow one another in a file.
    Problems without a name are different groups.
    """

    name: str | None = None
    lags: dict[str, dict[TaskId, int]] = field(default_factory=dict)

    def before(self, name: str) -> Mapping[str, Mapping[TaskId, int]]:
        """Lags at the last rebalance; empty unless the last problem has this name."""
        return self.lags if name and name == self.name else {}

    def remember(self, name: str, clients: Sequence[ClientInput], limit: int) -> None:
        """Store the lags that clients report; `limit` is the acceptable recovery lag."""
        self.name = name
        self.lags = {client.process_id: least_lags(client, limit) for client in clients}


def read_problem(
    data: Json, *, settings: Json | None = None, memory: LagMemory | None = None
) -> Problem:
    """Read the group state from the JSON object of a problem.

    A missing end offset sum is unknown, and counts as larger than any number; 0 means that there is
    nothing to restore.

    Args:
        data: the object; see the format in docs/problems.md.
        settings: override the settings of the problem.
        memory: lags at the last rebalance; read, then updated.

    Raises:
        ProblemError: the problem is invalid; events and stuck clients are checked too.
        ConfigError: a setting is unknown or out of range.
        TaskAssignmentError: there are no clients, or a number is below 0.
    """
    name = data.get("name", "")
    if not isinstance(name, str):
        raise ProblemError(f"name is {quoted(name)}; give text")
    if data.get(PROTOCOL_KEY) not in _PROTOCOLS:
        raise ProblemError(
            f'{PROTOCOL_KEY} is {quoted(data[PROTOCOL_KEY])}; give "streams" for a streams group'
            " (KIP-1071), and leave it out for a classic group"
        )
    config = _config(object_at(data, "config"), settings or {})
    topology = _Tasks.of(data)
    before = memory.before(name) if memory else {}
    clients = [
        read_client(process_id, client, before=before.get(process_id, {}))
        for process_id, client in sorted(object_at(data, "clients").items())
    ]
    _check_owners(clients)
    state = group_state(
        tasks=topology.sources,
        stateful_tasks=topology.changelogs,
        clients=clients,
        config=config,
        end_offset_sums=_numbers(data, "end_offset_sums", topology),
        weights={t: float(w) for t, w in _numbers(data, "weights", topology).items()},
        partition_racks=topology.racks_of(topology.sources),
        changelog_racks=topology.racks_of(topology.changelogs),
    )
    schedule = read_schedule(data, state.clients)
    if memory is not None:
        memory.remember(name, clients, config.acceptable_recovery_lag)
    return Problem(name=name, state=_with_odd_keys(state, data), data=data, schedule=schedule)


def _with_odd_keys(state: GroupState, data: Json) -> GroupState:
    odd = sorted(set(data) - _KNOWN_KEYS)
    for part, known in _KNOWN_PARTS.items():
        found = {
            key for entry in object_at(data, part).values() for key in entry if key not in known
        }
        odd += [f"{part}.*.{key}" for key in sorted(found)]
    if not odd:
        return state
    more = f" and {len(odd) - _ODD_SHOWN} more" if len(odd) > _ODD_SHOWN else ""
    names = ", ".join(map(shown, odd[:_ODD_SHOWN]))
    warning = f"unknown keys are ignored: {names}{more}"
    return replace(state, warnings=(*state.warnings, warning))


def _config(given: Json, settings: Json) -> AssignmentConfig:
    merged = {key: value for key, value in given.items() if value is not None} | dict(settings)
    if "rack.aware.assignment.tags" in merged:
        tags = merged["rack.aware.assignment.tags"]
        if not isinstance(tags, list | tuple):
            raise ConfigError(f"rack.aware.assignment.tags is {quoted(tags)}; give a list of keys")
    return config_from_mapping(merged)


def _numbers(data: Json, key: str, topology: "_Tasks") -> dict[TaskId, Any]:
    values = {task_of(name, key): value for name, value in object_at(data, key).items()}
    for task, value in values.items():
        topology.check_exists(task, key)
        check_number(key, task, value)
    return values


def _check_owners(clients: Sequence[ClientInput]) -> None:
    owner: dict[TaskId, str] = {}
    for client in clients:
        for task in sorted(client.active_tasks):
            other = owner.setdefault(task, client.process_id)
            if other != client.process_id:
                raise ProblemError(
                    f"task {task} is active on {shown(other)} and on {shown(client.process_id)}; "
                    "a task runs on one client"
                )
    for client in clients:
        for task, lag in client.lags.items():
            if lag != LAG_RUNNING:
                continue
            other = owner.setdefault(task, client.process_id)
            if other != client.process_id:
                raise ProblemError(
                    f"task {task} runs on {shown(other)}, and {shown(client.process_id)} reports "
                    'lag "running"; a task runs on one client'
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tasks:
    """Tasks with the partitions that they read (sources) and restore (changelogs)."""

    sources: dict[TaskId, list[tuple[str, int]]]
    changelogs: dict[TaskId, list[tuple[str, int]]]
    racks: dict[tuple[str, int], frozenset[str]]

    @classmethod
    def of(cls, data: Json) -> "_Tasks":
        for key in ("topics", "subtopologies"):
            if key in data and data[key] is None:
                raise ProblemError(f"{key} is null; give an object")
        topics = object_at(data, "topics")
        counts = {name: _partitions(name, topic) for name, topic in topics.items()}
        sources: dict[TaskId, list[tuple[str, int]]] = {}
        changelogs: dict[TaskId, list[tuple[str, int]]] = {}
        for number, given in sorted(object_at(data, "subtopologies").items()):
            index = index_of(number)
            if index is None:
                raise ProblemError(
                    f"subtopology {quoted(number)} is not a number; give 0, 1, 2, ..."
                )
            body = checked_object(given, where := f"subtopology {number}")
            names = texts_at(body, "sources", where)
            missing = sorted(set(names) - counts.keys())
            if missing:
                raise ProblemError(
                    f"{where} reads topics that are not in topics: "
                    f"{shown(', '.join(missing))}; add their partition counts"
                )
            logs = texts_at(body, "changelogs", where)
            width = max((counts[name] for name in names), default=0)
            if len(sources) + width > _TASKS_MAX:
                raise ProblemError(
                    f"{where} has {width} tasks, the ones before it have {len(sources)}; "
                    f"a problem has at most {_TASKS_MAX} tasks; a table of tasks has no limit"
                )
            for part in range(width):
                task = TaskId(index, part)
                sources[task] = [(name, part) for name in names if part < counts[name]]
                own = [(n, part) for n in logs if part < counts.get(n, part + 1)]
                if own:
                    changelogs[task] = own
        return cls(sources=sources, changelogs=changelogs, racks=dict(_replica_racks(topics)))

    def check_exists(self, task: TaskId, key: str) -> None:
        """Check that the group has a task.

        Raises:
            ProblemError: it does not; names the task, the key and the existing tasks.
        """
        if task in self.sources:
            return
        number = task.subtopology
        size = sum(task.subtopology == number for task in self.sources)
        known = f"there is no subtopology {number}"
        if size:
            tasks = f"{size} tasks, {number}_0 to {number}_{size - 1}"
            known = f"subtopology {number} has {f'task {number}_0 only' if size == 1 else tasks}"
        raise ProblemError(
            f"{key} names task {task}, which does not exist: {known}; "
            "correct the name or leave it out"
        )

    def racks_of(
        self, partitions: Mapping[TaskId, Sequence[tuple[str, int]]]
    ) -> dict[TaskId, tuple[frozenset[str] | None, ...]] | None:
        """Racks of the replicas of each task; None when no partition has any."""
        if not self.racks:
            return None
        get = self.racks.get
        return {task: tuple(get(p) for p in read) for task, read in partitions.items()}


def _partitions(name: str, topic: object) -> int:
    where = f"topic {shown(name)}"
    count = checked_object(topic, where).get("partitions")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _PARTITIONS_MAX:
        raise ProblemError(
            f"{where} has partitions {quoted(count)}; give a whole number, 0 to {_PARTITIONS_MAX}"
        )
    return count


def _replica_racks(topics: Json) -> Iterator[tuple[tuple[str, int], frozenset[str]]]:
    for name, topic in sorted(topics.items()):
        rows, where = object_at(topic, "racks"), f"racks of topic {shown(name)}"
        for partition in rows:
            index = index_of(partition)
            if index is None:
                raise ProblemError(f"{where} name partition {quoted(partition)}; give a number")
            if racks := texts_at(rows, partition, where):
                yield (name, index), frozenset(racks)


def result_of(
    problem: Problem,
    assignment: TaskAssignment,
    *,
    assignor: str,
    millis: float,
    measures: Measures | None = None,
) -> dict[str, Any]:
    """The answer to a problem in the public result format; clients and tasks are sorted."""
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
        "look_again": assignment.look_again,
        "clients": dict(zip(state.clients, clients, strict=True)),
    }
    if measures is not None:
        answer["measures"] = asdict(measures)
    if state.weights is not None:
        work = work_of(state, assignment.active).round(3).tolist()
        answer["work"] = dict(zip(state.clients, work, strict=True))
    warnings = list(dict.fromkeys((*state.warnings, *assignment.warnings)))
    if warnings:
        answer["warnings"] = warnings
    return answer
