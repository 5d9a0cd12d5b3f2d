"""What the subscriptions of a group say, as they come out of the boundary: grouped by process."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from assignor.placement import LAG_RUNNING, LAG_UNKNOWN, ClientInput
from assignor.topology import TaskPlan
from encoding import (
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    AssignorError,
    FutureSubscription,
    NativeSubscription,
    Subscription,
    TaskId,
    TopicPartition,
)
from probing import (
    EARLIEST_NATIVE_VERSION,
    RELEASES,
    UNKNOWN_VERSION,
    MemberVersions,
    RebalanceProtocol,
)
from probing.features import ASSIGNMENT_PROTOCOL

UNKNOWN_GENERATION = -1
# The lowest latest version of a JVM member that may be cooperative.
_COOPERATIVE_SINCE = min(
    release.latest_version
    for release in RELEASES
    if release.rebalance_protocol is RebalanceProtocol.COOPERATIVE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One member as the JoinGroup response shows it to the leader.

    Attributes:
        member_id: given by the coordinator.
        user_data: its subscription blob.
        owned_partitions: what the consumer protocol says it owns (wire version 1 and up); None from
            a client that does not show it to the leader. See `owned_by`.
    """

    member_id: str
    user_data: bytes
    owned_partitions: tuple[TopicPartition, ...] | None = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMember:
    """A member with what its bytes said: a subscription, a future one, or a reason why neither.

    `boundary.read_member` makes it; everything in it is about tasks and partitions of the plan.
    """

    member: GroupMember
    subscription: Subscription | FutureSubscription | None
    unreadable: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def client(self) -> str:
        """Key of the process: its id, or the member alone where no process id can be read."""
        if isinstance(self.subscription, Subscription):
            return str(self.subscription.process_id)
        return f"member {self.member.member_id}"

    @property
    def supported(self) -> int:
        """Its latest supported version; -1 where it does not say."""
        return (
            UNKNOWN_VERSION
            if self.subscription is None
            else self.subscription.latest_supported_version
        )

    @property
    def native(self) -> NativeSubscription | None:
        """What a native member says beyond Kafka's fields, where it can be read."""
        return self.subscription.native if isinstance(self.subscription, Subscription) else None


def versions_of(one: ReadMember) -> MemberVersions:
    """The two numbers of a member, or the mark that nothing could be read."""
    value = one.subscription
    if value is None:
        return MemberVersions(
            member_id=one.member.member_id,
            used_version=0,
            latest_supported_version=0,
            quarantined=True,
        )
    native = one.native
    readable = native is not None or value.version < EARLIEST_NATIVE_VERSION
    # Under a finalized level a member advertises no more than that, and says apart what it could.
    ranges = {} if native is None else native.feature_ranges
    latest_native = None if native is None else native.latest_supported_version
    if latest_native is not None and ASSIGNMENT_PROTOCOL in ranges:
        latest_native = max(latest_native, ranges[ASSIGNMENT_PROTOCOL][1])
    return MemberVersions(
        member_id=one.member.member_id,
        used_version=value.version,
        latest_supported_version=value.latest_supported_version,
        # Of a body that cannot be read, the second number still says what its writer reads.
        native_version=latest_native if readable else value.latest_supported_version,
        readable=readable,
        pinned=native is not None and native.pinned_version is not None,
    )


def wants_shutdown(one: ReadMember) -> bool:
    """Whether the member asks the whole application to stop (KIP-671)."""
    return (
        isinstance(one.subscription, Subscription)
        and one.subscription.error_code == AssignorError.SHUTDOWN_REQUESTED
    )


def previous_tasks(
    one: ReadMember, task_by_partition: Mapping[TopicPartition, TaskId]
) -> set[TaskId]:
    """Tasks that ran on this member: what it reports, and what the consumer protocol says."""
    said = one.member.owned_partitions or ()
    owned = {task_by_partition[p] for p in said if p in task_by_partition}
    if isinstance(one.subscription, Subscription):
        owned |= set(one.subscription.prev_tasks)
    return owned


