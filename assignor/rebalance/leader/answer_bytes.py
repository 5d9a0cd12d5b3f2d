"""From a placement to the bytes of each member's answer.

Partitions travel in the consumer protocol, sorted; in Kafka's versions the n-th task id belongs to
the n-th partition. Native members read in the body or in a trailer what to write next, and get the
routing view in the smallest form that they can use and that fits the broker's record. A wrong
answer ends every JVM thread that gets it, so each is decoded again and compared before it is sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assignor.errors import TaskAssignmentError
from assignor.rebalance.blobs import read_answer, write_answer
from assignor.rebalance.leader.finalized_levels import levels_answered
from assignor.rebalance.leader.generation import Generation, NativeMember
from assignor.rebalance.leader.placements import Placement
from assignor.rebalance.leader.record_budget import (
    GroupBudget,
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from assignor.rebalance.routing_view import group_view, host_map, task_sizes
from encoding import (
    NO_REBALANCE,
    Assignment,
    NativeAssignment,
    PartitionsByHost,
    TaskId,
    TopicPartition,
    ViewForm,
    ViewForms,
    ViewReference,
    choose_view_form,
    encode_view_forms,
)
from encoding.native import ReachedRow
from probing import EARLIEST_NATIVE_VERSION, AnswerDecision, Content

# A host map exists from this version on; native bodies carry a view instead.
_HOSTS_SINCE = 2
_KEY_AND_LENGTH = 8
_NO_HOSTS = PartitionsByHost()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAnswer:
    """What the SyncGroup carries for one member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes
    assignment: Assignment


def write_answers(
    generation: Generation, placement: Placement
) -> tuple[dict[str, MemberAnswer], GroupBudget]:
    """Write every member's answer, each in the version decided for it.

    Returns:
        The answers by member id, and what was left out to fit the broker's record.

    Raises:
        TaskAssignmentError: bytes do not decode to what was decided (a defect; nothing is sent).
    """
    shared = _common_fields(generation, placement)
    drafts = {
        answer.member_id: _draft(generation, placement, answer, shared)
        for answer in generation.decision.answers
    }
    sizes = {m.member_id: len(m.user_data) for m in generation.request.members}
    budget = fit_group(
        [
            _bytes_of(generation.natives.get(member), sizes[member], draft, member, shared)
            for member, draft in drafts.items()
        ],
        limit=generation.settings.group_record_limit,
    )
    answers: dict[str, MemberAnswer] = {}
    for member, draft in drafts.items():
        form = budget.form_by_member[member]
        answer = _with_routing(draft, generation.natives.get(member), form, shared.forms)
        _check(member, answer, generation.settings.release.readable_versions)
        answers[member] = answer
    return answers, budget


def _with_routing(
    draft: MemberAnswer, native: NativeMember | None, form: ViewForm, forms: ViewForms | None
) -> MemberAnswer:
    """An answer with the routing that the record has space for."""
    if draft.assignment.partitions_by_host and form is ViewForm.NONE:
        return _without_hosts(draft)
    if forms is not None and native is not None and form is not ViewForm.NONE:
        return _with_view(draft, form, forms.bytes_of(form, native.held))
    return draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _CommonFields:
    """Values that many answers contain, made once."""

    hosts: PartitionsByHost
    standby_hosts: PartitionsByHost
    forms: ViewForms | None
    sizes: tuple[int, ...]
    topics: tuple[str, ...]
    source_counts: Mapping[str, int]
    levels: Mapping[str, int]
    level_epoch: int
    numbered_by: tuple[bytes, ...] = ()
    reached: tuple[ReachedRow, ...] = ()
    describes: bool = False
    saved_by_version: dict[int, int] = field(default_factory=dict)

    def host_bytes(self, draft: MemberAnswer) -> int:
        """Bytes of Kafka's host maps in an answer; the same in every answer of a version."""
        version = draft.assignment.version
        if version not in self.saved_by_version:
            bare = len(_without_hosts(draft).user_data)
            self.saved_by_version[version] = len(draft.user_data) - bare
        return self.saved_by_version[version]


def _common_fields(generation: Generation, placement: Placement) -> _CommonFields:
    """The host maps, the routing view and what else is equal in many answers."""
    plan = generation.plan
    inputs = plan.partitions_by_task
    topics = tuple(sorted({p.topic for partitions in inputs.values() for p in partitions}))
    sizes = task_sizes(inputs)
    endpoints = placement.endpoint_by_member
    return _CommonFields(
        hosts=host_map(endpoints, placement.active_by_member, inputs),
        standby_hosts=host_map(endpoints, placement.standby_by_member, inputs),
        forms=_view_forms(generation, placement, sizes),
        sizes=sizes,
        topics=topics,
        source_counts={topic: plan.partition_counts[topic] for topic in topics},
        levels=levels_answered(generation.levels, generation.knowledge.persistent_version),
        level_epoch=generation.levels.epoch,
        numbered_by=generation.numbered_by,
        reached=generation.reached,
        describes=generation.describes,
    )


def _view_forms(
    generation: Generation, placement: Placement, sizes: tuple[int, ...]
) -> ViewForms | None:
    """The view in all its forms, if a member reads views and a member serves queries."""
    if not generation.natives:
        return None
    held_view = generation.request.held_view
    natives = generation.natives.values()
    reported = [native.held for native in natives if native.held is not None]
    view = group_view(
        endpoint_by_member=placement.endpoint_by_member,
        active_by_member=placement.active_by_member,
        standby_by_member=placement.standby_by_member,
        sizes=sizes,
        previous=held_view,
        reported=reported,
    )
    if view is None:
        return None
    return encode_view_forms(view, [held_view] if held_view is not None and reported else [])


