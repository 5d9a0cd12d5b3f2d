"""What a member reports about itself, and what the native part of an answer means for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from assignor.errors import ConfigError
from assignor.rebalance.endpoints import checked_endpoint
from assignor.rebalance.forms.own import OwnTopology
from assignor.rebalance.level_reports import reported_levels
from assignor.topology import Subtopology, is_topic_name
from encoding import Assignment, Subscription, TaskOffsetSums, shown
from probing import EARLIEST_NATIVE_VERSION, Command, MemberModel, NativeAnswer, Release
from probing.features import PERSISTENT_METADATA, UNKNOWN_LEVELS

_OFFSET_SUMS_SINCE = 7
_UNIQUE_FIELD_SINCE = 8
# Members that force a rebalance by `enforceRebalance`, with the bytes as they are.
_FORCES_REBALANCES = frozenset({MemberModel.FOLLOWUP, MemberModel.FOLLOWUP_WAITS})
# Limits of Kafka: `StreamsConfig` for tags (KIP-708), a length of 16 bits for the rack (KIP-881).
_TAGS, _TAG_KEY, _TAG_VALUE = 5, 20, 30
_RACK_BYTES = 32_767
_TAGS_WANTED = (
    f"up to {_TAGS} tags, keys of 1 to {_TAG_KEY} characters, values of up to {_TAG_VALUE}"
)
_NAME_WANTED = "1 to 249 letters, digits, dots, underscores and hyphens, or None"


def seen_by_jvm_leaders(
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


def changing_byte(value: Subscription, release: Release, unique: int) -> bytes:
    """Return a changing byte behind the fields of Kafka's versions without a unique field, or b"".

    Kafka's decoders stop at their last field. Releases before 2.6 forced a rebalance by leaving
    and joining anew, which the byte stands for here; 2.6.0 alone had neither (KAFKA-10455). Native
    members need none: their trailer has a nonce.
    """
    has_own = value.native is not None or value.version >= _UNIQUE_FIELD_SINCE
    if has_own or release.member_model in _FORCES_REBALANCES:
        return b""
    return bytes([unique % 256])


def read_native_answer(assignment: Assignment) -> NativeAnswer | None:
    """Return what a native leader answers beside Kafka's two numbers; None from a JVM leader."""
    native = assignment.native
    if native is None:
        return None
    return NativeAnswer(
        next_version=native.next_version,
        subscription_read=native.subscription_read,
        levels=reported_levels(native.feature_levels, native.feature_epoch),
    )


def answered_persistent_version(assignment: Assignment) -> int:
    """Return the persistent version that the leader writes itself (KIP-384); 0: unknown.

    Leaders send it where no level is finalized; otherwise the finalized level counts.
    """
    native = assignment.native
    if native is None or native.feature_epoch != UNKNOWN_LEVELS.epoch:
        return 0
    return native.feature_levels.get(PERSISTENT_METADATA, 0)


def other_topology(assignment: Assignment | None, subtopologies: Sequence[Subtopology]) -> str:
    """Return why an answer is about another topology than a member's own, or ""."""
    native = None if assignment is None else assignment.native
    if native is not None and native.numbered_by:
        return ""  # the answer says which subtopologies it is about
    answered = 0 if native is None else len(native.sizes)
    own = max((part.id for part in subtopologies), default=-1) + 1
    if not answered or answered == own:
        return ""
    return f"the answer is about {answered} subtopologies, and this member's topology has {own}"


def outdated_answer(assignment: Assignment | None, topology: OwnTopology) -> str:
    """Return why an answer was not written for the program that the member runs now, or "".

    Without the native body a member runs its tasks, and knows no routing, level or warm-up.
    """
    native = None if assignment is None else assignment.native
    if native is not None and not native.is_readable:
        return f"the answer has a native body of version {native.version}, which is unknown here"
    return other_topology(assignment, topology.carried.subtopologies) or topology.unreached(
        assignment
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberIdentity:
    """What a member reports about itself in every subscription.

    Attributes:
        process_id: of its process; outlives restarts.
        user_endpoint: `host:port` for interactive queries, or None.
        client_tags: KIP-708 tags.
        rack: `client.rack`, or None; native members write it.
        instance_id: `group.instance.id` of a static member, or None; native members write it.

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
        instance = self.instance_id
        is_name = instance is None or (isinstance(instance, str) and is_topic_name(instance))
        for name, value, wanted, is_right in (
            ("process_id", self.process_id, "a uuid.UUID", isinstance(self.process_id, UUID)),
            ("client_tags", self.client_tags, _TAGS_WANTED, _are_tags(self.client_tags)),
            ("rack", self.rack, f"text of up to {_RACK_BYTES} bytes", _is_rack(self.rack)),
            ("group_instance_id", instance, _NAME_WANTED, is_name),
        ):
            if not is_right:
                raise ConfigError(f"{name}={shown(repr(value))} is refused; give {wanted}")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What an answer means for a member.

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
