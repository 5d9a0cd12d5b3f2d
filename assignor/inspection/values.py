"""What a look into a live group takes and gives: described bytes in, what they say out."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignor.rebalance import GROUP_RECORD_LIMIT
from encoding import NO_REBALANCE, HostInfo, TaskId, TaskOffsetSums, TopicPartition
from probing.features import UNKNOWN_LEVELS, FinalizedLevels

STREAMS_PROTOCOL = "stream"
"""Name of the assignor in a Kafka Streams group, and of ours."""

NO_OFFSET = -1
"""Committed offset of a partition that nobody has committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    """One member as DescribeGroups shows it; both blobs are of the consumer protocol."""

    member_id: str
    client_id: str
    client_host: str = ""
    instance_id: str | None = None
    metadata: bytes = b""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    """One group as its coordinator shows it.

    Attributes:
        group_id: the group, which is `application.id` in Kafka Streams.
        state: as the coordinator spells it: Stable, PreparingRebalance, CompletingRebalance,
            Empty, Dead.
        protocol_type: `consumer`, `connect`, ...; empty where the group never had members.
        protocol_name: the assignor; empty where the group is not stable.
        group_type: `classic`, `consumer` (KIP-848), `streams` (KIP-1071), `share`; empty where the
            cluster does not tell.
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
    """A topic: how many partitions, and the racks of their replicas where brokers have racks."""

    partitions: int
    racks: Mapping[int, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What the cluster says beside the group itself; nothing here is needed.

    Attributes:
        topics: by name; those that do not exist, or may not be seen, are missing.
        committed: offsets of the group.
        end_offsets: of the partitions that were asked for.
        record_limit: bytes that the broker takes for the group's record, None: not told.
        unknown: sentences about what could not be asked.
    """

    topics: Mapping[str, TopicFacts] = field(default_factory=dict)
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    end_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    record_limit: int | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEvidence:
    """Which releases write what a member wrote.

    Attributes:
        releases: that write it by themselves, oldest first.
        pinned: that write it with a setting of `upgrade.from`, oldest first.
        pin_values: the settings that make them do it, oldest first.
        latest: the highest version that any of them can write.
        spelled: both in a few words, for a table.
    """

    releases: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    pin_values: tuple[str, ...] = ()
    latest: int = 0
    spelled: str = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLook:
    """What the leader answered a member.

    Attributes:
        consumer_version: of the consumer protocol, which is the leader's for all; -1: unreadable.
        version, common: the two numbers; 0 where it could not be read.
        native: whether native content came with it, which only a leader of ours sends.
        next_version: what it is told to write next time; 0: not said.
        levels: finalized levels that it is told (leaders of ours only).
        partitions: of the consumer protocol, sorted.
        active, standby: its tasks, sorted, each once; warm-ups are among the standbys.
        warmup: those that only warm up; None where the leader does not tell, as JVM leaders.
        topics_of: subtopology -> topics whose partitions are its tasks' beyond doubt.
        next_rebalance_ms: on the leader's clock; `NO_REBALANCE`: none is asked for.
        error_code: `AssignorError`.
        hosts: host -> partitions that it serves, by Kafka's host map; None: it carries none.
        view_hosts: host -> tasks, by a native view in full; None: it carries none.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLook:
    """What one member said and got.

    Attributes:
        described: as the coordinator shows it.
        process: key of its process: the process id, else the member itself.
        client: its client id without what Kafka Streams appends for a thread.
        used, supported: the two numbers of its subscription; 0 where nothing could be read.
        native: the highest native version that it reads; None: not one of ours.
        levels: finalized levels that it goes by (ours only).
        pin: version that it says `upgrade.from` pins it to (ours only).
        consumer_version: of the consumer protocol that it writes; -1: unreadable.
        evidence: which releases write so.
        topics, owned, generation: of the consumer protocol.
        endpoint, rack, tags, sums: as it says.
        end_sums: ends of the changelogs that it writes itself (ours only).
        fingerprint: of its topology (ours only), in hexadecimal digits.
        wants_shutdown: it asks the whole application to stop (KIP-671).
        answer: what it was answered.
        record_bytes: what it takes of the group's record.
        unreadable: why a blob could not be read; empty where both could.
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
        owners: processes that run it; one, in a sound group.
        standbys: processes that keep a copy.
        lag: records between the committed and the end offsets of its inputs; None: not known.
        end_sum: end offsets of its changelogs, added up; None: not known.
    """

    task: TaskId
    inputs: tuple[TopicPartition, ...]
    owners: tuple[str, ...]
    standbys: tuple[str, ...]
    lag: int | None = None
    end_sum: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The topology as far as it shows.

    Attributes:
        sources: subtopology -> topics that its tasks read.
        changelogs: subtopology -> changelog topics.
        loose_topics: topics that are assigned, of which it does not show who reads them.
        loose_changelogs: changelog topics of which it does not show whose they are.
    """

    sources: Mapping[int, tuple[str, ...]]
    changelogs: Mapping[int, tuple[str, ...]]
    loose_topics: tuple[str, ...] = ()
    loose_changelogs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLook:
    """One process: its members together.

    Attributes:
        process: its key; members: in order of their ids.
        lag: of its active tasks together; None where no part is known.
        state_lags: task -> records that its copy was behind at the last rebalance, seen from the
            end offsets now; None: it has state and does not tell how far.
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
    """Members of one process that hold the group's version down, why, and what to do."""

    process: str
    client: str
    version: int
    kind: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsLook:
    """What the group speaks, what it could speak, and who holds it down.

    `level` is the finalized level of the assignment protocol, None while there is none; it holds
    down members of ours only.
    """

    in_force: int
    possible: int
    holders: tuple[Holder, ...]
    sentence: str
    level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLook:
    """Members that may be the leader; it is known where that is one. `why` is the evidence."""

    candidates: tuple[str, ...]
    why: str

    @property
    def known(self) -> bool:
        """Whether it is known."""
        return len(self.candidates) == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something an operator should know: a word for programs, a sentence for people."""

    kind: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInspection:
    """What a group says.

    Attributes:
        described: as the coordinator shows it.
        summary: one sentence about the whole.
        is_streams: whether its members speak the assignment protocol; where not, only `members`
            (topics, partitions), `record_bytes` and `lag` are filled.
        clients, tasks, shape: who runs what.
        versions, leader: as far as they show; None where the group is no Streams group.
        lag: of all input partitions; None where nothing is known.
        next_rebalance_ms: the earliest that was asked for; `NO_REBALANCE`: none.
        host_map_holes: sentences about partitions without a host, or with a wrong one.
        record_bytes, record_limit: of the group's one record; limit_known: asked, not assumed.
        findings: what is wrong or dangerous, worst first.
        facts: what it was made from, beside the group.
    """

    described: DescribedGroup
    summary: str
    is_streams: bool = False
    members: tuple[MemberLook, ...] = ()
    clients: tuple[ClientLook, ...] = ()
    tasks: tuple[TaskLook, ...] = ()
    shape: Shape = field(default_factory=lambda: Shape(sources={}, changelogs={}))
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
