"""Topics, offsets and limits of groups; one request for all groups where the brokers allow it.

If the user may not read offsets, topics or settings, that part is unknown, and a sentence says so;
the group is still shown.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kafka.admin import KafkaAdminClient
from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from assignor.adapters.admin.client import Admin, BrokerError, NotAuthorized
from assignor.adapters.admin.coordinators import Row, answer_of, ask_coordinators, error_of
from assignor.inspection import ClusterFacts, TopicFacts, is_changelog
from encoding import TopicPartition

TopicsOf = Callable[[Iterable[str]], set[str]]
"""Selects a group's topics from all topic names."""

LATEST: Final = -1
"""In ListOffsets: the end offset."""
EARLIEST: Final = -2
"""In ListOffsets: the first offset."""
_OFFSETS_TOPIC: Final = "__consumer_offsets"
_TOPIC_RESOURCE: Final = 2
_LIMIT_NAME: Final = "max.message.bytes"
_NO_LEADER: Final = -1
_MOVED: Final = (3, 5, 6, 9)
"""Error codes of a partition whose leader moves to another broker."""
_DIGITS_MOST: Final = 10
"""Most digits of max.message.bytes."""


class _Commit(NamedTuple):
    offset: int
    leader_epoch: int


class _Topic(NamedTuple):
    """A topic, and the leaders of its partitions by number."""

    facts: TopicFacts
    leaders: Mapping[int, int]


def facts_of_groups(
    admin: Admin, topics_by_group: Mapping[str, TopicsOf]
) -> dict[str, ClusterFacts]:
    """Return topics and offsets of groups, and the size limit of a group's record.

    A group's topics are those that are selected for it, and those with its committed offsets.

    Raises:
        BrokerError: the cluster does not answer.
    """
    if not topics_by_group:
        return {}
    unknown: list[str] = []
    allowed = partial(_if_authorized, unknown)
    commits = commits_of_groups(admin, list(topics_by_group))
    described = allowed(None, lambda: _read_topics(admin))
    topics: Mapping[str, _Topic] = described or {}
    named: dict[str, list[str]] = {}
    for group_id, topics_of in topics_by_group.items():
        own = commits[group_id]
        committed = set() if isinstance(own, BrokerError) else {row.topic for row in own}
        named[group_id] = sorted((topics_of(topics) | committed) & topics.keys())
    # The ends are read after the commits, which never pass them then.
    leaders = _leaders(topics, {name for names in named.values() for name in names})
    ends = allowed({}, lambda: offsets_at(admin, leaders, LATEST))
    inputs = {row: node for row, node in leaders.items() if not is_changelog(row.topic)}
    starts = allowed({}, lambda: offsets_at(admin, inputs, EARLIEST))
    limit = allowed(None, lambda: _record_limit(admin))
    found = {}
    for group_id, names in named.items():
        own, why = commits[group_id], list(unknown)
        if isinstance(own, BrokerError):
            own, why = {}, [str(own), *unknown]
        rows = {name: topics[name] for name in names}
        partitions = _leaders(rows, names)
        found[group_id] = ClusterFacts(
            topics={name: row.facts for name, row in rows.items()},
            has_topics=described is not None,
            committed={row: commit.offset for row, commit in own.items()},
            leader_epochs={row: commit.leader_epoch for row, commit in own.items()},
            end_offsets={row: ends[row] for row in partitions if row in ends},
            start_offsets={row: starts[row] for row in partitions if row in starts},
            record_limit=limit,
            unknown=tuple(dict.fromkeys(why)),
        )
    return found


def _if_authorized(unknown: list[str], otherwise: Any, ask: Callable[[], Any]) -> Any:
    """Return what `ask` returns; if it lacks rights, `otherwise`, and add why to `unknown`."""
    try:
        return ask()
    except NotAuthorized as error:
        unknown.append(str(error))
        return otherwise


def _leaders(topics: Mapping[str, _Topic], names: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the leaders of all partitions of these topics, sorted."""
    return {
        TopicPartition(name, number): node
        for name in sorted(names)
        for number, node in sorted(topics[name].leaders.items())
    }


def partition_counts(admin: Admin, names: Iterable[str] | None = None) -> dict[str, int]:
    """Return the numbers of partitions of the topics that exist and may be described.

    Args:
        admin: the connected admin client.
        names: of the topics; None: all.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """
    topics = _read_topics(admin)
    wanted = topics.keys() if names is None else topics.keys() & {*names}
    return {name: topics[name].facts.partitions for name in sorted(wanted)}


def offsets_of_topics(
    admin: Admin, names: Iterable[str], timestamp: int
) -> dict[TopicPartition, int]:
    """Return the offset of each partition of topics, as `offsets_at` does.

    Topics that do not exist and partitions without a leader are left out.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """
    topics = _read_topics(admin)
    return offsets_at(admin, _leaders(topics, topics.keys() & {*names}), timestamp)


def _read_topics(admin: Admin) -> dict[str, _Topic]:
    """Return all topics that may be described."""

    async def ask(client: KafkaAdminClient) -> dict[str, _Topic]:
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False, max_version=9)
        answer = await client._manager.send(request)  # noqa: SLF001 the client's own methods have no deadline
        racks = {broker.node_id: broker.rack for broker in answer.brokers}
        return {
            str(row.name): _Topic(
                TopicFacts(partitions=len(row.partitions), racks=_racks(row.partitions, racks)),
                {int(part.partition_index): int(part.leader_id) for part in row.partitions},
            )
            for row in answer.topics
            if not row.error_code
        }

    return admin.ask("show the topics", ask)


def _racks(rows: Sequence[Any], racks: Mapping[int, str | None]) -> dict[int, frozenset[str]]:
    found = {}
    for row in rows:
        named = {racks.get(node) for node in row.replica_nodes}
        if None not in named and named:
            found[int(row.partition_index)] = frozenset(str(rack) for rack in named)
    return found


def commits_of_groups(admin: Admin, group_ids: Sequence[str]) -> dict[str, Any]:
    """Return the commits of each group by partition, or the `BrokerError` of a group.

    Brokers from 3.0 on are asked about all groups of a coordinator in one request (KIP-709).

    Raises:
        BrokerError: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient, node: int, own: Sequence[str]) -> Iterable[Row]:
        rows: list[Row] = []
        every = dict.fromkeys(own)
        for group_id, request in client._list_group_offsets_requests(every):  # noqa: SLF001 as above
            response = await client._manager.send(request, node_id=node)  # noqa: SLF001 as above
            groups = [response] if group_id else response.groups
            rows += (
                Row(group_id or str(group.group_id), _commit_error(group), dict(_commits(group)))
                for group in groups
            )
        return rows

    return ask_coordinators(admin, "show the offsets of group {}", group_ids, ask)


