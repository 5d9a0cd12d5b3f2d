"""What a leader does with its group: decode, decide, withhold, answer in bytes.

The versions and the tasks come from `assignor.assign_group`, which withholds what another member
still owns (KIP-429). The follow-up that this asks for is in the answer since 2.6, and was in the
leader's own memory before (KAFKA-9821).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from assignor import (
    AssignmentConfig,
    GroupAnswer,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    Subtopology,
    assign_group,
    sticky,
)
from encoding import TaskId, TopicPartition
from probing import Content, find_release
from system_tests.coordinator import JoinedMember
from system_tests.sim.behaviour import Behaviour
from system_tests.sim.happenings import Answer, Answered
from system_tests.sim.wire import read_subscription, write_assignment

Partitions = tuple[TopicPartition, ...]
_KIP_441 = (2, 6, 0)


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
    lags: Mapping[str, Mapping[TaskId, int]]
    happening: Answered


@lru_cache(maxsize=256)
def _settings(release: str, application: Application) -> LeaderSettings:
    found = find_release(release)
    settings = LeaderSettings(
        release=found, subtopologies=application.subtopologies, config=application.config
    )
    # Before KIP-441 nobody looked at lags, warmed copies up or came back for them.
    return settings if found.order >= _KIP_441 else replace(settings, strategy=sticky)


def lead(
    behaviour: Behaviour,
    application: Application,
    joined: Sequence[JoinedMember],
    *,
    end_offset_sums: Mapping[TaskId, int],
    lags_before: Mapping[str, Mapping[TaskId, int]],
    leader_id: str,
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
        lags_before: process id -> lags, as this leader saw them the last time.
        leader_id: member id of the leader.
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
        knowledge=LeaderKnowledge(
            end_offset_sums=end_offset_sums,
            lags_before=lags_before,
            leader_id=leader_id,
            now_ms=now_ms,
        ),
    )
    parts = _parts(answer)
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
        lags=answer.lags,
        happening=happening,
    )


class _Part(NamedTuple):
    version: int
    common: int
    partitions: Partitions
    withheld: Partitions
    data: bytes


def _parts(answer: GroupAnswer) -> dict[str, _Part]:
    return {
        member_id: _Part(
            one.assignment.version,
            one.assignment.commonly_supported_version,
            one.partitions,
            answer.withheld.get(member_id, ()),
            write_assignment(one.partitions, one.user_data),
        )
        for member_id, one in answer.answers.items()
    }
