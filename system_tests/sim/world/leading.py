"""How a leader answers its group: decode subscriptions, assign, encode assignments.

The versions and the tasks come from `assignor.assign_group`, which withholds what another member
still owns (KIP-429). The follow-up that this asks for is in the answer since 2.6; before, only the
member that gives partitions up knew of it (KAFKA-9821).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from assignor import GroupMember, LeaderKnowledge, LeaderSettings, assign_group
from assignor.levels import generation_support
from assignor.placement import Strategy, find_strategy
from assignor.rebalance import GroupAnswer, MemberAnswer
from assignor.topology import CarriedTopologies
from encoding import TaskId
from probing import Content, Release
from probing.features import UNKNOWN_LEVELS
from system_tests.coordinator import JoinedMember
from system_tests.sim.events import Answer, Answered, Decided
from system_tests.sim.world.behaviour import Behaviour, find_program
from system_tests.sim.world.observing import decided_by
from system_tests.sim.world.remembered import remembered
from system_tests.sim.world.setup import Application
from system_tests.sim.world.state import LeaderPlace, Led
from system_tests.sim.world.wire import read_subscription, write_assignment

_KIP_441 = (2, 6, 0)


@lru_cache(maxsize=256)
def _settings(release: str, application: Application) -> LeaderSettings:
    found = find_program(release)
    return LeaderSettings(
        release=found,
        subtopologies=application.subtopologies,
        config=application.config,
        strategy=_strategy(found, follows_lags=application.follows_lags),
        group_record_limit=application.record_limit,
        versions=() if application.carried is None else _versions(application.carried),
    )


def _versions(carried: CarriedTopologies) -> tuple[tuple[int, ...], ...]:
    return () if carried.is_plain else carried.versions


def _strategy(release: Release, *, follows_lags: bool) -> Strategy:
    """Return a release's strategy; before KIP-441 it ignores lags and has no warm-ups."""
    if not follows_lags:
        return remembered(find_strategy("sticky"))
    if release.order < _KIP_441:
        return find_strategy("sticky")
    return find_strategy("high_availability" if release.is_native else "kafka_high_availability")


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
        LeaderRefused: a leader of this release fails on the group's versions.
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
            topologies=place.topologies,
            levels=UNKNOWN_LEVELS if place.levels is None else place.levels,
        ),
        held_view=place.held_view,
    )
    parts = {
        member_id: write_assignment(part.partitions, part.user_data)
        for member_id, part in answer.answers.items()
    }
    return Led(
        assignments=parts,
        lowest_supported=answer.decision.lowest_supported_version,
        lags=answer.memory.lags_before,
        claims=answer.claims,
        happening=_happening(behaviour, application, answer, parts, place),
        stalled=answer.memory.stalled,
        topologies=answer.remembered().topologies,
        support=() if place.levels is None else generation_support(members),
        decided=_decided(behaviour, application, members, answer, place),
    )


def _decided(
    behaviour: Behaviour,
    application: Application,
    members: Sequence[GroupMember],
    answer: GroupAnswer,
    place: LeaderPlace,
) -> Decided | None:
    """Return what was decided, for the checkers of groups with dimensions; None in other groups."""
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


def _recorded_tasks(application: Application, answer: MemberAnswer) -> tuple[TaskId, ...]:
    """Active tasks of an answer by the numbers of the change; empty without a change."""
    if not application.forms:
        return ()
    native, numbers = answer.assignment.native, application.numbers
    if native is not None and native.numbered_by:
        by_content = {form.content: number for number, form in enumerate(application.forms)}
        numbers = tuple(by_content[content] for content in native.numbered_by)
    active = answer.assignment.active_tasks
    return tuple(TaskId(numbers[task.subtopology], task.partition) for task in active)


def _happening(
    behaviour: Behaviour,
    application: Application,
    answer: GroupAnswer,
    parts: Mapping[str, bytes],
    place: LeaderPlace,
) -> Answered:
    """Return what was decided, for the trace."""
    decision, names = answer.decision, place.names
    used = {member_id: used for member_id, used, _ in answer.joined}
    content = {member.member_id: member.content for member in decision.answers}
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
                version=part.assignment.version,
                commonly_supported_version=part.assignment.commonly_supported_version,
                content=content.get(member_id, Content.NORMAL).value,
                partitions=part.partitions,
                size=len(parts[member_id]),
                tasks=_recorded_tasks(application, part),
            )
            for member_id, part in answer.answers.items()
        ),
        withheld=tuple(sorted(p for waiting in answer.withheld.values() for p in waiting)),
    )
