"""Bytes of a group's metadata in every encoding, for `assignor size`, from the real encoders.

Kafka's host maps are the largest part of an assignment and are the same for every member, so they
are encoded once per version.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from assignor.cli.size.group import SizedGroup, SizedMember
from encoding import (
    Assignment,
    NativeAssignment,
    NativeSubscription,
    PartitionsByHost,
    Subscription,
    TaskOffsetSums,
    ViewForm,
    ViewReference,
    encode_assignment,
    encode_subscription,
    encode_view_forms,
    partition_ranges,
)

__all__ = ["EncodingSize", "kafka_sizes", "native_sizes"]

_KAFKA = tuple(range(2, 12))
_NATIVE = 101
_EPOCH = 1_000  # a typical epoch; two bytes
_GENERATION = 1_000
_FINGERPRINT = bytes(range(8))
_NONCE = 2**62  # as many bytes as a random nonce
_NO_HOSTS = PartitionsByHost()


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingSize:
    """Bytes of each member's subscription and assignment in one encoding."""

    name: str
    subscriptions: tuple[int, ...]
    assignments: tuple[int, ...]

    @property
    def group(self) -> int:
        """Bytes of all subscriptions and assignments, which the broker stores."""
        return sum(self.subscriptions) + sum(self.assignments)


def kafka_sizes(group: SizedGroup, members: Sequence[SizedMember]) -> Iterator[EncodingSize]:
    """Yield the sizes in versions 2 to 11, as Kafka Streams writes them."""
    hosts, standby_hosts = group.host_maps()
    for version in _KAFKA:
        nobody = _kafka_answer(group, None, version)
        with_hosts = replace(
            nobody, partitions_by_host=hosts, standby_partitions_by_host=standby_hosts
        )
        shared = len(encode_assignment(with_hosts)) - len(encode_assignment(nobody))
        yield EncodingSize(
            name=f"v{version}",
            subscriptions=tuple(len(_kafka_subscription(member, version)) for member in members),
            assignments=tuple(
                shared + len(encode_assignment(_kafka_answer(group, member, version)))
                for member in members
            ),
        )


def native_sizes(group: SizedGroup, members: Sequence[SizedMember]) -> Iterator[EncodingSize]:
    """Yield the sizes in the native encoding, with the routing view in each form.

    The delta is the answer to the existing members in the round in which one client joins.
    """
    after = group.with_one_joined()
    stayed = [member for member in after.members() if member.client is not after.clients[-1]]
    bare = NativeAssignment(
        sizes=group.sizes, partition_counts=group.partition_counts, next_version=_NATIVE
    )
    parts, held = _with_views(bare, group, after)
    for form, part in parts.items():
        reported = None if form is ViewForm.FULL else held
        answered = stayed if form is ViewForm.DELTA else members
        yield EncodingSize(
            name=f"native_{form}",
            subscriptions=tuple(len(_native_subscription(group, m, reported)) for m in members),
            assignments=tuple(
                len(_native_assignment_bytes(group, member, part)) for member in answered
            ),
        )


def _with_views(
    bare: NativeAssignment, group: SizedGroup, after: SizedGroup
) -> tuple[dict[ViewForm, NativeAssignment], ViewReference | None]:
    """Return answers with the view in each form, and the reference to the view before the join."""
    if all(client.host is None for client in group.clients):
        # Without endpoints there is no view.
        return dict.fromkeys((ViewForm.FULL, ViewForm.DELTA, ViewForm.REFERENCE), bare), None
    old = group.view(_EPOCH)
    forms = encode_view_forms(old)
    later = encode_view_forms(after.view(_EPOCH + 1, previous=old), older=[old])
    # A delta that is larger than the view itself is not sent.
    delta = replace(bare, view_full=later.full)
    if forms.name in later.delta_by_held:
        delta = replace(bare, view_delta=later.delta_by_held[forms.name])
    return {
        ViewForm.FULL: replace(bare, view_full=forms.full),
        ViewForm.DELTA: delta,
        ViewForm.REFERENCE: replace(bare, view_reference=forms.reference),
    }, forms.name


def _kafka_subscription(member: SizedMember, version: int) -> bytes:
    client = member.client
    return encode_subscription(
        Subscription(
            version=version,
            latest_supported_version=_KAFKA[-1],
            process_id=client.process_id,
            user_endpoint=client.endpoint,
            task_offset_sums=member.sums,
            client_tags=client.tags,
        )
    )


def _kafka_answer(group: SizedGroup, member: SizedMember | None, version: int) -> Assignment:
    """Return a member's answer without host maps; None: the answer without tasks."""
    active, standby = ((), ()) if member is None else (member.active, member.standby)
    return Assignment(
        version=version,
        commonly_supported_version=_KAFKA[-1],
        active_tasks=tuple(group.tasks[task] for task in active for _ in group.partitions[task]),
        standby_tasks={group.tasks[task]: group.partitions[task] for task in standby},
        partitions_by_host=_NO_HOSTS,
        standby_partitions_by_host=_NO_HOSTS,
    )


def _native_subscription(
    group: SizedGroup, member: SizedMember, held: ViewReference | None
) -> bytes:
    """Return a subscription with all native fields."""
    client, ends = member.client, group.end_offset_sums
    active = [group.tasks[task] for task in member.active]
    return encode_subscription(
        Subscription(
            version=_NATIVE,
            latest_supported_version=_NATIVE,
            process_id=client.process_id,
            user_endpoint=client.endpoint,
            task_offset_sums=member.sums,
            client_tags=client.tags,
            native=NativeSubscription(
                threads=client.threads,
                rack=client.rack,
                sizes=group.sizes,
                fingerprint=_FINGERPRINT,
                end_offset_sums=TaskOffsetSums.from_mapping(
                    {task: ends[task] for task in active if ends.get(task)}
                ),
                owned_partitions=partition_ranges(group.served(member)),
                owned_generation=_GENERATION,
                nonce=_NONCE,
                view_epoch=-1 if held is None else held.epoch,
                view_checksum=0 if held is None else held.checksum,
            ),
        )
    )


def _native_assignment_bytes(
    group: SizedGroup, member: SizedMember, native: NativeAssignment
) -> bytes:
    return encode_assignment(
        Assignment(
            version=_NATIVE,
            commonly_supported_version=_NATIVE,
            active_tasks=tuple(group.tasks[task] for task in member.active),
            standby_tasks={group.tasks[task]: () for task in member.standby},
            native=native,
        )
    )
