"""Read the subscription and the assignment of each member of a live group.

Bytes that cannot be read become a reason in text and do not affect other members.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from assignor.inspection.names import client_name
from assignor.inspection.releases import releases_writing
from assignor.inspection.values import AnswerLook, DescribedMember, MemberLook
from assignor.rebalance import (
    NOT_HERE,
    ConsumerAssignment,
    ConsumerSubscription,
    carried_from,
    reached_of,
    read_consumer_assignment,
    read_consumer_subscription,
    renumbered,
    reported_levels,
)
from assignor.topology import content_fingerprint
from encoding import (
    Assignment,
    AssignorError,
    DecodeError,
    FutureSubscription,
    HostInfo,
    NativeSubscription,
    Subscription,
    TaskId,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    decode_view,
    task_order,
)
from probing import EARLIEST_NATIVE_VERSION
from probing.features import UNKNOWN_LEVELS

# Bytes of a member in the group's record: two timeouts, lengths of four texts and two blobs.
_MEMBER_FIXED = 24


def look_at_member(described: DescribedMember, group_id: str) -> MemberLook:
    """Read both blobs of a member of a Streams group; never raises."""
    outer, why = _outer(described.metadata)
    answer, why_answer = look_at_answer(described.assignment)
    look = _unread(described, group_id, answer, (why, why_answer))
    if outer is None:
        return look
    try:
        value = decode_subscription(outer.user_data)
    except DecodeError as error:
        return _with(look, outer, unreadable="; ".join(filter(None, (str(error), why_answer))))
    if isinstance(value, FutureSubscription):
        return _future(look, outer, value)
    return _in_group_numbers(_known(look, outer, value))


def look_at_stock_member(described: DescribedMember, group_id: str) -> MemberLook:
    """Read the consumer protocol part of a member of any assignor; never raises."""
    outer, why = _outer(described.metadata)
    assigned, why_answer = _assigned(described.assignment)
    answer = AnswerLook() if assigned is None else _bare(assigned)
    look = _unread(described, group_id, answer, (why, why_answer))
    return look if outer is None else _with(look, outer)


def _unread(
    described: DescribedMember, group_id: str, answer: AnswerLook, whys: Iterable[str]
) -> MemberLook:
    """A member before its subscription is read; `whys` are the reasons of unreadable parts."""
    return MemberLook(
        described=described,
        process=f"member {described.member_id}",
        client=client_name(described.client_id, group_id),
        answer=answer,
        record_bytes=record_bytes(described),
        unreadable="; ".join(filter(None, whys)),
    )


def record_bytes(described: DescribedMember) -> int:
    """Bytes of a member in the group's record."""
    texts = (
        described.member_id,
        described.instance_id or "",
        described.client_id,
        f"/{described.client_host}",
    )
    named = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return named + _MEMBER_FIXED + len(described.metadata) + len(described.assignment)


def look_at_answer(data: bytes) -> tuple[AnswerLook, str]:
    """Read an assignment; the text is empty, or says why it cannot be read."""
    assigned, why = _assigned(data)
    if assigned is None:
        return AnswerLook(), why
    try:
        value = decode_assignment(assigned.user_data)
    except DecodeError as error:
        return _bare(assigned), str(error)
    native = value.native
    active = tuple(sorted(set(value.active_tasks), key=task_order))
    return AnswerLook(
        consumer_version=assigned.version,
        version=value.version,
        common=value.commonly_supported_version,
        native=native is not None,
        next_version=0 if native is None else native.next_version,
        levels=UNKNOWN_LEVELS
        if native is None
        else reported_levels(native.feature_levels, native.feature_epoch),
        partitions=assigned.partitions,
        active=active,
        standby=tuple(sorted(value.standby_tasks, key=task_order)),
        warmup=None if native is None else native.warmup_tasks,
        topics_of=_topics_of(value, assigned.partitions),
        next_rebalance_ms=value.next_rebalance_ms,
        error_code=value.error_code,
        hosts=value.partitions_by_host or None,
        view_hosts=_view_hosts(value),
        numbered_by=() if native is None else native.numbered_by,
        reached={} if native is None else reached_of(native.reached_versions),
    ), ""


def _bare(assigned: ConsumerAssignment) -> AnswerLook:
    return AnswerLook(consumer_version=assigned.version, partitions=assigned.partitions)


def _outer(data: bytes) -> tuple[ConsumerSubscription | None, str]:
    try:
        return read_consumer_subscription(data), ""
    except DecodeError as error:
        return None, str(error)


def _assigned(data: bytes) -> tuple[ConsumerAssignment | None, str]:
    if not data:
        # The coordinator has no bytes for a member to which the leader assigned nothing.
        return None, "the leader sent no assignment"
    try:
        return read_consumer_assignment(data), ""
    except DecodeError as error:
        return None, str(error)


