"""What a leader does with its group: decode, decide, withhold, answer in bytes.

The versions and the tasks come from `assignor.assign_group`, which withholds what another member
still owns (KIP-429). The follow-up that this asks for is in the answer since 2.6; before, only the
member that gives partitions up knew of it (KAFKA-9821).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from assignor import (
    AssignmentConfig,
    GroupAnswer,
    GroupMember,
    LeaderKnowledge,
    LeaderSettings,
    Strategy,
    Subtopology,
    assign_group,
    find_strategy,
)
from assignor.rebalance import GROUP_RECORD_LIMIT, NONE_STALLED, ClaimMemory, StalledCopies
from encoding import TaskId, TopicPartition, View
from probing import Content, Release
from system_tests.coordinator import JoinedMember
from system_tests.sim.events import Answer, Answered, Decided
from system_tests.sim.world.behaviour import Behaviour, find_program
from system_tests.sim.world.observing import decided_by
from system_tests.sim.world.remembered import remembered
from system_tests.sim.world.thread import StreamThread
from system_tests.sim.world.wire import read_subscription, write_assignment

Partitions = tuple[TopicPartition, ...]
_KIP_441 = (2, 6, 0)


@dataclass(frozen=True, kw_only=True)
class Application:
    """What the group processes, the same on every member.

    Attributes:
        subtopologies: of the topology.
        partition_counts: source topic -> partitions.
        task_of: partition -> the task that reads it.
        config: settings of the assignor.
        record_limit: bytes of the group's record.
        follows_lags: leaders from KIP-441 on place by lags, as they do; where the clock stands
            still nothing ever catches up, and they all keep what is there.
    """

    subtopologies: tuple[Subtopology, ...]
    partition_counts: Mapping[str, int]
    task_of: Mapping[TopicPartition, TaskId]
    config: AssignmentConfig
    follows_lags: bool = True
    record_limit: int = GROUP_RECORD_LIMIT

    @cached_property
    def inputs(self) -> dict[TaskId, Partitions]:
        """Task -> partitions that it reads."""
        found: dict[TaskId, Partitions] = {}
        for partition, task in sorted(self.task_of.items()):
            found[task] = (*found.get(task, ()), partition)
        return found

    def __hash__(self) -> int:
        return id(self)  # one object a world; only settings are looked up by it


class Led(NamedTuple):
    """What a leader sends, what it remembers, and what the trace says of it."""

    assignments: dict[str, bytes]
    lowest_supported: int
    lags: Mapping[str, Mapping[TaskId, int]]
    claims: ClaimMemory
    happening: Answered
    stalled: StalledCopies = NONE_STALLED
    decided: Decided | None = None


@lru_cache(maxsize=256)
def _settings(release: str, application: Application) -> LeaderSettings:
    found = find_program(release)
    return LeaderSettings(
        release=found,
        subtopologies=application.subtopologies,
        config=application.config,
        strategy=_strategy(found, follows_lags=application.follows_lags),
        group_record_limit=application.record_limit,
    )


def _strategy(release: Release, *, follows_lags: bool) -> Strategy:
    """Ours, or Kafka's own; before KIP-441 nobody looked at lags or warmed copies up."""
    if not follows_lags:
        return remembered(find_strategy("sticky"))
    if release.order < _KIP_441:
        return find_strategy("sticky")
    return find_strategy("high_availability" if release.is_native else "kafka_high_availability")


class LeaderPlace(NamedTuple):
    """Where and when a leader leads, and what it knows besides the subscriptions.

    Attributes:
        thread, member_id: the leader.
        generation: that is being answered.
        now_ms: the simulated time.
        end_offset_sums: of each task, as the leader's admin client reads them.
        lags_before: process id -> lags, as this leader saw them the last time.
        claims: what the leader remembers of its answer before.
        names: member id -> thread, for the trace.
        stalled: what the leader remembers of copies that came no nearer.
        held_view: the routing view that it got as a member, None where leaders go without.
        observed: threads, where what is decided is put down for the checkers; empty: it is not.
    """

    thread: str
    member_id: str
    generation: int
    now_ms: int
    end_offset_sums: Mapping[TaskId, int]
    lags_before: Mapping[str, Mapping[TaskId, int]]
    claims: ClaimMemory
    names: Mapping[str, str]
    stalled: StalledCopies = NONE_STALLED
    held_view: View | None = None
    observed: Sequence[StreamThread] = ()


def lead(
    behaviour: Behaviour,
    application: Application,
    joined: Sequence[JoinedMember],
    place: LeaderPlace,
) -> Led:
    """Answer the group as a leader of this release does.

    Args:
        behaviour: of the leader.
        application: what the group processes.
        joined: every member with its bytes, as the coordinator tells the leader.
        place: where and when.

    Raises:
        LeaderRefused: a leader of this release dies of the group's versions.
        WireError: a member's bytes are not the consumer protocol's.
    """
    members = []
    for member_id, _, metadata in joined:
        _, user_data, owned = read_subscription(metadata)
        members.append(
            GroupMember(member_id=member_id, user_data=user_data, owned_partitions=owned)
        )
    answer = assign_group(
        _settings(behaviour.release.name, application),
        members,
        application.partition_counts,
        knowledge=LeaderKnowledge(
            end_offset_sums=place.end_offset_sums,
            lags_before=place.lags_before,
            leader_id=place.member_id,
            claims=place.claims,
            generation=place.generation,
            now_ms=place.now_ms,
            stalled=place.stalled,
        ),
        held_view=place.held_view,
    )
    parts = {
        member_id: write_assignment(one.partitions, one.user_data)
        for member_id, one in answer.answers.items()
    }
    return Led(
        assignments=parts,
        lowest_supported=answer.decision.lowest_supported_version,
        lags=answer.lags,
        claims=answer.claims,
        happening=_happening(behaviour, answer, parts, place),
        stalled=answer.stalled,
        decided=_decided(behaviour, application, members, answer, place),
    )


def _decided(
    behaviour: Behaviour,
    application: Application,
    members: Sequence[GroupMember],
    answer: GroupAnswer,
    place: LeaderPlace,
) -> Decided | None:
    """Say for the checkers of groups with dimensions what was decided; None in other groups."""
    if not place.observed:
        return None
    return decided_by(
        behaviour.release,
        members,
        answer,
        names=place.names,
        threads=place.observed,
        inputs=application.inputs,
        generation=place.generation,
        now_ms=place.now_ms,
    )


def _happening(
    behaviour: Behaviour, answer: GroupAnswer, parts: Mapping[str, bytes], place: LeaderPlace
) -> Answered:
    """Say for the trace what was decided."""
    decision, names = answer.decision, place.names
    used = {member_id: used for member_id, used, _ in answer.joined}
    content = {one.member_id: one.content for one in decision.answers}
    return Answered(
        at_ms=place.now_ms,
        thread=place.thread,
        generation=place.generation,
        leader_is_native=behaviour.release.is_native,
        version=decision.version,
        commonly_supported_version=decision.commonly_supported_version,
        rule=decision.rule,
        future=tuple(names.get(m, m) for m in decision.future_members),
        used_versions=tuple(used.get(member_id, 0) for member_id in parts),
        answers=tuple(
            Answer(
                member_id=member_id,
                thread=names.get(member_id, member_id),
                version=one.assignment.version,
                commonly_supported_version=one.assignment.commonly_supported_version,
                content=content.get(member_id, Content.NORMAL).value,
                partitions=one.partitions,
                size=len(parts[member_id]),
            )
            for member_id, one in answer.answers.items()
        ),
        withheld=tuple(sorted(p for waiting in answer.withheld.values() for p in waiting)),
    )
