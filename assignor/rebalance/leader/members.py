"""Members of a group as the leader has read them, and the processes that they belong to."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

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
    ASSIGNMENT_PROTOCOL,
    EARLIEST_NATIVE_VERSION,
    RELEASES,
    UNKNOWN_VERSION,
    MemberVersions,
    RebalanceProtocol,
)

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
        owned_partitions: what it owns by the consumer protocol (wire version 1 and up); None from a
            client that does not show it to the leader. See `ReadMember.owned`.
    """

    member_id: str
    user_data: bytes
    owned_partitions: tuple[TopicPartition, ...] | None = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadMember:
    """A member with its decoded subscription, a future one, or the reason why there is neither.

    `boundary.restrict_members` makes it; all tasks and partitions in it are those of the plan. What
    follows from the subscription is computed once, when first asked for.
    """

    member: GroupMember
    subscription: Subscription | FutureSubscription | None
    plan: TaskPlan = field(repr=False)
    why_quarantined: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Member id, given by the coordinator."""
        return self.member.member_id

    @cached_property
    def client(self) -> str:
        """Key of the process: its id, or the member alone if no process id can be read."""
        if isinstance(self.subscription, Subscription):
            return str(self.subscription.process_id)
        return f"member {self.id}"

    @property
    def supported(self) -> int:
        """Its latest supported version; -1 if it is not known."""
        return (
            UNKNOWN_VERSION
            if self.subscription is None
            else self.subscription.latest_supported_version
        )

    @property
    def native(self) -> NativeSubscription | None:
        """The native fields of its subscription, if they can be read."""
        return self.subscription.native if isinstance(self.subscription, Subscription) else None

    @cached_property
    def versions(self) -> MemberVersions:
        """Its two version numbers, or the mark that nothing could be read."""
        value = self.subscription
        if value is None:
            return MemberVersions(
                member_id=self.id, used_version=0, latest_supported_version=0, quarantined=True
            )
        native = self.native
        readable = native is not None or value.version < EARLIEST_NATIVE_VERSION
        # Under a finalized level a member advertises no more; its range tells what it could.
        ranges = {} if native is None else native.feature_ranges
        latest_native = None if native is None else native.latest_supported_version
        if latest_native is not None and ASSIGNMENT_PROTOCOL in ranges:
            latest_native = max(latest_native, ranges[ASSIGNMENT_PROTOCOL][1])
        return MemberVersions(
            member_id=self.id,
            used_version=value.version,
            latest_supported_version=value.latest_supported_version,
            # Of a body that cannot be read, the second number is still the writer's latest version.
            native_version=latest_native if readable else value.latest_supported_version,
            readable=readable,
            pinned=native is not None and native.pinned_version is not None,
        )

    @cached_property
    def reported(self) -> frozenset[TaskId]:
        """Tasks that it reports as running."""
        value = self.subscription
        return frozenset(value.prev_tasks) if isinstance(value, Subscription) else frozenset()

    @cached_property
    def ran(self) -> frozenset[TaskId]:
        """Tasks that ran on this member, by its report or by the consumer protocol."""
        by_partition = self.plan.task_by_partition
        listed = self.member.owned_partitions or ()
        return self.reported | {by_partition[p] for p in listed if p in by_partition}

    @cached_property
    def owned(self) -> tuple[TopicPartition, ...]:
        """Partitions that a cooperative member has not revoked (KIP-429).

        Native members list them in their own bytes, for clients that hide the consumer protocol's
        field. Of a JVM member there only its running tasks are known: from the release on that can
        be cooperative it may still own them, and at worst a task is withheld for one rebalance.
        """
        if self.member.owned_partitions is not None:
            return self.member.owned_partitions
        value, native = self.subscription, self.native
        if native is not None:
            return native_partitions(native, self.plan)
        if not isinstance(value, Subscription) or self.supported < _COOPERATIVE_SINCE:
            return ()
        inputs = self.plan.partitions_by_task
        return tuple(sorted(p for task in value.prev_tasks for p in inputs.get(task, ())))

    @cached_property
    def owned_tasks(self) -> frozenset[TaskId]:
        """Tasks of which it owns at least one partition."""
        by_partition = self.plan.task_by_partition
        return frozenset(by_partition[p] for p in self.owned if p in by_partition)

    @property
    def owned_generation(self) -> int:
        """The generation in which it got its tasks; -1 if it does not report one."""
        return UNKNOWN_GENERATION if self.native is None else self.native.owned_generation

    @property
    def standbys(self) -> tuple[TaskId, ...]:
        """Tasks whose state it reports without running them."""
        value = self.subscription
        return value.standby_tasks if isinstance(value, Subscription) else ()


def of_plan(member: ReadMember, plan: TaskPlan) -> ReadMember:
    """Return a member whose tasks are those of a smaller plan."""
    value = member.subscription
    if isinstance(value, Subscription) and len(value.task_offset_sums):
        kept = np.array([task in plan.partitions_by_task for task, _ in value.task_offset_sums])
        if not kept.all():
            value = replace(value, task_offset_sums=value.task_offset_sums.only(kept))
    return replace(member, plan=plan, subscription=value)


def wants_shutdown(member: ReadMember) -> bool:
    """Whether the member asks the whole application to stop (KIP-671)."""
    return (
        isinstance(member.subscription, Subscription)
        and member.subscription.error_code == AssignorError.SHUTDOWN_REQUESTED
    )


def native_partitions(native: NativeSubscription, plan: TaskPlan) -> tuple[TopicPartition, ...]:
    """Partitions that a native member lists as its own; of topics of the plan only.

    A range of two thousand million partitions takes six bytes, so it is cut before it is listed.
    """
    return tuple(
        TopicPartition(topic, number)
        for topic, start, stop in native.owned_partitions
        for number in range(max(0, start), min(stop, plan.partition_counts.get(topic, 0)))
    )


def clients_of(
    members: Sequence[ReadMember],
    end_offset_sums: Mapping[TaskId, int],
    lags_before: Mapping[str, Mapping[TaskId, int]],
    ignored: Mapping[str, AbstractSet[TaskId]],
) -> list[ClientInput]:
    """Merge the members of each process into one client.

    Args:
        members: those that can be given tasks.
        end_offset_sums: of the tasks; a lag is the distance to it.
        lags_before: process id -> least lags up to the previous rebalance.
        ignored: member id -> tasks that it reports and that are not believed any more (`claims`).
    """
    threads: dict[str, list[ReadMember]] = {}
    for member in members:
        threads.setdefault(member.client, []).append(member)
    clients = []
    for process_id, group in sorted(threads.items()):
        active: set[TaskId] = set()
        lags: dict[TaskId, int] = {}
        tags: tuple[tuple[str, str], ...] = ()
        for member in group:
            active |= member.ran - ignored.get(member.id, frozenset())
            if isinstance(member.subscription, Subscription):
                tags = tags or tuple(member.subscription.client_tags.items())
                for task, offset_sum in member.subscription.task_offset_sums:
                    lags[task] = task_lag(offset_sum, end_offset_sums.get(task))
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


def task_lag(offset_sum: int, end: int | None) -> int:
    """Return the lag of a copy from its reported offset sum and the end of its changelog."""
    if offset_sum == RUNNING:
        return LAG_RUNNING
    if end == 0:
        return 0  # there is nothing to restore
    if offset_sum == UNKNOWN_OFFSET_SUM or end is None:
        return LAG_UNKNOWN
    # Other numbers below 0 are no offsets: the copy lacks everything.
    return max(0, end - max(0, offset_sum))


def endpoints_of(members: Sequence[ReadMember]) -> dict[str, str]:
    """Member id -> endpoint, of the members that serve interactive queries."""
    return {
        member.id: member.subscription.user_endpoint
        for member in members
        if isinstance(member.subscription, Subscription) and member.subscription.user_endpoint
    }
