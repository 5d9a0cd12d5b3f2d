"""Requests about streams groups (KIP-1071); the results are values of `assignor.inspection`.

What a broker sends is checked here: a value that no coordinator sends (a negative partition, a
member id that occurs twice) ends the inspection of this group with a sentence.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from kafka.admin import KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion

from assignor.adapters.admin.client import Admin, Refused
from assignor.adapters.admin.coordinators import GROUP_ID_NOT_FOUND, Row, ask_coordinators
from assignor.adapters.admin.messages import StreamsGroupDescribeRequest
from assignor.inspection import (
    ClusterFacts,
    DescribedStreamsGroup,
    InternalTopic,
    StreamsFacts,
    StreamsGroupMember,
    StreamsSubtopology,
    StreamsTask,
    StreamsTasks,
    sorted_tasks,
)
from encoding import shown

_UNSUPPORTED: Final = 35
_STATES: Final = frozenset(
    {"NotReady", "Assigning", "Reconciling", "Stable", "Empty", "Dead", "Unknown"}
)
PARTITIONS_MOST: Final = 1_000_000
"""Partitions of a topic, and those that all members read, above which a group is rejected."""


class InvalidDescription(ValueError):
    """A broker described a group in a way that no coordinator does."""


def describe_streams_groups(admin: Admin, group_ids: Sequence[str]) -> dict[str, Any]:
    """Return the description of each streams group: the arguments of `read_streams_group`.

    A group that is not described has its `BrokerError` instead.

    Raises:
        BrokerError: as in `Admin.ask`.
        Refused: the brokers are older than 4.1.
    """
    servers = admin.target.spelled

    async def ask(client: KafkaAdminClient, node: int, own: Sequence[str]) -> list[Row]:
        manager = client._manager  # noqa: SLF001 the client's own methods have no deadline
        request = StreamsGroupDescribeRequest(
            group_ids=list(own), include_authorized_operations=False, max_version=1
        )
        try:
            response = await manager.send(request, node_id=node)
        except IncompatibleBrokerVersion:
            raise Refused(
                f"{servers} cannot describe streams groups: its brokers do not know"
                " StreamsGroupDescribe, which is in Kafka 4.1 and newer"
            ) from None
        broker = manager.cluster.broker_metadata(node)
        place = f"{shown(broker.host)}:{broker.port} ({node})" if broker else f"({node})"
        times = Counter(str(row.group_id) for row in response.groups)
        return [_as_row(servers, r, place, times[str(r.group_id)]) for r in response.groups]

    return ask_coordinators(admin, "describe streams group {} and its topics", list(group_ids), ask)


def _as_row(servers: str, row: Any, place: str, times: int) -> Row:
    """Return the answer about a group; a broker without the feature says so of each group."""
    group_id, code = str(row.group_id), int(row.error_code)
    name = shown(group_id)
    if times != 1:
        return Row(group_id, 0, InvalidDescription(f"the broker describes {name} {times} times"))
    if code == _UNSUPPORTED:
        why = Refused(
            f"{servers} cannot describe streams group {name}: streams.version is not finalized, so"
            " the brokers serve no streams groups; see assignor features describe"
        )
        return Row(group_id, 0, why)
    return Row(group_id, 0 if code == GROUP_ID_NOT_FOUND else code, (row, place))


def streams_facts(group: DescribedStreamsGroup, facts: ClusterFacts) -> StreamsFacts:
    """Return what an inspection of a streams group uses of the facts of the cluster.

    Raises:
        InvalidDescription: a topic, or all changelogs, have more than `PARTITIONS_MOST`
            partitions.
    """
    sizes = {name: row.partitions for name, row in facts.topics.items()}
    for name, size in sizes.items():
        _check(size <= PARTITIONS_MOST, group.group_id, f"{size} partitions of {shown(name)}")
    logs = sum(
        sizes.get(topic.name, 0)
        for part in group.subtopologies or ()
        for topic in part.state_changelog_topics
    )
    _check(logs <= PARTITIONS_MOST, group.group_id, f"{logs} partitions of changelogs")
    return StreamsFacts(
        partitions=sizes if facts.has_topics else None,
        committed={
            partition: (offset, facts.leader_epochs.get(partition))
            for partition, offset in facts.committed.items()
        },
        starts=facts.start_offsets,
        ends=facts.end_offsets,
        racks={name: row.racks for name, row in facts.topics.items()},
        unknown=facts.unknown,
    )


def read_streams_group(row: Any, coordinator: str) -> DescribedStreamsGroup:
    """Return a row of a StreamsGroupDescribe response as a value.

    Raises:
        InvalidDescription: a value that no coordinator sends, or more than `PARTITIONS_MOST`
            partitions.
    """
    group_id = str(row.group_id)
    if row.error_code == GROUP_ID_NOT_FOUND:
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
