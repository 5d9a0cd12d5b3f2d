"""From a placement to the bytes of each member's answer.

Partitions travel in the consumer protocol, sorted; in Kafka's versions the n-th task id belongs to
the n-th partition. Native members learn in the body or in a trailer what to write next, and get the
routing view in the smallest form that is right for them and fits the broker's record. One wrong
answer kills every JVM thread that gets it, so each is decoded again and compared before it leaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from assignor.errors import TaskAssignmentError
from assignor.rebalance.blobs import read_answer, write_answer
from assignor.rebalance.leader.finalized_levels import levels_answered
from assignor.rebalance.leader.record_budget import (
    GroupBudget,
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from assignor.rebalance.routing_view import group_view, host_map, task_sizes
from assignor.topology import TaskPlan
from encoding import (
    NO_REBALANCE,
    Assignment,
    NativeAssignment,
    PartitionsByHost,
    TaskId,
    TopicPartition,
    View,
    ViewForm,
    ViewForms,
    ViewReference,
    choose_view_form,
    encode_view_forms,
)
from probing import EARLIEST_NATIVE_VERSION, Answer, Content, LeaderDecision
from probing.features import UNKNOWN_LEVELS, FinalizedLevels

# A host map exists from this version on; native bodies carry a view instead.
_HOSTS_SINCE = 2
_KEY_AND_LENGTH = 8
_NO_HOSTS = PartitionsByHost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Who gets what, by member id.

    Attributes:
        active_by_member, standby_by_member: tasks; a member that is missing gets none.
        warmup_by_member: those of the standby tasks that only warm up (KIP-441).
        partitions_by_member: partitions that a quarantined member keeps, without tasks.
        endpoint_by_member: `host:port` of members that serve queries.
        next_rebalance_ms: member id -> epoch time at which it asks for the next rebalance.
    """

    active_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    standby_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    warmup_by_member: Mapping[str, tuple[TaskId, ...]] = field(default_factory=dict)
    partitions_by_member: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    endpoint_by_member: Mapping[str, str] = field(default_factory=dict)
    next_rebalance_ms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeMember:
    """What the leader needs to know of a native member to answer it.

    Attributes:
        version: native version of the body or trailer that it can read.
        held: the view that it reported, or None.
    """

    version: int
    held: ViewReference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAnswer:
    """What the SyncGroup carries for one member."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes
    assignment: Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRequest:
    """Everything that the answers of one generation are made from.

    Attributes:
        decision: versions and contents, by `probing`.
        placement: tasks, by a strategy.
        plan: all tasks and their partitions.
        natives: native members by id.
        subscription_bytes: size of every member's subscription, by id.
        known_versions: what the leader reads and writes; answers are checked with it.
        levels: finalized levels that the group goes by from now on.
        persistent_version: what the leader's own stores are written in, 0 if it has none.
        held_view: the view that this leader holds, or None.
        limit: bytes that the broker takes for the group's record.
    """

    decision: LeaderDecision
    plan: TaskPlan
    natives: Mapping[str, NativeMember]
    subscription_bytes: Mapping[str, int]
    known_versions: tuple[int, ...]
    held_view: View | None
    limit: int
    levels: FinalizedLevels = UNKNOWN_LEVELS
    persistent_version: int = 0
    placement: Placement = field(default_factory=Placement)


def build_answers(request: GroupRequest) -> tuple[dict[str, MemberAnswer], GroupBudget]:
    """Write every member's answer, each in the version decided for it.

    Raises:
        TaskAssignmentError: bytes do not say what was meant (a defect; nothing is sent).
    """
    shared = _share(request)
    forms = shared.forms
    drafts = {one.member_id: _draft(request, one, shared) for one in request.decision.answers}
    budget = fit_group(
        [_bytes_of(request, member, draft, shared) for member, draft in drafts.items()],
        limit=request.limit,
    )
    answers = {
        member: _finished(request, member, draft, budget.form_by_member[member], forms)
        for member, draft in drafts.items()
    }
    return answers, budget


def _finished(
    request: GroupRequest,
    member: str,
    draft: MemberAnswer,
    form: ViewForm,
    forms: ViewForms | None,
) -> MemberAnswer:
    """An answer with its routing as far as there is room for it, decoded once more."""
    native = request.natives.get(member)
    if draft.assignment.partitions_by_host and form is ViewForm.NONE:
        draft = _without_hosts(draft)
    elif forms is not None and native is not None and form is not ViewForm.NONE:
        draft = _with_view(draft, form, forms.bytes_of(form, native.held))
    _check(member, draft, request.known_versions)
    return draft


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shared:
    """What many answers hold, made once."""

    hosts: PartitionsByHost
    standby_hosts: PartitionsByHost
    forms: ViewForms | None
    sizes: tuple[int, ...]
    topics: tuple[str, ...]
    source_counts: Mapping[str, int]
    saved_by_version: dict[int, int] = field(default_factory=dict)

    def host_bytes(self, draft: MemberAnswer) -> int:
        """What Kafka's host maps take in an answer; the same in every answer of a version."""
        version = draft.assignment.version
        if version not in self.saved_by_version:
            bare = len(_without_hosts(draft).user_data)
            self.saved_by_version[version] = len(draft.user_data) - bare
        return self.saved_by_version[version]


