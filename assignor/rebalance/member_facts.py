"""What members and leaders of ours tell each other beside Kafka's fields, made or judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from uuid import UUID

from assignor.errors import ConfigError
from assignor.rebalance.endpoints import checked_endpoint
from assignor.rebalance.leader import levels_said
from assignor.topology import Subtopology, is_topic_name
from encoding import Assignment, Subscription, TaskOffsetSums, shown
from probing import EARLIEST_NATIVE_VERSION, Command, NativeAnswer
from probing.features import PERSISTENT_METADATA, UNKNOWN_LEVELS

_OFFSET_SUMS_SINCE = 7
# Limits of Kafka: `StreamsConfig` for tags (KIP-708), a length of 16 bits for the rack (KIP-881).
_TAGS, _TAG_KEY, _TAG_VALUE = 5, 20, 30
_RACK_BYTES = 32_767
_TAGS_WANTED = (
    f"up to {_TAGS} tags, keys of 1 to {_TAG_KEY} characters, values of up to {_TAG_VALUE}"
)
_NAME_WANTED = "1 to 249 letters, digits, dots, underscores and hyphens, or None"


@lru_cache(maxsize=64)  # every member of a process has the same topology
def fingerprint(subtopologies: tuple[Subtopology, ...]) -> bytes:
    """8 bytes that are equal for equal topologies, or none without a topology."""
    if not subtopologies:
        return b""
    said = "\n".join(repr(subtopology) for subtopology in subtopologies)
    return blake2b(said.encode(), digest_size=8).digest()


def seen_by_jvm_leaders(
    value: Subscription, subtopologies: tuple[Subtopology, ...]
) -> TaskOffsetSums | None:
    """The offset sums for Kafka's own fields where they say less than the trailer, else None.

    JVM members name no stateless task there, and a JVM leader of 2.8 dies of one that does
    ("Tried to lookup lag for unknown task"). Before version 7 there are lists of tasks, which hold
    stateless ones as well.
    """
    if value.native is None or not _OFFSET_SUMS_SINCE <= value.version < EARLIEST_NATIVE_VERSION:
        return None
    stateless = {one.id for one in subtopologies if not one.is_stateful}
    sums = value.task_offset_sums
    if not any(task.subtopology in stateless for task, _ in sums):
        return None
    stateful = {task: said for task, said in sums if task.subtopology not in stateless}
    return TaskOffsetSums.from_mapping(stateful)


def native_answer(assignment: Assignment) -> NativeAnswer | None:
    """What a leader of ours says beside Kafka's two numbers, or None from a JVM leader."""
    native = assignment.native
    if native is None:
        return None
    return NativeAnswer(
        next_version=native.next_version,
        subscription_read=native.subscription_read,
        levels=levels_said(native.feature_levels, native.feature_epoch),
    )


def persistent_version_told(assignment: Assignment) -> int:
    """The persistent version that the leader writes itself (KIP-384); 0: it does not say.

    It says so where no levels are finalized; where they are, the finalized level counts.
    """
    native = assignment.native
    if native is None or native.feature_epoch != UNKNOWN_LEVELS.epoch:
        return 0
    return native.feature_levels.get(PERSISTENT_METADATA, 0)


def other_topology(assignment: Assignment | None, subtopologies: Sequence[Subtopology]) -> str:
    """Why an answer is about another topology than a member's own, or nothing."""
    native = None if assignment is None else assignment.native
    theirs = 0 if native is None else len(native.sizes)
    ours = max((part.id for part in subtopologies), default=-1) + 1
    if not theirs or theirs == ours:
        return ""
    return f"the answer is about {theirs} subtopologies, and this member's topology has {ours}"


def outdated_answer(assignment: Assignment | None, subtopologies: Sequence[Subtopology]) -> str:
    """Why an answer was not written for the program that the member runs now, or nothing.

    Without its native body a member runs its tasks, and knows no routing, level or warm-up.
    """
    native = None if assignment is None else assignment.native
    if native is not None and not native.is_readable:
        return f"the answer has a native body of version {native.version}, which is unknown here"
    return other_topology(assignment, subtopologies)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberIdentity:
    """What a member says about itself in every subscription.

    Attributes:
        process_id: of its process; outlives restarts.
        user_endpoint: `host:port` for interactive queries, or None.
        client_tags: KIP-708 tags.
        rack: `client.rack`, or None; said by native members.
        instance_id: `group.instance.id` of a static member, or None; said by native members.

    Raises:
        ConfigError: a value that other members cannot read, or that Kafka refuses: an endpoint that
            is no `host:port`, more than 5 tags, a tag of more than 20 characters or with a value of
            more than 30, a rack of more than 32,767 bytes, an instance id that is no topic name.
    """

    process_id: UUID
    user_endpoint: str | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None
    instance_id: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "user_endpoint", checked_endpoint(self.user_endpoint))
        for name, value, wanted, is_right in (
            ("process_id", self.process_id, "a uuid.UUID", _is_process),
            ("client_tags", self.client_tags, _TAGS_WANTED, _are_tags),
            ("rack", self.rack, f"text of up to {_RACK_BYTES} bytes", _is_rack),
            ("group_instance_id", self.instance_id, _NAME_WANTED, _is_instance),
        ):
            if not is_right(value):
                raise ConfigError(f"{name}={shown(repr(value))} is refused; give {wanted}")


def _is_process(value: object) -> bool:
    return isinstance(value, UUID)


def _are_tags(value: object) -> bool:
    """Whether these are client tags that Kafka Streams would start with (KIP-708)."""
    return (
        isinstance(value, Mapping)
        and len(value) <= _TAGS
        and all(isinstance(key, str) and 0 < len(key) <= _TAG_KEY for key in value)
        and all(isinstance(text, str) and len(text) <= _TAG_VALUE for text in value.values())
    )


def _is_rack(value: object) -> bool:
    """Whether this fits the consumer protocol and a native body."""
    if not isinstance(value, str):
        return value is None
    return len(value.encode(errors="replace")) <= _RACK_BYTES


def _is_instance(value: object) -> bool:
    return value is None or (isinstance(value, str) and is_topic_name(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What an answer meant.

    Attributes:
        assignment: decoded, or None when the bytes could not be read.
        commands: what probing asks for, in order.
        for_version: a rejoin among them is only for the version, no follow-up.
        failure: why this member cannot follow, or "".
    """

    assignment: Assignment | None
    commands: tuple[Command, ...] = ()
    for_version: bool = False
    failure: str = ""