def _commit_error(group: Any) -> int:
    """Return the error of a group, or the first one of its partitions."""
    codes = [part.error_code for topic in group.topics for part in topic.partitions]
    return next(filter(None, (group.error_code, *codes)), 0)


def _commits(group: Any) -> Iterator[tuple[TopicPartition, _Commit]]:
    for topic in group.topics:
        for part in topic.partitions:
            epoch = part.committed_leader_epoch
            yield (
                TopicPartition(str(topic.name), int(part.partition_index)),
                _Commit(int(part.committed_offset), -1 if epoch is None else int(epoch)),
            )


def committed_offsets(admin: Admin, group_id: str) -> dict[TopicPartition, int]:
    """Return a group's committed offsets.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """
    found = answer_of(commits_of_groups(admin, [group_id])[group_id])
    return {partition: commit.offset for partition, commit in found.items()}


def offsets_at(
    admin: Admin, leaders: Mapping[TopicPartition, int], timestamp: int
) -> dict[TopicPartition, int]:
    """Return the end offsets, the first ones, or those of a time.

    Args:
        admin: the connected admin client.
        leaders: the partitions, each with the node id of its leader; one request for each leader.
        timestamp: `LATEST`, `EARLIEST`, or milliseconds since 1970: the offset of the first record
            that is not older, or -1 if there is none.

    Raises:
        BrokerError, NotAuthorized: as in `Admin.ask`.
    """

    async def ask(client: KafkaAdminClient) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}
        for node in sorted(set(leaders.values()) - {_NO_LEADER}):
            own = [partition for partition, leader in leaders.items() if leader == node]
            response = await client._manager.send(_offsets_request(own, timestamp), node_id=node)  # noqa: SLF001 as above
            for topic in response.topics:
                for row in topic.partitions:
                    error = error_of(row.error_code)
                    partition = TopicPartition(str(topic.name), row.partition_index)
                    if error is None:
                        found[partition] = int(row.offset)
                    elif row.error_code not in _MOVED:
                        raise error
                    # The offset of a partition that moves stays unknown.
        return found

    doing = {LATEST: "show end offsets", EARLIEST: "show first offsets"}
    return admin.ask(doing.get(timestamp, "show the offsets of a time"), ask)


def _offsets_request(partitions: Iterable[TopicPartition], timestamp: int) -> ListOffsetsRequest:
    topic_row = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return ListOffsetsRequest(
        isolation_level=0,
        topics=[
            topic_row(
                name=topic,
                partitions=[
                    topic_row.ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic.items()
        ],
        min_version=1,
    )


def _record_limit(admin: Admin) -> int | None:
    """Return max.message.bytes of the offsets topic; None if it cannot be read."""
    found = _topic_setting(admin, [_OFFSETS_TOPIC], _LIMIT_NAME).get(_OFFSETS_TOPIC, "")
    return int(found) if _is_count(found) else None


def cleanup_policies(admin: Admin, topics: Collection[str]) -> dict[str, str]:
    """Return topic -> its `cleanup.policy`; none if this user may not describe topics' settings.

    Raises:
        BrokerError: as in `Admin.ask`.
    """
    try:
        return _topic_setting(admin, topics, "cleanup.policy")
    except NotAuthorized:
        return {}


def _topic_setting(admin: Admin, topics: Collection[str], name: str) -> dict[str, str]:
    """Return topic -> the value of a setting, of those that have one that can be read."""

    async def ask(client: KafkaAdminClient) -> dict[str, str]:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=_TOPIC_RESOURCE,
                    resource_name=topic,
                    configuration_keys=[name],
                )
                for topic in sorted(topics)
            ]
        )
        try:
            response = await client._manager.send(request)  # noqa: SLF001 as above
        except IncompatibleBrokerVersion:
            return {}
        found = {}
        for row in response.results:
            error = error_of(row.error_code)
            if error is not None and row.error_code not in _MOVED:
                raise error
            for setting in row.configs or ():
                if setting.name == name and setting.value is not None:
                    found[row.resource_name] = str(setting.value)
        return found

    return admin.ask(f"describe the settings of {', '.join(sorted(topics))}", ask)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST
