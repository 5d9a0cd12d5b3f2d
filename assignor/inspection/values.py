"""Input and result values of an inspection."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.inspection.streams_groups.values import StreamsGroupLook
from assignor.inspection.topology_values import TopologiesLook
from assignor.rebalance import GROUP_RECORD_LIMIT
from assignor.topology import CarriedTopologies
from encoding import NO_REBALANCE, HostInfo, TaskId, TaskOffsetSums, TopicPartition
from probing.features import UNKNOWN_LEVELS, FinalizedLevels
from probing.topologies import Reached

STREAMS_PROTOCOL = "stream"
"""Name of the assignor in a group of Kafka Streams members or native members."""

NO_OFFSET = -1
"""The committed offset of a partition without a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """A member of a DescribeGroups response; both blobs are in the consumer protocol."""

    member_id: str
    client_id: str
    client_host: str = ""
    instance_id: str | None = None
    metadata: bytes = b""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """A group of a DescribeGroups response.

    Attributes:
        group_id: the group, which is `application.id` in Kafka Streams.
        state: as spelled by the coordinator: Stable, PreparingRebalance, CompletingRebalance,
            Empty, Dead.
        protocol_type: `consumer`, `connect`, ...; empty if the group never had members.
        protocol_name: the assignor; empty if the group is not stable.
        group_type: `classic`, `consumer` (KIP-848), `streams` (KIP-1071), `share`; empty if the
            cluster does not report it.
        members: in any order.
    """

    group_id: str
    state: str
    protocol_type: str = "consumer"
    protocol_name: str = ""
    group_type: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    """A topic: number of partitions, and racks of their replicas if brokers have racks."""

    partitions: int
    racks: Mapping[int, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Facts of the cluster about a group; all are optional.

    Attributes:
        topics: by name, without topics that do not exist or are not authorized.
        has_topics: whether the cluster was asked for them, and told.
        committed, leader_epochs: committed offsets of the group, and the leader epochs of commits.
        start_offsets, end_offsets: of partitions; changelogs have no start offsets.
        record_limit: the broker's limit for the group's record in bytes; None: unknown.
        unknown: sentences about requests that failed.
    """

    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    has_topics: bool = False
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    start_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    record_limit: int | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEvidence:
    """Releases that may have written a subscription.

    Attributes:
        releases: those that write it without a pin, oldest first.
        pinned: those that write it with `upgrade.from`, oldest first.
        pin_values: the values of `upgrade.from` that do it, oldest first.
        latest: the highest version that any of them can write.
        spelled: `releases` and `pinned` as short text, for a table.
    """

    releases: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    pin_values: tuple[str, ...] = ()
    latest: int = 0
    spelled: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLook:
    """The assignment of a member.

    Attributes:
        consumer_version: of the consumer protocol, which is that of the leader; -1: unreadable.
        version, common: version and commonly supported version; 0 if unreadable.
        native: whether it has native content, which only native leaders send.
        next_version: version that the member must write next; 0: not given.
        levels: finalized levels (native leaders only).
        partitions: of the consumer protocol, sorted.
        active, standby: tasks, sorted, each once; standbys include warm-ups.
        warmup: the warm-ups; None if the leader does not report them, as JVM leaders.
        topics_of: subtopology -> topics that it certainly reads.
        next_rebalance_ms: on the leader's clock; `NO_REBALANCE`: none is requested.
        error_code: `AssignorError`.
        hosts: host -> partitions that it serves, by Kafka's host map; None: there is none.
        view_hosts: host -> tasks, by a full native view; None: there is none.
        numbered_by: content of each subtopology, by its number in the tasks (native leaders only).
        reached: versions of the topology that forms of subtopologies have reached.
    """

    consumer_version: int = -1
    version: int = 0
    common: int = 0
    native: bool = False
    next_version: int = 0
    levels: FinalizedLevels = UNKNOWN_LEVELS
    partitions: tuple[TopicPartition, ...] = ()
    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()
    warmup: tuple[TaskId, ...] | None = None
    topics_of: Mapping[int, frozenset[str]] = field(default_factory=dict)
    next_rebalance_ms: int = NO_REBALANCE
    error_code: int = 0
    hosts: Mapping[HostInfo, tuple[TopicPartition, ...]] | None = None
    view_hosts: Mapping[HostInfo, frozenset[TaskId]] | None = None
    numbered_by: tuple[bytes, ...] = ()
    reached: Mapping[bytes, Reached] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLook:
    """The subscription and the assignment of a member.

    Attributes:
        described: the member in the DescribeGroups response.
        process: the process id, else a text with the member id.
        client: its client id without the suffix for a thread.
        used, supported: version and latest supported version of its subscription; 0 if unreadable.
        native: the highest native version that it reads; None: a JVM member.
        levels: finalized levels that it has adopted (native members only).
        pin: version that `upgrade.from` pins it to (native members only).
        consumer_version: of the consumer protocol that it writes; -1: unreadable.
        evidence: releases that may have written the subscription.
        topics, owned, generation: of the consumer protocol.
        endpoint, rack, tags, sums: as in the subscription.
        end_sums: end offset sums of changelogs that it writes (native members only).
        fingerprint: of its topology (native members only), in hexadecimal digits.
        topology_version: the highest version of the topology that it can run (native members only).
        carried: the subtopologies that it describes; None: it describes none.
        wants_shutdown: whether it requests the whole application to stop (KIP-671).
        answer: its assignment.
        record_bytes: its bytes in the group's record.
        unreadable: why a blob cannot be read; empty if both can.
    """

    described: DescribedMember
    process: str
    client: str
    used: int = 0
    supported: int = 0
    native: int | None = None
    levels: FinalizedLevels = UNKNOWN_LEVELS
    pin: int | None = None
    consumer_version: int = -1
    evidence: ReleaseEvidence = ReleaseEvidence()
    topics: tuple[str, ...] = ()
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    endpoint: str | None = None
    rack: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    sums: TaskOffsetSums = TaskOffsetSums()  # noqa: RUF009 immutable
    end_sums: TaskOffsetSums = TaskOffsetSums()  # noqa: RUF009 immutable
    fingerprint: str = ""
    topology_version: int = 1
    carried: CarriedTopologies | None = None
    wants_shutdown: bool = False
    answer: AnswerLook = field(default_factory=AnswerLook)
    record_bytes: int = 0
    unreadable: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLook:
    """One task.

    Attributes:
        task: its id.
        inputs: partitions that it reads, as far as known.
        owners: processes that run it; one in a healthy group.
        standbys: processes with a standby.
        lag: records between the committed and the end offsets of its inputs; None: unknown.
        end_sum: sum of the end offsets of its changelogs; None: unknown.
    """

    task: TaskId
    inputs: tuple[TopicPartition, ...]
    owners: tuple[str, ...]
    standbys: tuple[str, ...]
    lag: int | None = None
    end_sum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The topology as far as is known.

    Attributes:
        sources: subtopology -> topics that its tasks read.
        changelogs: subtopology -> changelog topics.
        loose_topics: assigned topics whose subtopology is unknown.
        loose_changelogs: changelog topics whose subtopology is unknown.
    """

    sources: Mapping[int, tuple[str, ...]]
    changelogs: Mapping[int, tuple[str, ...]]
    loose_topics: tuple[str, ...] = ()
    loose_changelogs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLook:
    """A process with all its members.

    Attributes:
        process: its key; members: in order of their ids.
        lag: sum over its active tasks; None if all are unknown.
        state_lags: task -> records between the offset of its copy at the last rebalance and the
            current end offset; None: it has state with an unknown offset.
    """

    process: str
    client: str
    members: tuple[MemberLook, ...]
    active: tuple[TaskId, ...]
    standby: tuple[TaskId, ...]
    warmup: tuple[TaskId, ...] | None
    lag: int | None
    state_lags: Mapping[TaskId, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process whose members limit the version of the group, why, and what to do."""

    process: str
    client: str
    version: int
    kind: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsLook:
    """The version of the group, the possible version, and the processes that limit it.

    `level` is the finalized level of the assignment protocol, or None; it limits native members
    only.
    """

    in_force: int
    possible: int
    holders: tuple[Holder, ...]
    sentence: str
    level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLook:
    """Members that may be the leader; with one candidate it is known. `why` is the evidence."""

    candidates: tuple[str, ...]
    why: str

    @property
    def known(self) -> bool:
        """Whether the leader is known."""
        return len(self.candidates) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem or risk of a group: a kind for programs, a sentence for people."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInspection:
    """The result of an inspection.

    Attributes:
        described: the group in the DescribeGroups response.
        summary: one sentence about the group.
        is_streams: whether it is a classic Streams group; if not, only `members` (topics,
            partitions), `record_bytes` and `lag` are filled.
        streams_group: a streams group of the broker-side protocol (KIP-1071), with its members; of
            the others only `lag` and `findings` are filled.
        clients, tasks, shape: processes, tasks and topology.
        topologies: of a group that changes its topology; None if all run version 1.
        versions, leader: as far as is known; None if it is not a Streams group.
        lag: of all input partitions; None: unknown.
        next_rebalance_ms: the earliest requested rebalance; `NO_REBALANCE`: none.
        host_map_holes: sentences about missing or wrong hosts.
        record_bytes, record_limit: size and limit of the group's record in bytes; limit_known:
            whether the broker reported the limit.
        findings: problems and risks, worst first.
        facts: facts of the cluster used for the inspection.
    """

    described: DescribedGroup
    summary: str
    is_streams: bool = False
    streams_group: StreamsGroupLook | None = None
    members: tuple[MemberLook, ...] = ()
    clients: tuple[ClientLook, ...] = ()
    tasks: tuple[TaskLook, ...] = ()
    shape: Shape = field(default_factory=lambda: Shape(sources={}, changelogs={}))
    topologies: TopologiesLook | None = None
    versions: VersionsLook | None = None
    leader: LeaderLook | None = None
    lag: int | None = None
    next_rebalance_ms: int = NO_REBALANCE
    host_map_holes: tuple[str, ...] = ()
    record_bytes: int = 0
    record_limit: int = GROUP_RECORD_LIMIT
    limit_known: bool = False
    findings: tuple[Finding, ...] = ()
    facts: ClusterFacts = field(default_factory=ClusterFacts)
