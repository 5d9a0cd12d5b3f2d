"""The next subscription of a member, as a value and as bytes."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from assignor.errors import MemberRefused
from assignor.rebalance.blobs import write_subscription
from assignor.rebalance.forms.own import OwnTopology
from assignor.rebalance.held_tasks import offset_sums, stateful_tasks
from assignor.rebalance.level_reports import supported_ranges
from assignor.rebalance.member_facts import Adopted, MemberIdentity
from assignor.topology import Subtopology
from encoding import (
    NativeSubscription,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    partition_ranges,
    view_reference,
)
from probing import (
    EARLIEST_NATIVE_VERSION,
    MemberModel,
    Refuse,
    Release,
    SubscriptionVersion,
    subscription_version,
)

_OFFSET_SUMS_SINCE = 7
_UNIQUE_FIELD_SINCE = 8
# Members that force a rebalance by `enforceRebalance`, with the bytes as they are.
_FORCES_REBALANCES = frozenset({MemberModel.FOLLOWUP, MemberModel.FOLLOWUP_WAITS})


def written_subscription(
    has: Adopted,
    *,
    release: Release,
    identity: MemberIdentity,
    topology: OwnTopology,
    sums: Mapping[TaskId, int],
    restoring: Collection[TaskId],
    gave_up: bool,
    number: int,
    error_code: int,
    owned_partitions: tuple[TopicPartition, ...],
    owned_generation: int,
) -> tuple[Subscription, bytes]:
    """Return the next subscription; arguments and errors as those of `Member.subscription`.

    Args:
        has: what the answers so far left the member.
        release: whose rules it follows.
        identity: what it reports about itself.
        topology: what it can run.
        sums: task -> sum of the state on this member.
        restoring: stateful active tasks that count by their sums.
        gave_up: all active tasks do.
        number: of its subscriptions so far.
        error_code: of KIP-671.
        owned_partitions: what a cooperative member has not given up.
        owned_generation: in which it got them, -1: unknown.
    """
    version = subscription_version(has.state)
    if isinstance(version, Refuse):
        raise MemberRefused(version.why)
    restores = stateful_tasks(restoring, topology.carried.subtopologies)
    native = _native_part(version, has, identity, topology, number=number)
    if native is not None:
        ranges = partition_ranges(owned_partitions)
        native = replace(native, owned_partitions=ranges, owned_generation=owned_generation)
    value = Subscription(
        version=version.used,
        latest_supported_version=version.latest_supported,
        process_id=identity.process_id,
        user_endpoint=identity.user_endpoint,
        task_offset_sums=TaskOffsetSums.from_mapping(
            offset_sums(has.held, sums, restores, gave_up=gave_up)
        ),
        unique_field=(number + 128) % 256 - 128,
        error_code=error_code,
        client_tags=identity.client_tags,
        native=native,
    )
    seen = _seen_by_jvm_leaders(value, topology.carried.subtopologies)
    data = write_subscription(value, kafka_offset_sums=seen)
    return value, data + _changing_byte(value, release, number)


def _native_part(
    version: SubscriptionVersion,
    has: Adopted,
    identity: MemberIdentity,
    topology: OwnTopology,
    *,
    number: int,
) -> NativeSubscription | None:
    """Return the native part, for the body or for the trailer behind Kafka's fields."""
    if version.native is None:
        return None
    held = None if has.view is None else view_reference(has.view)
    levels, is_body = has.state.levels, not version.has_trailer
    return NativeSubscription(
        version=version.used if is_body else version.native,
        latest_supported_version=version.latest_supported if is_body else version.native,
        instance_id=identity.instance_id,
        rack=identity.rack,
        sizes=has.sizes,
        nonce=number + 1,
        view_epoch=-1 if held is None else held.epoch,
        view_checksum=0 if held is None else held.checksum,
        pinned_version=version.used if version.pinned else None,
        feature_ranges={**supported_ranges(has.state.all_versions), **topology.ranges()},
        adopted_levels=levels.levels,
        adopted_epoch=levels.epoch,
        **topology.reported(),
    )


def _seen_by_jvm_leaders(
    value: Subscription, subtopologies: tuple[Subtopology, ...]
) -> TaskOffsetSums | None:
    """Return offset sums for Kafka's own fields if they differ from the trailer's, else None.

    JVM members name no stateless task in them, and a JVM leader of 2.8 ends with "Tried to lookup
    lag for unknown task" if a member does. Versions before 7 have lists of tasks, which contain
    stateless tasks as well.
    """
    if value.native is None or not _OFFSET_SUMS_SINCE <= value.version < EARLIEST_NATIVE_VERSION:
        return None
    stateless = {part.id for part in subtopologies if not part.is_stateful}
    sums = value.task_offset_sums
    if not any(task.subtopology in stateless for task, _ in sums):
        return None
    stateful = {task: offset for task, offset in sums if task.subtopology not in stateless}
    return TaskOffsetSums.from_mapping(stateful)


def _changing_byte(value: Subscription, release: Release, unique: int) -> bytes:
    """Return a changing byte behind the fields of Kafka's versions without a unique field, or b"".

    Kafka's decoders stop at their last field. Releases before 2.6 forced a rebalance by leaving
    and joining anew, which the byte stands for here; 2.6.0 alone had neither (KAFKA-10455). Native
    members need none: their trailer has a nonce.
    """
    has_own = value.native is not None or value.version >= _UNIQUE_FIELD_SINCE
    if has_own or release.member_model in _FORCES_REBALANCES:
        return b""
    return bytes([unique % 256])
