"""Who hosts what, for interactive queries: from a placement to a view, and from a view to hosts.

A view is one value for the whole group, named by epoch and checksum. The leader keeps the epoch
while the content stays, so that members that hold the view already need not get it again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from assignor.rebalance.endpoints import parse_endpoint
from assignor.topology import Subtopology, TaskPlan
from encoding import (
    HostInfo,
    PartitionsByHost,
    TaskId,
    TopicPartition,
    View,
    ViewReference,
    build_view,
    partitions_by_host,
)

HostMap = Mapping[HostInfo, tuple[TopicPartition, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Partitions by the host that serves them, actively and as standby."""

    active: HostMap = field(default_factory=PartitionsByHost)
    standby: HostMap = field(default_factory=PartitionsByHost)


def host_map(
    endpoint_by_member: Mapping[str, str],
    tasks_by_member: Mapping[str, tuple[TaskId, ...]],
    partitions_by_task: Mapping[TaskId, tuple[TopicPartition, ...]],
) -> PartitionsByHost:
    """Kafka's map: every endpoint of the group with the partitions that it serves."""
    hosts: dict[HostInfo, set[TopicPartition]] = {}
    for member, endpoint in sorted(endpoint_by_member.items()):
        host = parse_endpoint(endpoint)
        if host is not None:
            found = hosts.setdefault(host, set())
            for task in tasks_by_member.get(member, ()):
                found.update(partitions_by_task[task])
    return PartitionsByHost(hosts)


def task_sizes(tasks: Iterable[TaskId]) -> tuple[int, ...]:
    """Tasks of each subtopology, by its id: the numbering that native blobs use."""
    sizes: dict[int, int] = {}
    for task in tasks:
        sizes[task.subtopology] = max(sizes.get(task.subtopology, 0), task.partition + 1)
    return tuple(sizes.get(number, 0) for number in range(max(sizes, default=-1) + 1))


def group_view(
    *,
    endpoint_by_member: Mapping[str, str],
    active_by_member: Mapping[str, tuple[TaskId, ...]],
    standby_by_member: Mapping[str, tuple[TaskId, ...]],
    plan: TaskPlan,
    previous: View | None,
    reported: Iterable[ViewReference],
) -> View | None:
    """The view of a placement, or None when nobody serves queries.

    Args:
        endpoint_by_member: members that serve queries.
        active_by_member: active tasks of the placement.
        standby_by_member: its standby and warm-up tasks.
        plan: all tasks.
        previous: the view that this leader holds; its epoch stays if its content is the same.
        reported: views that members hold, so that a new epoch is above all of them.
    """
    if not endpoint_by_member:
        return None
    sizes = task_sizes(plan.partitions_by_task)
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    active: dict[HostInfo, list[int]] = {}
    standby: dict[HostInfo, list[int]] = {}
    for member, endpoint in sorted(endpoint_by_member.items()):
        host = parse_endpoint(endpoint)
        if host is None:
            continue
        for tasks, found in ((active_by_member, active), (standby_by_member, standby)):
            numbers = found.setdefault(host, [])
            numbers += [starts[t.subtopology] + t.partition for t in tasks.get(member, ())]
    epoch = 0 if previous is None else previous.epoch
    view = build_view(epoch=epoch, sizes=sizes, active=active, standby=standby, previous=previous)
    if view == previous:
        return previous
    known = [reference.epoch for reference in reported]
    if previous is not None:
        known.append(previous.epoch)
    return replace(view, epoch=max(known, default=-1) + 1)


def input_partitions(
    subtopology: Subtopology, partition: int, partition_counts: Mapping[str, int]
) -> tuple[TopicPartition, ...]:
    """What a task reads: its partition of every source topic that has one."""
    return tuple(
        TopicPartition(topic, partition)
        for topic in subtopology.source_topics
        if partition < partition_counts.get(topic, 0)
    )


def routing_of(
    view: View, subtopologies: Iterable[Subtopology], partition_counts: Mapping[str, int]
) -> Routing:
    """Kafka's two host maps, derived from a view and the topology."""
    by_id = {subtopology.id: subtopology for subtopology in subtopologies}
    inputs = [
        input_partitions(by_id[number], partition, partition_counts) if number in by_id else ()
        for number, size in enumerate(view.sizes)
        for partition in range(size)
    ]
    active, standby = partitions_by_host(view, inputs)
    return Routing(active=active, standby=standby)
