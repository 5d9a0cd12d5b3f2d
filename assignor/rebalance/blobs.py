"""Subscriptions and assignments to and from bytes; small ones are cached.

A leader reads every answer again before it sends it, each member reads its answer, a rebalance that
changes nothing sends the same bytes again, and a process that inspects groups reads the same
members repeatedly. Values are frozen and equal values have equal bytes, so caching changes nothing.
The functions are those of `encoding`; all arguments have to be hashable.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar, cast

from encoding import (
    Assignment,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

_SMALL_BYTES = 1024
_SMALL_TASKS = 64
_KEPT = 2048
_Call = TypeVar("_Call", bound=Callable[..., Any])


def _cached(call: _Call, is_small: Callable[[Any], bool]) -> _Call:
    """Return the function with results kept where the first argument is small."""
    kept = lru_cache(maxsize=_KEPT)(call)

    def either(value: Any, /, *more: Any, **named: Any) -> Any:
        return (kept if is_small(value) else call)(value, *more, **named)

    return cast("_Call", either)


def _is_short(data: bytes) -> bool:
    return len(data) <= _SMALL_BYTES


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


read_subscription = _cached(decode_subscription, _is_short)
write_subscription = _cached(
    encode_subscription, lambda value: len(value.task_offset_sums) <= _SMALL_TASKS
)
read_answer = _cached(decode_assignment, _is_short)
write_answer = _cached(encode_assignment, _is_small)
