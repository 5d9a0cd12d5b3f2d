"""Blobs of members and leaders to and from bytes, each small one once.

A leader reads every answer again before it leaves, each member reads what it gets, and a rebalance
that changes nothing sends the same bytes as the one before; who looks at many groups, or at one
again and again, meets the same members. So what was written and read is kept, for small blobs only.
Values are frozen and equal ones are written as equal bytes, so nobody can tell the difference.
"""

from functools import lru_cache

from encoding import (
    Assignment,
    FutureSubscription,
    Subscription,
    TaskOffsetSums,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

_SMALL_BYTES = 1024
_SMALL_TASKS = 64
_KEPT = 2048


def write_subscription(
    subscription: Subscription, *, kafka_offset_sums: TaskOffsetSums | None = None
) -> bytes:
    """Bytes of a subscription, with what Kafka's own fields say of the tasks if that is less.

    Raises:
        EncodeError: see `encode_subscription`.
    """
    if len(subscription.task_offset_sums) <= _SMALL_TASKS:
        return _write_small_subscription(subscription, kafka_offset_sums=kafka_offset_sums)
    return encode_subscription(subscription, kafka_offset_sums=kafka_offset_sums)


def read_subscription(
    data: bytes, known_versions: tuple[int, ...]
) -> Subscription | FutureSubscription:
    """Value of a subscription, as a reader sees it that knows these versions.

    Raises:
        DecodeError: see `decode_subscription`.
    """
    if len(data) <= _SMALL_BYTES:
        return _read_small_subscription(data, known_versions)
    return decode_subscription(data, known_versions=known_versions)


def write_answer(assignment: Assignment) -> bytes:
    """Bytes of an answer.

    Raises:
        EncodeError: see `encode_assignment`.
    """
    return (
        _write_small_answer(assignment) if _is_small(assignment) else encode_assignment(assignment)
    )


def read_answer(data: bytes, known_versions: tuple[int, ...]) -> Assignment:
    """Value of an answer, as a reader sees it that knows these versions.

    Raises:
        DecodeError: see `decode_assignment`.
    """
    if len(data) <= _SMALL_BYTES:
        return _read_small_answer(data, known_versions)
    return decode_assignment(data, known_versions=known_versions)


def _is_small(assignment: Assignment) -> bool:
    """Whether the value is quick to hash and worth little memory: few tasks, no routing."""
    native = assignment.native
    return (
        len(assignment.active_tasks) <= _SMALL_TASKS
        and len(assignment.standby_tasks) <= _SMALL_TASKS
        and not assignment.partitions_by_host
        and not assignment.standby_partitions_by_host
        and (native is None or (native.view_full is None and native.view_delta is None))
    )


_write_small_subscription = lru_cache(maxsize=_KEPT)(encode_subscription)
_read_small_subscription = lru_cache(maxsize=_KEPT)(decode_subscription)
_write_small_answer = lru_cache(maxsize=_KEPT)(encode_assignment)
_read_small_answer = lru_cache(maxsize=_KEPT)(decode_assignment)
