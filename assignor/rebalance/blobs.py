"""Subscriptions and assignments to and from bytes; small ones are cached.

A leader reads every answer again before it sends it, each member reads its answer, a rebalance that
changes nothing sends the same bytes again, and a process that inspects groups reads the same
members repeatedly. Values are frozen and equal values have equal bytes, so caching changes nothing.
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
    """Return the bytes of a subscription.

    Args:
        subscription: the value.
        kafka_offset_sums: for Kafka's own fields, where they name fewer tasks than the trailer.

    Raises:
        EncodeError: see `encode_subscription`.
    """
    if len(subscription.task_offset_sums) <= _SMALL_TASKS:
        return _write_small_subscription(subscription, kafka_offset_sums=kafka_offset_sums)
    return encode_subscription(subscription, kafka_offset_sums=kafka_offset_sums)


def read_subscription(
    data: bytes, known_versions: tuple[int, ...]
) -> Subscription | FutureSubscription:
    """Return a subscription, as a reader sees it that knows these versions.

    Raises:
        DecodeError: see `decode_subscription`.
    """
    if len(data) <= _SMALL_BYTES:
        return _read_small_subscription(data, known_versions)
    return decode_subscription(data, known_versions=known_versions)


def write_answer(assignment: Assignment) -> bytes:
    """Return the bytes of an assignment.

    Raises:
        EncodeError: see `encode_assignment`.
    """
    return (
        _write_small_answer(assignment) if _is_small(assignment) else encode_assignment(assignment)
    )


def read_answer(data: bytes, known_versions: tuple[int, ...]) -> Assignment:
    """Return an assignment, as a reader sees it that knows these versions.

    Raises:
        DecodeError: see `decode_assignment`.
    """
    if len(data) <= _SMALL_BYTES:
        return _read_small_answer(data, known_versions)
    return decode_assignment(data, known_versions=known_versions)


def _is_small(assignment: Assignment) -> bool:
    """Whether the value is quick to hash and takes little memory: few tasks, no routing."""
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