def native_partitions(native: NativeSubscription, plan: TaskPlan) -> tuple[TopicPartition, ...]:
    """Partitions that a native member lists as its own; of topics of the plan only.

    A range of two thousand million partitions takes six bytes, so it is cut before it is listed.
    """
    return tuple(
        TopicPartition(topic, number)
        for topic, start, stop in native.owned_partitions
        for number in range(max(0, start), min(stop, plan.partition_counts.get(topic, 0)))
    )


def owned_by(one: ReadMember, plan: TaskPlan) -> tuple[TopicPartition, ...]:
    """Partitions that a cooperative member has not given up (KIP-429).

    Where the client hides the consumer protocol's field, native members say it in their own bytes.
    Of a JVM member there only its running tasks are known: from the release on that can be
    cooperative it may still own them, and at worst a task is withheld for one rebalance.
    """
    if one.member.owned_partitions is not None:
        return one.member.owned_partitions
    value, native = one.subscription, one.native
    if native is not None:
        return native_partitions(native, plan)
    if not isinstance(value, Subscription) or one.supported < _COOPERATIVE_SINCE:
        return ()
    inputs = plan.partitions_by_task
    return tuple(sorted(p for task in value.prev_tasks for p in inputs.get(task, ())))


def owned_generation(one: ReadMember) -> int:
    """The generation in which a member got its tasks; -1 where it does not say."""
    return UNKNOWN_GENERATION if one.native is None else one.native.owned_generation


def previous_standbys(one: ReadMember) -> tuple[TaskId, ...]:
    """Tasks whose state this member reports without running them."""
    value = one.subscription
    return value.standby_tasks if isinstance(value, Subscription) else ()


def clients_of(
    read: Sequence[ReadMember],
    task_by_partition: Mapping[TopicPartition, TaskId],
    end_offset_sums: Mapping[TaskId, int],
    lags_before: Mapping[str, Mapping[TaskId, int]],
    ignored: Mapping[str, AbstractSet[TaskId]],
) -> list[ClientInput]:
    """Merge the members of each process into one client.

    Args:
        read: the members.
        task_by_partition: what the consumer protocol says they own is said in partitions.
        end_offset_sums: of the tasks; a lag is the distance to it.
        lags_before: process id -> least lags up to the rebalance before.
        ignored: member id -> tasks that it says it ran, and that another runs now.
    """
    parts: dict[str, list[ReadMember]] = {}
    for one in read:
        parts.setdefault(one.client, []).append(one)
    clients = []
    for process_id, group in sorted(parts.items()):
        active: set[TaskId] = set()
        lags: dict[TaskId, int] = {}
        tags: tuple[tuple[str, str], ...] = ()
        for one in group:
            active |= previous_tasks(one, task_by_partition) - ignored.get(
                one.member.member_id, set()
            )
            if isinstance(one.subscription, Subscription):
                tags = tags or tuple(one.subscription.client_tags.items())
                for task, offset_sum in one.subscription.task_offset_sums:
                    lags[task] = _lag(offset_sum, end_offset_sums.get(task))
        clients.append(
            ClientInput(
                process_id=process_id,
                threads=len(group),
                active_tasks=frozenset(active),
                lags=lags,
                lags_before=lags_before.get(process_id, {}),
                tags=tags,
            )
        )
    return clients


def _lag(offset_sum: int, end: int | None) -> int:
    if offset_sum == RUNNING:
        return LAG_RUNNING
    if offset_sum == UNKNOWN_OFFSET_SUM or end is None:
        return LAG_UNKNOWN
    # Other numbers below 0 are no offsets: the copy lacks everything.
    return max(0, end - max(0, offset_sum))


def endpoints_of(read: Sequence[ReadMember]) -> dict[str, str]:
    """Member id -> endpoint, of the members that serve interactive queries."""
    return {
        one.member.member_id: one.subscription.user_endpoint
        for one in read
        if isinstance(one.subscription, Subscription) and one.subscription.user_endpoint
    }
