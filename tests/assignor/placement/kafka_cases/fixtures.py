"""The fixtures of Kafka's assignor tests as values, and groups from short texts.

Facts only (which rack holds which partition, which client is where), of `AssignmentTestUtils`,
trunk at 1eb7644349cb (between 3.9.0 and 4.0.0). Tasks are written `0_0-2 1_3`, clients by number.
"""

from dataclasses import dataclass

from assignor import AssignmentConfig
from assignor.placement.state import LAG_RUNNING, ClientInput, TaskAssignment, group_state
from encoding import TaskId

REPLICAS = ("01", "12", "02", "13", "34")
# For each subtopology the replica set of each partition.
SOURCES = {0: "0112342", 1: "2301", 2: "4340", 3: "234"}
CHANGELOGS = {0: "0112340", 1: "2304", 2: "1243", 3: "431"}
CLIENT_RACKS = {1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 0, 7: 1}
SETTINGS = {
    "lag": "acceptable_recovery_lag",
    "warmups": "max_warmup_replicas",
    "standbys": "num_standby_replicas",
    "tags": "rack_aware_assignment_tags",
    "traffic": "rack_aware_assignment_traffic_cost",
    "overlap": "rack_aware_assignment_non_overlap_cost",
    "strategy": "rack_aware_assignment_strategy",
}


def tasks_of(text):
    """Task ids of a text such as `0_0-2 1_3`."""
    found = []
    for word in text.split():
        subtopology, _, numbers = word.partition("_")
        first, _, last = numbers.partition("-")
        found += [TaskId(int(subtopology), n) for n in range(int(first), int(last or first) + 1)]
    return found


def process_id(number):
    """The process id of a client; numbers and ids have the same order, in Java too."""
    return f"00000000-0000-0000-0000-{number:012x}"


def replica_racks(table, tasks):
    """The racks of the one partition of each task."""
    return {
        task: (
            frozenset(f"rack{n}" for n in REPLICAS[int(table[task.subtopology][task.partition])]),
        )
        for task in tasks
    }


def config_of(settings):
    """Settings by their short names; tags are one text."""
    values = {SETTINGS[name]: value for name, value in settings.items()}
    if "tags" in settings:
        values[SETTINGS["tags"]] = tuple(settings["tags"].split())
    return AssignmentConfig(**values)


def client_of(number, given, stateful, rack):
    """A client before the rebalance.

    Without `lags` the lags follow from what the client ran and held: a task that ran is running, a
    standby is caught up. A lag of Long.MAX_VALUE in Kafka's tests is a copy that is missing here.
    """
    active, standby = tasks_of(given.get("active", "")), tasks_of(given.get("standby", ""))
    if "lags" in given:
        lags = {
            task: lag
            for text, lag in given["lags"].items()
            for task in (stateful if text == "*" else tasks_of(text))
        }
    else:
        lags = dict.fromkeys(standby, 0) | dict.fromkeys(active, LAG_RUNNING)
    return ClientInput(
        process_id=process_id(number),
        threads=given.get("threads", 1),
        active_tasks=frozenset(active),
        lags={task: lag for task, lag in lags.items() if task in stateful},
        rack=given.get("rack", rack),
        tags=tuple(sorted(given.get("tags", {}).items())),
    )


def group_of(case, *, strategy="none", racks=True):
    """The group state of a case, with Kafka's racks of clients, partitions and changelogs."""
    tasks = tasks_of(case["tasks"])
    stateless = frozenset(tasks_of(case.get("stateless", "")))
    stateful = frozenset(tasks) - stateless
    clients = {int(number): given for number, given in case["clients"].items()}
    rack_of = {n: f"rack{rack}" for n, rack in CLIENT_RACKS.items()} if racks else {}
    return group_state(
        tasks=tasks,
        stateful_tasks=stateful,
        clients=[client_of(n, c, stateful, rack_of.get(n)) for n, c in clients.items()],
        config=config_of(case.get("config", {}) | {"strategy": strategy}),
        partition_racks=replica_racks(SOURCES, tasks) if racks else None,
        changelog_racks=replica_racks(CHANGELOGS, stateful) if racks else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A placement by client number and task.

    Attributes:
        state: the group before the rebalance.
        active, standby: client number -> tasks.
        followup: whether another rebalance is asked for.
    """

    state: object
    active: dict
    standby: dict
    followup: bool

    @classmethod
    def of(cls, state, assignment: TaskAssignment):
        """Read a valid assignment."""
        numbers = [int(name[-12:], 16) for name in state.clients]
        active = {number: set() for number in numbers}
        standby = {number: set() for number in numbers}
        for task, client in zip(state.tasks, assignment.active.tolist(), strict=True):
            active[numbers[client]].add(task)
        for task, client in assignment.standbys:
            standby[numbers[client]].add(state.tasks[task])
        return cls(state=state, active=active, standby=standby, followup=assignment.followup)

    def stateful_tasks(self):
        """The tasks with state."""
        pairs = zip(self.state.tasks, self.state.stateful.tolist(), strict=True)
        return {task for task, is_stateful in pairs if is_stateful}

    def threads(self):
        """Client number -> threads."""
        pairs = zip(self.state.clients, self.state.threads.tolist(), strict=True)
        return {int(name[-12:], 16): threads for name, threads in pairs}
