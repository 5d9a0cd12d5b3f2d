"""From a placement to the bytes of each member's answer.

Partitions travel in the consumer protocol, sorted; in Kafka's versions the n-th task id belongs to
the n-th partition. Native members read in the body or in a trailer what to write next, and get the
routing view in the smallest form that they can use and that fits the broker's record. Each answer
is written once, with its routing; if the record is too large, some are written again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from assignor.rebalance.blobs import write_answer
from assignor.rebalance.endpoints import host_map
from assignor.rebalance.leader.generation import Generation
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.leader.record_budget import (
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from assignor.topology import task_sizes
from encoding import (
    NO_REBALANCE,
    Assignment,
    NativeAssignment,
    PartitionsByHost,
    TaskId,
    TopicPartition,
    ViewForm,
)
from encoding.kafka import host_map_bytes
from probing import EARLIEST_NATIVE_VERSION, AnswerDecision, Content

# A host map exists from this version on; native bodies carry a view instead.
_HOSTS_SINCE = 2
_KEY_AND_LENGTH = 8
_NO_HOSTS = PartitionsByHost()
_NO_VIEWS: dict[str, Any] = dict.fromkeys(("view_full", "view_delta", "view_reference"))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAnswer:
    """What the SyncGroup carries for one member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes
    assignment: Assignment


def write_answers(
    generation: Generation, placement: Placement
) -> tuple[dict[str, MemberAnswer], str]:
    """Write every member's answer, each in the version decided for it.

    Returns:
        The answers by member id, and a warning about what was left out to fit the broker's record;
        empty if nothing was.
    """
    inputs = generation.plan.partitions_by_task
    topics = sorted({p.topic for partitions in inputs.values() for p in partitions})
    tasks = task_sizes(inputs)
    common = _common_fields(generation, placement, topics, tasks)
    decided = generation.decision.answers
    views = generation.group.parts.views(
        generation.natives,
        {a.member_id: _body_version(generation, a) for a in decided if a.is_native},
        placement,
        tasks,
    )
    sizes = {m.member_id: len(m.user_data) for m in generation.group.members}
    limit = generation.settings.group_record_limit
    least = sum(sizes.values()) + sum(len(v) for view in views.values() for v in view.values())
    written = views if least <= limit else {}  # most get no view in a record that is too large
    answers = {
        answer.member_id: _answer(
            generation, placement, answer, common, written.get(answer.member_id, {})
        )
        for answer in decided
    }
    forms, warning = fit_group(
        {
            name: MemberBytes(
                subscription=sizes[name],
                answer_by_form=_bytes_by_form(answer, views.get(name, {})),
                protocol=protocol_bytes(
                    topics=topics, partitions=answer.partitions, member_id=name
                ),
            )
            for name, answer in answers.items()
        },
        limit=limit,
    )
    for member, answer in answers.items():
        answers[member] = _with_routing(answer, forms[member], views.get(member, {}))
    return answers, warning


def _common_fields(
    generation: Generation, placement: Placement, topics: Sequence[str], tasks: tuple[int, ...]
) -> Assignment:
    """The host maps and the native fields that many answers contain, made once.

    Args:
        generation: the group.
        placement: of its tasks.
        topics: that tasks read.
        tasks: number of tasks of each subtopology.
    """
    plan = generation.plan
    inputs = plan.partitions_by_task
    has_jvm = any(not answer.is_native for answer in generation.decision.answers)
    endpoints = placement.endpoint_by_member if has_jvm else {}
    return Assignment(
        version=generation.decision.version,
        partitions_by_host=host_map(endpoints, placement.active_by_member, inputs),
        standby_partitions_by_host=host_map(endpoints, placement.standby_by_member, inputs),
        native=NativeAssignment(
            sizes=tasks,
            partition_counts={topic: plan.partition_counts[topic] for topic in topics},
            **generation.levels.answer_fields,
            **generation.topologies.answer_fields(generation.group.plan),
        ),
    )


