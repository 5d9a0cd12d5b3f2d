"""What a leader does with its group: decode, decide, withhold, answer in bytes.

The versions and the tasks come from `assignor.assign_group`. Added here is what a cooperative group
needs of its leader (KIP-429): a task that moves is withheld until its owner has given it up, and a
follow-up is asked for - in the answer since 2.6, in the leader's own memory before (KAFKA-9821).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from assignor import (
    AssignmentConfig,
    GroupAnswer,
    GroupMember,
    LeaderSettings,
    Subtopology,
    assign_group,
)
from encoding import TaskId, TopicPartition, encode_assignment
from probing import Content, find_release
from system_tests.coordinator import JoinedMember
from system_tests.sim.behaviour import Behaviour
from system_tests.sim.happenings import Answer, Answered
from system_tests.sim.wire import read_subscription, write_assignment

Partitions = tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What the group processes, the same on every member.

    Attributes:
        subtopologies: of the topology.
        partition_counts: source topic -> partitions.
        task_of: partition -> the task that reads it.
        config: settings of the assignor.
    """

    subtopologies: tuple[Subtopology, ...]
    partition_counts: Mapping[str, int]
    task_of: Mapping[TopicPartition, TaskId]
    config: AssignmentConfig

    def __hash__(self) -> int:
        return id(self)  # one object a world; only settings are looked up by it


class Led(NamedTuple):
    """What a leader sends, what it remembers, and what the trace says of it."""

    assignments: dict[str, bytes]
    remembers_followup: bool
    happening: Answered


@lru_cache(maxsize=256)
def _settings(release: str, application: Application) -> LeaderSettings:
    return LeaderSettings(
        release=find_release(release),
        subtopologies=application.subtopologies,
        config=application.config,
    )


def lead(
    behaviour: Behaviour,
    application: Application,
    joined: Sequence[JoinedMember],
    *,
    end_offset_sums: Mapping[TaskId, int],
    thread: str,
    names: Mapping[str, str],
    generation: int,
    now_ms: int,
) -> Led:
    """Answer the group as a leader of this release does.

    Args:
        behaviour: of the leader.
        application: what the group processes.
        joined: every member with its bytes, as the coordinator tells the leader.
        end_offset_sums: of each task, as the leader's admin client reads them.
        thread: name of the leader, for the trace.
        names: member id -> thread, for the trace.
        generation: that is being answered.
        now_ms: the simulated time.

    Raises:
        LeaderRefused: a leader of this release dies of the group's versions.
        WireError: a member's bytes are not the consumer protocol's.
    """
    read = [(one.member_id, read_subscription(one.metadata)) for one in joined]
    members = [
        GroupMember(
            member_id=member_id, user_data=value.user_data, owned_partitions=value.owned_partitions
        )
        for member_id, value in read
    ]
    answer = assign_group(
        _settings(behaviour.release.name, application),
        members,
        application.partition_counts,
        end_offset_sums=end_offset_sums,
    )
    owner = {p: member_id for member_id, value in read for p in value.owned_partitions}
    parts = _parts(behaviour, answer, owner, application.task_of)
    used = {member_id: used for member_id, used, _ in answer.joined}
    content = {one.member_id: one.content for one in answer.decision.answers}
    withheld = tuple(sorted(p for part in parts.values() for p in part.withheld))
    happening = Answered(
        at_ms=now_ms,
        thread=thread,
        generation=generation,
        leader_is_native=behaviour.release.is_native,
        version=answer.decision.version,
        commonly_supported_version=answer.decision.commonly_supported_version,
        rule=answer.decision.rule,
        future=tuple(names.get(m, m) for m in answer.decision.future_members),
        used_versions=tuple(used.get(member_id, 0) for member_id in parts),
        answers=tuple(
            Answer(
                member_id=member_id,
                thread=names.get(member_id, member_id),
                version=part.version,
                commonly_supported_version=part.common,
                content=content.get(member_id, Content.NORMAL).value,
                partitions=part.partitions,
                size=len(part.data),
            )
            for member_id, part in parts.items()
        ),
        withheld=withheld,
    )
    return Led(
        assignments={member_id: part.data for member_id, part in parts.items()},
        remembers_followup=behaviour.followup_in_memory and bool(withheld),
        happening=happening,
    )


class _Part(NamedTuple):
    version: int
    common: int
    partitions: Partitions
    withheld: Partitions
    data: bytes


def _parts(
    behaviour: Behaviour,
    answer: GroupAnswer,
    owner: Mapping[TopicPartition, str],
    task_of: Mapping[TopicPartition, TaskId],
) -> dict[str, _Part]:
    parts: dict[str, _Part] = {}
    for member_id, one in answer.answers.items():
        partitions, user_data, assignment = one.partitions, one.user_data, one.assignment
        withheld: Partitions = ()
        if behaviour.withholds and owner:
            # A quarantined member keeps partitions and gets no tasks: nothing of it moves.
            asked = partitions if assignment.active_tasks else ()
            moving = {task_of[p] for p in asked if owner.get(p, member_id) != member_id}
            if moving:
                partitions = tuple(p for p in asked if task_of[p] not in moving)
                withheld = tuple(p for p in asked if task_of[p] in moving)
                fits = behaviour.followup_fits(assignment.version)
                assignment = replace(
                    assignment,
                    active_tasks=tuple(t for t in assignment.active_tasks if t not in moving),
                    next_rebalance_ms=0 if fits else assignment.next_rebalance_ms,
                )
                user_data = encode_assignment(assignment)
        parts[member_id] = _Part(
            assignment.version,
            assignment.commonly_supported_version,
            partitions,
            withheld,
            write_assignment(partitions, user_data),
        )
    return parts