def _with(look: MemberLook, outer: ConsumerSubscription, **more: Any) -> MemberLook:
    fields: dict[str, Any] = {
        "consumer_version": outer.version,
        "topics": tuple(sorted(outer.topics)),
        "owned": tuple(sorted(outer.owned_partitions)),
        "generation": outer.generation,
        "rack": outer.rack,
    }
    return replace(look, **(fields | more))


def _future(look: MemberLook, outer: ConsumerSubscription, value: FutureSubscription) -> MemberLook:
    is_native = value.version >= EARLIEST_NATIVE_VERSION
    return _with(
        look,
        outer,
        used=value.version,
        supported=value.latest_supported_version,
        native=value.latest_supported_version if is_native else None,
        evidence=releases_writing(value.version, value.latest_supported_version, outer.version),
    )


def _known(look: MemberLook, outer: ConsumerSubscription, value: Subscription) -> MemberLook:
    native = value.native
    native_fields = {} if native is None else _native_fields(native)
    return _with(
        look,
        outer,
        process=str(value.process_id),
        used=value.version,
        supported=value.latest_supported_version,
        evidence=releases_writing(
            value.version,
            value.latest_supported_version,
            outer.version,
            native=None if native is None else native.latest_supported_version,
            pin=None if native is None else native.pinned_version,
        ),
        endpoint=value.user_endpoint,
        tags=value.client_tags,
        sums=value.task_offset_sums,
        wants_shutdown=value.error_code == AssignorError.SHUTDOWN_REQUESTED,
        **native_fields,
    )


def _in_group_numbers(look: MemberLook) -> MemberLook:
    """Number what the member itself reports as its answer numbers it, and add what its tasks read.

    A member reports offsets by the numbers of its own topology.
    """
    if look.carried is None or not look.answer.numbered_by:
        return look
    numbers = {form: number for number, form in enumerate(look.answer.numbered_by)}
    own = look.carried.subtopologies
    to_group = [numbers.get(content_fingerprint(part), NOT_HERE) for part in own]
    active = {task.subtopology for task in look.answer.active}
    read = {
        number: frozenset(part.source_topics)
        for number, part in zip(to_group, own, strict=True)
        if number in active
    }
    return replace(
        look,
        sums=renumbered(look.sums, to_group),
        end_sums=renumbered(look.end_sums, to_group),
        answer=replace(
            look.answer,
            topics_of={**look.answer.topics_of, **dict(sorted(read.items()))},
        ),
    )


def _native_fields(native: NativeSubscription) -> dict[str, Any]:
    """Native fields of a subscription; rack and generation override the consumer protocol."""
    fields: dict[str, Any] = {
        "native": native.latest_supported_version,
        "pin": native.pinned_version,
        "levels": reported_levels(native.adopted_levels, native.adopted_epoch),
        "end_sums": native.end_offset_sums,
        "fingerprint": native.fingerprint.hex(),
        "topology_version": native.topology_version,
        "carried": carried_from(native.carried) if native.carried else None,
    }
    if native.rack is not None:
        fields["rack"] = native.rack
    if native.owned_generation >= 0:
        fields["generation"] = native.owned_generation
    return fields


def _topics_of(
    value: Assignment, partitions: tuple[TopicPartition, ...]
) -> Mapping[int, frozenset[str]]:
    """Subtopology -> topics that it reads, as far as a single assignment proves it."""
    found: dict[int, set[str]] = {}
    pairs: Iterable[tuple[TaskId, TopicPartition]] = ()
    if value.version < EARLIEST_NATIVE_VERSION and len(value.active_tasks) == len(partitions):
        # In Kafka's layouts the n-th task id belongs to the n-th sorted partition.
        pairs = zip(value.active_tasks, partitions, strict=True)
    for task, partition in pairs:
        found.setdefault(task.subtopology, set()).add(partition.topic)
    for task, inputs in value.standby_tasks.items():
        found.setdefault(task.subtopology, set()).update(partition.topic for partition in inputs)
    return {subtopology: frozenset(topics) for subtopology, topics in sorted(found.items())}


def _view_hosts(value: Assignment) -> Mapping[HostInfo, frozenset[TaskId]] | None:
    """Host -> tasks by a full native view; None for a delta, which needs its base."""
    native = value.native
    if native is None or native.view_full is None:
        return None
    try:
        view = decode_view(native.view_full)
    except DecodeError:
        return None
    tasks = [
        TaskId(subtopology, partition)
        for subtopology, size in enumerate(view.sizes)
        for partition in range(size)
    ]
    found: dict[HostInfo, set[TaskId]] = {host: set() for host in view.hosts}
    for task, owner in zip(tasks, view.active.tolist(), strict=True):
        if owner >= 0:
            found[view.hosts[owner]].add(task)
    return {host: frozenset(owned) for host, owned in sorted(found.items())}
