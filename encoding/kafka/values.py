"""Subscription and assignment as values, independent of any layout.

Values are normalised when they are built (sorted, unique, empty endpoint and empty name are
``None``), so a value equals its decoded bytes in all fields that its version carries. ``schema``
says which versions carry a field. Writing drops the other fields, as Kafka does, but refuses
topology names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from uuid import UUID

from encoding.native import EARLIEST_NATIVE_VERSION, NativeAssignment, NativeSubscription
from encoding.primitives import (
    EMPTY,
    FEW_TASKS,
    NO_REBALANCE,
    RUNNING,
    UNKNOWN_VERSION,
    ByName,
    HostInfo,
    Partitions,
    PartitionsByHost,
    PartitionsByTask,
    TaskId,
    TaskOffsetSums,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member's subscription, sent to the group leader.

    Attributes:
        version: used version, the layout of the bytes.
        latest_supported_version: the highest version that the member reads; -1 in v1 and v2.
        process_id: the process; all members of one process share it.
        user_endpoint: ``host:port`` for interactive queries, or ``None``.
        task_offset_sums: state of each task; v1 to v6 keep only running (-2) or unknown (-3),
            unless there is a native part.
        unique_field: -128 to 127, changed at every rejoin (KAFKA-10455); v8 on.
        error_code: ``AssignorError``; v9 on.
        client_tags: tags of the process (KIP-708); v11 on. A mapping is taken too.
        native: the part for native readers: a trailer up to v11, the rest of the body from v101
            on. There it is always set, with the two versions above.
    """

    version: int
    latest_supported_version: int = UNKNOWN_VERSION
    process_id: UUID
    user_endpoint: str | None = None
    task_offset_sums: TaskOffsetSums = EMPTY
    unique_field: int = 0
    error_code: int = 0
    client_tags: Mapping[str, str] = field(default_factory=ByName)
    native: NativeSubscription | None = None

    def __post_init__(self) -> None:
        if self.version >= EARLIEST_NATIVE_VERSION:
            native = self.native or NativeSubscription()
            versions = (self.version, self.latest_supported_version)
            if versions != (native.version, native.latest_supported_version):
                native = replace(native, version=versions[0], latest_supported_version=versions[1])
            object.__setattr__(self, "native", native)
        if self.user_endpoint == "":
            object.__setattr__(self, "user_endpoint", None)
        if not isinstance(self.client_tags, ByName):
            object.__setattr__(self, "client_tags", ByName(self.client_tags))

    @property
    def prev_tasks(self) -> tuple[TaskId, ...]:
        """Active tasks that the member runs: those with offset sum -2."""
        sums = self.task_offset_sums
        if len(sums) <= FEW_TASKS:  # faster than columns for a few tasks
            return tuple(task for task, offset_sum in sums if offset_sum == RUNNING)
        return tuple(sums.running().tasks())

    @property
    def standby_tasks(self) -> tuple[TaskId, ...]:
        """All other tasks whose state the member has."""
        sums = self.task_offset_sums
        if len(sums) <= FEW_TASKS:
            return tuple(task for task, offset_sum in sums if offset_sum != RUNNING)
        return tuple(sums.not_running().tasks())


@dataclass(frozen=True, slots=True)
class FutureSubscription:
    """The two version numbers of a subscription in an unknown version (KIP-268)."""

    version: int
    latest_supported_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The group leader's answer to one member.

    Attributes:
        version: used version, the layout of the bytes.
        commonly_supported_version: lowest latest supported version in the group; -1 in v1 and v2.
        active_tasks: task of each assigned partition, in the order of the partitions sorted by
            topic and number; a task with three partitions appears three times.
        standby_tasks: input partitions of each standby task, as Kafka sends. Takes a mapping.
        partitions_by_host: partitions that each host serves; v2 on. Share one value among all
            members.
        standby_partitions_by_host: the same for standbys; v6 on.
        error_code: ``AssignorError``; v4 on.
        next_rebalance_ms: when to start the followup rebalance, on the leader's clock in
            milliseconds; 0 is now, ``NO_REBALANCE`` never; v7 on.
        native: the part for native readers, as in ``Subscription``. From v101 on, active tasks are
            sorted and distinct, standby tasks have no partitions, and the routing view replaces the
            host maps.
    """

    version: int
    commonly_supported_version: int = UNKNOWN_VERSION
    active_tasks: tuple[TaskId, ...] = ()
    standby_tasks: Mapping[TaskId, Partitions] = field(default_factory=PartitionsByTask)
    partitions_by_host: Mapping[HostInfo, Partitions] = field(default_factory=PartitionsByHost)
    standby_partitions_by_host: Mapping[HostInfo, Partitions] = field(
        default_factory=PartitionsByHost
    )
    error_code: int = 0
    next_rebalance_ms: int = NO_REBALANCE
    native: NativeAssignment | None = None

    def __post_init__(self) -> None:
        if self.version >= EARLIEST_NATIVE_VERSION:
            native = self.native or NativeAssignment()
            versions = (self.version, self.commonly_supported_version)
            if versions != (native.version, native.commonly_supported_version):
                native = replace(
                    native, version=versions[0], commonly_supported_version=versions[1]
                )
            object.__setattr__(self, "native", native)
        if any(task.topology_name == "" for task in self.active_tasks):
            tasks = tuple(
                task._replace(topology_name=task.topology_name or None)
                for task in self.active_tasks
            )
            object.__setattr__(self, "active_tasks", tasks)
        if not isinstance(self.standby_tasks, PartitionsByTask):
            object.__setattr__(self, "standby_tasks", PartitionsByTask(self.standby_tasks))
        if not isinstance(self.partitions_by_host, PartitionsByHost):
            hosts = PartitionsByHost(self.partitions_by_host)
            object.__setattr__(self, "partitions_by_host", hosts)
        if not isinstance(self.standby_partitions_by_host, PartitionsByHost):
            hosts = PartitionsByHost(self.standby_partitions_by_host)
            object.__setattr__(self, "standby_partitions_by_host", hosts)
