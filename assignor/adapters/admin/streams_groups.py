"""Requests about streams groups (KIP-1071); the results are values of `assignor.inspection`.

What a broker sends is checked here: a value that no coordinator sends (a negative partition, a
member id that occurs twice) ends the inspection of this group with a sentence.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from kafka.admin import KafkaAdminClient
from kafka.errors import BrokerResponseError, IncompatibleBrokerVersion

from assignor.adapters.admin.client import Admin, BrokerError
from assignor.adapters.admin.groups import (
    EARLIEST,
    LATEST,
    committed_with_epochs,
    if_authorized,
    offsets_at,
    raise_for,
    topic_facts,
)
from assignor.adapters.admin.messages import StreamsGroupDescribeRequest
from assignor.inspection import (
    DescribedStreamsGroup,
    InternalTopic,
    StreamsFacts,
    StreamsGroupMember,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
    group_topics_of,
    read_partitions,
    sorted_tasks,
)
from encoding import TopicPartition, shown

_GROUP_ID_NOT_FOUND: Final = 69
_STATES: Final = frozenset(
    {"NotReady", "Assigning", "Reconciling", "Stable", "Empty", "Dead", "Unknown"}
)
PARTITIONS_MOST: Final = 1_000_000
"""Partitions of a topic, and those that all members read, above which a group is rejected."""


class InvalidDescription(ValueError):
    """A broker described a group in a way that no coordinator does."""


def describe_streams_group(admin: Admin, group_id: str) -> DescribedStreamsGroup:
    """Return one streams group; an unknown group, or a group of another type, has state `Dead`.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`; also if the brokers are older than 4.1.
        InvalidDescription: the broker sent values that no coordinator sends.
    """

    async def ask(client: KafkaAdminClient) -> tuple[Any, str]:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        try:
            nodes = await client._find_coordinator_ids([group_id])  # noqa: SLF001 as above
            node = nodes[group_id]
            request = StreamsGroupDescribeRequest(
                group_ids=[group_id], include_authorized_operations=False, max_version=1
            )
            response = await manager.send(request, node_id=node)
            rows = [row for row in response.groups if row.group_id == group_id]
            if len(rows) != 1:
                raise InvalidDescription(
                    f"the broker describes group {shown(group_id)} {len(rows)} times"
                )
            raise_for(rows[0].error_code, fine=(_GROUP_ID_NOT_FOUND,))
        except BrokerResponseError:
            # The coordinator may have moved; look it up again at the next try.
            manager.cluster._coordinators.clear()  # noqa: SLF001 the client has no other way
            raise
        broker = manager.cluster.broker_metadata(node)
        place = f"{shown(broker.host)}:{broker.port} ({node})" if broker else f"({node})"
        return rows[0], place

    doing = f"describe streams group {shown(group_id)} and its topics"
    try:
        row, coordinator = admin.ask(doing, ask)
    except IncompatibleBrokerVersion:
        raise BrokerError(
            f"{admin.target.spelled} cannot {doing}: its brokers do not know StreamsGroupDescribe,"
            " which is in Kafka 4.1 and newer"
        ) from None
    return read_streams_group(row, coordinator)


def streams_facts(admin: Admin, group: DescribedStreamsGroup) -> StreamsFacts:
    """Return sizes and racks of the group's topics, and offsets of its inputs and changelogs.

    Raises:
        BrokerError: the cluster does not answer.
        InvalidDescription: a topic, or all changelogs, have more than `PARTITIONS_MOST`
            partitions.
    """
    unknown: list[str] = []

    allowed = partial(if_authorized, unknown)
    topics = allowed(None, lambda: topic_facts(admin, lambda _: group_topics_of(group)))
    sizes = None if topics is None else {name: row.partitions for name, row in topics.items()}
    for name, size in (sizes or {}).items():
        _check(size <= PARTITIONS_MOST, group.group_id, f"{size} partitions of {shown(name)}")
    partitions = read_partitions(group, StreamsFacts(partitions=sizes))
    logs = {
        TopicPartition(topic.name, number)
        for part in group.subtopologies or ()
        for topic in part.state_changelog_topics
        for number in range((sizes or {}).get(topic.name, 0))
    }
    _check(len(logs) <= PARTITIONS_MOST, group.group_id, f"{len(logs)} partitions of changelogs")
    # The ends are read after the commits, which never pass them then.
    committed = allowed({}, lambda: committed_with_epochs(admin, group.group_id))
    ends = allowed({}, lambda: offsets_at(admin, partitions, LATEST))
    log_ends = allowed({}, lambda: offsets_at(admin, logs, LATEST))
    return StreamsFacts(
        partitions=sizes,
        committed=committed,
        starts=allowed({}, lambda: offsets_at(admin, partitions, EARLIEST)),
        ends=log_ends | ends,
        racks={name: row.racks for name, row in (topics or {}).items()},
        unknown=tuple(dict.fromkeys(unknown)),
    )


def read_streams_group(row: Any, coordinator: str) -> DescribedStreamsGroup:
    """Return a row of a StreamsGroupDescribe response as a value.

    Raises:
        InvalidDescription: a value that no coordinator sends, or more than `PARTITIONS_MOST`
            partitions.
    """
    group_id = str(row.group_id)
    if row.error_code == _GROUP_ID_NOT_FOUND:
        return DescribedStreamsGroup(
            group_id=group_id, state="Dead", group_epoch=-1, assignment_epoch=-1
        )
    state = str(row.group_state)
    _check(state in _STATES, group_id, f"state {shown(state)}")
    topology = row.topology
    parts = None
    if topology is not None and topology.subtopologies is not None:
        parts = tuple(_subtopology(group_id, part) for part in topology.subtopologies)
        _check_unique(group_id, "subtopology", [part.subtopology_id for part in parts])
    members = [_member(group_id, member) for member in _given(group_id, row.members, "members")]
    _check_unique(group_id, "member", [member.member_id for member in members])
    read = _partitions_read(parts or (), members)
    _check(read <= PARTITIONS_MOST, group_id, f"active tasks that read {read} partitions")
    return DescribedStreamsGroup(
        group_id=group_id,
        state=state,
        group_epoch=int(row.group_epoch),
        assignment_epoch=int(row.assignment_epoch),
        topology_epoch=None if topology is None else int(topology.epoch),
        subtopologies=parts,
        members=tuple(sorted(members, key=lambda member: (member.client_id, member.member_id))),
        coordinator=coordinator,
        assignor=None if row.assignor_name is None else str(row.assignor_name),
    )


def _partitions_read(
    parts: Iterable[StreamsSubtopology], members: Iterable[StreamsGroupMember]
) -> int:
    """Return how many partitions the active tasks of all members read, without listing them."""
    topics = {part.subtopology_id: len(part.input_topics) for part in parts}
    active = (task for member in members for task in member.current.active)
    return sum(topics.get(task.subtopology, 0) for task in active)


def _subtopology(group_id: str, row: Any) -> StreamsSubtopology:
    def rows(name: str) -> Any:
        return _given(group_id, getattr(row, name), f"{name} of subtopology {row.subtopology_id}")

    return StreamsSubtopology(
        subtopology_id=str(_given(group_id, row.subtopology_id, "subtopology id")),
        source_topics=tuple(map(str, rows("source_topics"))),
        repartition_sink_topics=tuple(map(str, rows("repartition_sink_topics"))),
        state_changelog_topics=tuple(_topic(group_id, t) for t in rows("state_changelog_topics")),
        repartition_source_topics=tuple(
            _topic(group_id, t) for t in rows("repartition_source_topics")
        ),
    )


def _topic(group_id: str, row: Any) -> InternalTopic:
    count = int(row.partitions)
    name = str(_given(group_id, row.name, "name of an internal topic"))
    _check(0 <= count <= PARTITIONS_MOST, group_id, f"{count} partitions of {shown(name)}")
    configs = _given(group_id, row.topic_configs, f"configs of {name}")
    return InternalTopic(
        name=name,
        partitions=count,
        replication_factor=int(row.replication_factor),
        configs={str(pair.key): str(pair.value) for pair in configs},
    )


def _member(group_id: str, row: Any) -> StreamsGroupMember:
    def given(name: str) -> Any:
        return _given(group_id, getattr(row, name), f"{name} of a member")

    endpoint = row.user_endpoint
    return StreamsGroupMember(
        member_id=str(given("member_id")),
        member_epoch=int(row.member_epoch),
        client_id=str(given("client_id")),
        client_host=str(given("client_host")).removeprefix("/"),
        process_id=str(given("process_id")),
        instance_id=None if row.instance_id is None else str(row.instance_id),
        rack=None if row.rack_id is None else str(row.rack_id),
        topology_epoch=int(row.topology_epoch),
        endpoint=None if endpoint is None else f"{endpoint.host}:{endpoint.port}",
        tags={str(pair.key): str(pair.value) for pair in given("client_tags")},
        task_offsets=_offsets(group_id, given("task_offsets")),
        task_end_offsets=_offsets(group_id, given("task_end_offsets")),
        current=_tasks(group_id, given("assignment")),
        target=_tasks(group_id, given("target_assignment")),
        is_classic=bool(row.is_classic),
    )


def _tasks(group_id: str, row: Any) -> StreamsTasks:
    return StreamsTasks(
        active=_task_ids(group_id, row.active_tasks, "active tasks"),
        standby=_task_ids(group_id, row.standby_tasks, "standby tasks"),
        warmup=_task_ids(group_id, row.warmup_tasks, "warm-up tasks"),
    )


def _task_ids(group_id: str, rows: Iterable[Any] | None, what: str) -> tuple[StreamsTask, ...]:
    tasks = [
        _task(group_id, row.subtopology_id, partition)
        for row in _given(group_id, rows, what)
        for partition in _given(group_id, row.partitions, f"partitions of {what}")
    ]
    if len(set(tasks)) < len(tasks):
        _check_unique(group_id, "task", [str(task) for task in tasks])
    return tuple(sorted_tasks(tasks))


def _task(group_id: str, subtopology: Any, partition: Any) -> StreamsTask:
    number = int(partition)
    if not 0 <= number < PARTITIONS_MOST:  # the sentence costs more than the rest of a task
        _reject(group_id, f"partition {number} of {shown(subtopology)}")
    return StreamsTask(str(_given(group_id, subtopology, "subtopology of a task")), number)


def _offsets(group_id: str, rows: Iterable[Any]) -> dict[StreamsTask, int]:
    return {_task(group_id, row.subtopology_id, row.partition): int(row.offset) for row in rows}


def _given(group_id: str, value: Any, what: str) -> Any:
    """Return a value that may not be null."""
    if value is None:
        _reject(group_id, f"null as {shown(what)}")
    return value


def _check(is_valid: object, group_id: str, what: str) -> None:
    if not is_valid:
        _reject(group_id, what)


def _reject(group_id: str, what: str) -> NoReturn:
    raise InvalidDescription(
        f"the broker describes streams group {shown(group_id)} with {what}: not a"
        " description of a Kafka broker; check what listens at the bootstrap server"
    )


def _check_unique(group_id: str, what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        _check(name not in seen, group_id, f"{what} {shown(name)} twice")
        seen.add(name)