def _draft(
    generation: Generation, placement: Placement, answer: AnswerDecision, shared: _CommonFields
) -> MemberAnswer:
    """An answer without a view."""
    member = answer.member_id
    inputs = generation.plan.partitions_by_task
    native = generation.natives.get(member) if answer.native is not None else None
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
    has_hosts = answer.version >= _HOSTS_SINCE and native is None and not is_bare
    assignment = Assignment(
        version=answer.version,
        commonly_supported_version=answer.commonly_supported_version,
        active_tasks=active,
        standby_tasks={task: () if is_native_layout else inputs[task] for task in standby},
        partitions_by_host=shared.hosts if has_hosts else _NO_HOSTS,
        standby_partitions_by_host=shared.standby_hosts if has_hosts else _NO_HOSTS,
        error_code=generation.decision.error_code if is_error else 0,
        next_rebalance_ms=next_ms,
        native=None if native is None else _native_part(answer, native, warmups, shared),
    )
    partitions = tuple(p for p, _ in pairs) or placement.partitions_by_member.get(member, ())
    return MemberAnswer(
        partitions=tuple(sorted(partitions)),
        user_data=write_answer(assignment),
        assignment=assignment,
    )


def _native_part(
    answer: AnswerDecision, native: NativeMember, warmups: tuple[TaskId, ...], shared: _CommonFields
) -> NativeAssignment:
    return NativeAssignment(
        version=answer.version if answer.version >= EARLIEST_NATIVE_VERSION else native.version,
        commonly_supported_version=max(native.version, answer.commonly_supported_version),
        sizes=shared.sizes,
        warmup_tasks=warmups,
        partition_counts=shared.source_counts,
        next_version=answer.next_version,
        subscription_read=answer.subscription_read,
        feature_levels=shared.levels,
        feature_epoch=shared.level_epoch,
        numbered_by=shared.numbered_by,
        reached_versions=shared.reached,
        describe_topology=shared.describes,
    )


def _bytes_of(
    native: NativeMember | None,
    subscription_bytes: int,
    draft: MemberAnswer,
    member_id: str,
    shared: _CommonFields,
) -> MemberBytes:
    """What a member costs the group's record, with each form of the view that it can use."""
    size = len(draft.user_data)
    by_form = {ViewForm.NONE: size}
    if shared.forms is not None and native is not None and draft.assignment.native is not None:
        best = _best_form(shared.forms, native.held, draft.assignment.native)
        view = len(shared.forms.bytes_of(best, native.held))
        by_form[best] = size + view + _KEY_AND_LENGTH
    elif draft.assignment.partitions_by_host:
        by_form = {ViewForm.FULL: size, ViewForm.NONE: size - shared.host_bytes(draft)}
    return MemberBytes(
        member_id=member_id,
        subscription=subscription_bytes,
        answer_by_form=by_form,
        protocol=protocol_bytes(
            topics=shared.topics, partitions=draft.partitions, member_id=member_id
        ),
    )


def _best_form(forms: ViewForms, held: ViewReference | None, native: NativeAssignment) -> ViewForm:
    """The smallest form that a member can use and that the layout of its answer has."""
    best = choose_view_form(forms, held)
    return best if native.carries(f"view_{best.value}") else ViewForm.FULL


def _with_view(draft: MemberAnswer, form: ViewForm, data: bytes) -> MemberAnswer:
    native = draft.assignment.native
    if native is None:
        return draft
    match form:
        case ViewForm.FULL:
            native = replace(native, view_full=data)
        case ViewForm.DELTA:
            native = replace(native, view_delta=data)
        case ViewForm.REFERENCE:
            native = replace(native, view_reference=data)
        case ViewForm.NONE:
            return draft
    assignment = replace(draft.assignment, native=native)
    return replace(draft, assignment=assignment, user_data=write_answer(assignment))


def _without_hosts(draft: MemberAnswer) -> MemberAnswer:
    """An answer in Kafka's layout without host maps, as during version probing.

    JVM members take an empty map for "not known yet" and do not rejoin; KAFKA-9568 is about maps
    that name other hosts only.
    """
    assignment = replace(
        draft.assignment, partitions_by_host=_NO_HOSTS, standby_partitions_by_host=_NO_HOSTS
    )
    return replace(draft, assignment=assignment, user_data=write_answer(assignment))


def _views(native: NativeAssignment | None) -> tuple[bytes | None, ...] | None:
    """The routing view in its three forms, of which at most one is set."""
    if native is None:
        return None
    return native.view_full, native.view_delta, native.view_reference


def _check(member: str, answer: MemberAnswer, known_versions: tuple[int, ...]) -> None:
    """Raise a TaskAssignmentError if version, tasks or routing view do not decode as decided."""
    decided = answer.assignment
    written = read_answer(answer.user_data, known_versions)
    agrees = (
        written.version == decided.version
        and written.active_tasks == decided.active_tasks
        and written.standby_tasks == decided.standby_tasks
        and _views(written.native) == _views(decided.native)
    )
    if not agrees:
        raise TaskAssignmentError(
            f"the answer for {member} does not decode to what was decided (version "
            f"{decided.version}, {len(answer.user_data)} bytes); this is a defect, please report it"
        )
