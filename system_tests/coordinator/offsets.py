"""Committed offsets: commit, fetch, delete.

Offsets are kept until they or their group are deleted; `offsets.retention.minutes` (seven days) is
not simulated.
"""

from collections.abc import Iterable, Mapping

from system_tests.coordinator.group import Group
from system_tests.coordinator.turn import Turn
from system_tests.coordinator.types import (
    UNKNOWN_MEMBER_ID,
    CommitAnswer,
    CommitOffsets,
    CommittedOffset,
    ErrorCode,
    EventKind,
    GroupState,
    OffsetKey,
)


def commit(turn: Turn, group: Group, request: CommitOffsets, token: object) -> None:
    """Handle an OffsetCommit for a group that exists."""
    error = _check(group, request)
    if error is ErrorCode.FENCED_INSTANCE_ID:
        turn.record(EventKind.MEMBER_FENCED, group, reason=f"commit of {request.member_id}")
    if error is ErrorCode.NONE and request.member_id in group.members:
        turn.touch(group, group.members[request.member_id])
    errors: dict[OffsetKey, ErrorCode] = {}
    for key, committed in request.offsets.items():
        errors[key] = error
        if error is not ErrorCode.NONE:
            continue
        if len(committed.metadata.encode()) > turn.config.offset_metadata_limit:
            errors[key] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        group.offsets[key] = committed
    turn.answer(token, CommitAnswer(errors=errors))


def _check(group: Group, request: CommitOffsets) -> ErrorCode:
    """Return the error of a commit: members commit in their generation, others to empty groups."""
    if group.state is GroupState.EMPTY and request.generation < 0:
        return ErrorCode.NONE
    is_anonymous = request.member_id == UNKNOWN_MEMBER_ID and request.instance_id is None
    if is_anonymous and request.generation < 0:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def fetch(group: Group, keys: Iterable[OffsetKey] | None) -> Mapping[OffsetKey, CommittedOffset]:
    """Return the committed offsets of some partitions (`None`: all); offset -1 if none."""
    wanted = sorted(group.offsets) if keys is None else list(keys)
    return {key: group.offsets.get(key, CommittedOffset(-1)) for key in wanted}


def delete(
    group: Group, keys: Iterable[OffsetKey], subscribed_topics: frozenset[str]
) -> Mapping[OffsetKey, ErrorCode]:
    """Delete offsets (KIP-496); offsets of topics that the group consumes are refused."""
    errors: dict[OffsetKey, ErrorCode] = {}
    for key in keys:
        if group.state is not GroupState.EMPTY and key.topic in subscribed_topics:
            errors[key] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            group.offsets.pop(key, None)
            errors[key] = ErrorCode.NONE
    return errors