def _share(request: GroupRequest) -> _Shared:
    hosts, standby_hosts = _host_maps(request)
    inputs = request.plan.partitions_by_task
    topics = tuple(sorted({p.topic for partitions in inputs.values() for p in partitions}))
    return _Shared(
        hosts=hosts,
        standby_hosts=standby_hosts,
        forms=_view_forms(request),
        sizes=task_sizes(inputs),
        topics=topics,
        source_counts={topic: request.plan.partition_counts[topic] for topic in topics},
    )


def _host_maps(request: GroupRequest) -> tuple[PartitionsByHost, PartitionsByHost]:
    """Kafka's host maps, if anybody gets them."""
    placement, inputs = request.placement, request.plan.partitions_by_task
    if not placement.endpoint_by_member:
        return _NO_HOSTS, _NO_HOSTS
    endpoints = placement.endpoint_by_member
    return (
        host_map(endpoints, placement.active_by_member, inputs),
        host_map(endpoints, placement.standby_by_member, inputs),
    )


def _view_forms(request: GroupRequest) -> ViewForms | None:
    """The view in all its forms, if anybody reads views and anybody serves queries."""
    if not request.natives:
        return None
    reported = [native.held for native in request.natives.values() if native.held is not None]
    placement = request.placement
    view = group_view(
        endpoint_by_member=placement.endpoint_by_member,
        active_by_member=placement.active_by_member,
        standby_by_member=placement.standby_by_member,
        plan=request.plan,
        previous=request.held_view,
        reported=reported,
    )
    if view is None:
        return None
    older = [request.held_view] if request.held_view is not None and reported else []
    return encode_view_forms(view, older)


def _draft(request: GroupRequest, answer: Answer, shared: _Shared) -> MemberAnswer:
    """An answer without a view."""
    member, placement = answer.member_id, request.placement
    inputs = request.plan.partitions_by_task
    native = request.natives.get(member) if answer.native is not None else None
    is_error = answer.content is Content.ERROR
    is_bare = is_error or answer.content is Content.EMPTY
    tasks = () if is_bare else placement.active_by_member.get(member, ())
    standby = () if is_bare else placement.standby_by_member.get(member, ())
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
        error_code=request.decision.error_code if is_error else 0,
        next_rebalance_ms=placement.next_rebalance_ms.get(member, NO_REBALANCE),
        native=None if native is None else _native_part(request, answer, native, shared),
    )
    partitions = tuple(p for p, _ in pairs) or placement.partitions_by_member.get(member, ())
    return MemberAnswer(
        partitions=tuple(sorted(partitions)),
        user_data=write_answer(assignment),
        assignment=assignment,
    )


def _native_part(
    request: GroupRequest, answer: Answer, native: NativeMember, shared: _Shared
) -> NativeAssignment:
    return NativeAssignment(
        version=answer.version if answer.version >= EARLIEST_NATIVE_VERSION else native.version,
        commonly_supported_version=max(native.version, answer.commonly_supported_version),
        sizes=shared.sizes,
        warmup_tasks=request.placement.warmup_by_member.get(answer.member_id, ()),
        partition_counts=shared.source_counts,
        next_version=answer.next_version,
        subscription_read=answer.subscription_read,
        feature_levels=levels_answered(request.levels, request.persistent_version),
        feature_epoch=request.levels.epoch,
    )


def _bytes_of(
    request: GroupRequest, member: str, draft: MemberAnswer, shared: _Shared
) -> MemberBytes:
    """What a member costs the group's record, in each form that would be right for it."""
    size = len(draft.user_data)
    by_form = {ViewForm.NONE: size}
    forms = shared.forms
    native = request.natives.get(member)
    if forms is not None and native is not None and draft.assignment.native is not None:
        best = _best_form(forms, native.held, draft.assignment.native)
        view = len(forms.bytes_of(best, native.held))
        by_form[best] = size + view + _KEY_AND_LENGTH
    elif draft.assignment.partitions_by_host:
        by_form = {ViewForm.FULL: size, ViewForm.NONE: size - shared.host_bytes(draft)}
    return MemberBytes(
        member_id=member,
        subscription=request.subscription_bytes[member],
        answer_by_form=by_form,
        protocol=protocol_bytes(
            topics=shared.topics, partitions=draft.partitions, member_id=member
        ),
    )


def _best_form(forms: ViewForms, held: ViewReference | None, native: NativeAssignment) -> ViewForm:
    """The smallest form that is right for a member and that the layout of its answer has."""
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

    JVM members take that for "not known yet" and do not ask again; KAFKA-9568 is about maps that
    name others only.
    """
    assignment = replace(
        draft.assignment, partitions_by_host=_NO_HOSTS, standby_partitions_by_host=_NO_HOSTS
    )
    return replace(draft, assignment=assignment, user_data=write_answer(assignment))


def _views(native: NativeAssignment | None) -> tuple[bytes | None, ...] | None:
    """The routing view in its three forms, of which one at most is there."""
    if native is None:
        return None
    return native.view_full, native.view_delta, native.view_reference


def _check(member: str, draft: MemberAnswer, known_versions: tuple[int, ...]) -> None:
    meant = draft.assignment
    said = read_answer(draft.user_data, known_versions)
    agrees = (
        said.version == meant.version
        and said.active_tasks == meant.active_tasks
        and said.standby_tasks == meant.standby_tasks
        and _views(said.native) == _views(meant.native)
    )
    if not agrees:
        raise TaskAssignmentError(
            f"the answer for {member} does not decode to what was decided (version "
            f"{meant.version}, {len(draft.user_data)} bytes); this is a defect, please report it"
        )