def _answer(
    generation: Generation,
    placement: Placement,
    answer: AnswerDecision,
    common: Assignment,
    view: Mapping[str, bytes],
) -> MemberAnswer:
    """An answer with Kafka's host maps, if its layout has them, and this view."""
    member = answer.member_id
    inputs = generation.plan.partitions_by_task
    is_error = answer.content is Content.ERROR
    is_bare = is_error or answer.content is Content.EMPTY
    next_ms = NO_REBALANCE if is_error else placement.next_rebalance_ms.get(member, NO_REBALANCE)
    tasks = () if is_bare else placement.active_by_member.get(member, ())
    standby = () if is_bare else placement.standby_by_member.get(member, ())
    warmups = () if is_bare else placement.warmup_by_member.get(member, ())
    pairs = sorted((p, task) for task in tasks for p in inputs[task])
    active = tuple(task for _, task in pairs)
    is_native_layout = answer.version >= EARLIEST_NATIVE_VERSION
    if is_native_layout:
        active = tuple(sorted(set(active)))
    native = _native_part(generation, answer, warmups, common, view)
    has_hosts = answer.version >= _HOSTS_SINCE and native is None and not is_bare
    assignment = Assignment(
        version=answer.version,
        commonly_supported_version=answer.commonly_supported_version,
        active_tasks=active,
        standby_tasks={task: () if is_native_layout else inputs[task] for task in standby},
        partitions_by_host=common.partitions_by_host if has_hosts else _NO_HOSTS,
        standby_partitions_by_host=common.standby_partitions_by_host if has_hosts else _NO_HOSTS,
        error_code=generation.decision.error_code if is_error else 0,
        next_rebalance_ms=next_ms,
        native=native,
    )
    partitions = tuple(p for p, _ in pairs) or placement.partitions_by_member.get(member, ())
    return MemberAnswer(
        partitions=tuple(sorted(partitions)),
        user_data=write_answer(assignment),
        assignment=assignment,
    )


def _native_part(
    generation: Generation,
    answer: AnswerDecision,
    warmups: tuple[TaskId, ...],
    common: Assignment,
    view: Mapping[str, bytes],
) -> NativeAssignment | None:
    """What a native member reads besides Kafka's fields; None for a JVM member."""
    if common.native is None or not answer.is_native:
        return None
    latest = _latest_version(generation, answer.member_id)
    field: dict[str, Any] = {**view}
    return replace(
        common.native,
        version=_body_version(generation, answer),
        commonly_supported_version=max(latest, answer.commonly_supported_version),
        warmup_tasks=warmups,
        next_version=answer.next_version,
        subscription_read=answer.subscription_read,
        **field,
    )


def _body_version(generation: Generation, answer: AnswerDecision) -> int:
    """The version of the native body: of the answer itself, or of the trailer of Kafka's layout."""
    if answer.version >= EARLIEST_NATIVE_VERSION:
        return answer.version
    return _latest_version(generation, answer.member_id)


def _latest_version(generation: Generation, member_id: str) -> int:
    """The latest native version that the leader writes and a native member reads."""
    latest = generation.natives[member_id].versions.native_version or 0
    known = generation.settings.release.native_versions
    return max((v for v in known if v <= latest), default=EARLIEST_NATIVE_VERSION)


def _bytes_by_form(answer: MemberAnswer, view: Mapping[str, bytes]) -> dict[ViewForm, int]:
    """Bytes of an answer with each form of the view that its member can use."""
    size = len(answer.user_data) - sum(map(_field_bytes, views_in(answer.assignment).values()))
    if answer.assignment.partitions_by_host:
        return {ViewForm.FULL: size, ViewForm.NONE: size - host_map_bytes(answer.assignment)}
    with_view = {
        ViewForm(name.removeprefix("view_")): size + len(data) + _KEY_AND_LENGTH
        for name, data in view.items()
    }
    return {ViewForm.NONE: size, **with_view}


def _field_bytes(data: bytes) -> int:
    """Bytes of a field in a native body: key, msgpack's header of 2, 3 or 5 bytes, and content."""
    header = 2 if len(data) < 2**8 else 3 if len(data) < 2**16 else 5
    return 1 + header + len(data)


def views_in(assignment: Assignment) -> dict[str, bytes]:
    """Return the routing view of a native answer, by the name of its form; at most one."""
    native = assignment.native
    if native is None:
        return {}
    views = {name: getattr(native, name) for name in _NO_VIEWS}
    return {name: view for name, view in views.items() if view is not None}


def _with_routing(answer: MemberAnswer, form: ViewForm, view: Mapping[str, bytes]) -> MemberAnswer:
    """An answer with the routing that the record has space for; written again if that is other.

    JVM members take an empty map for "not known yet" and do not rejoin; KAFKA-9568 is about maps
    that name other hosts only.
    """
    assignment, native = answer.assignment, answer.assignment.native
    wanted = {} if form is ViewForm.NONE else view
    if native is not None and views_in(assignment) != wanted:
        assignment = replace(assignment, native=replace(native, **{**_NO_VIEWS, **wanted}))
    if form is ViewForm.NONE and assignment.partitions_by_host:
        assignment = replace(
            assignment, partitions_by_host=_NO_HOSTS, standby_partitions_by_host=_NO_HOSTS
        )
    if assignment is answer.assignment:
        return answer
    return replace(answer, assignment=assignment, user_data=write_answer(assignment))
