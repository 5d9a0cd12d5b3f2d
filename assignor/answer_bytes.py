"""Answers to and from bytes, each small one once.

A leader reads every answer again before it leaves, each member reads what it gets, and a rebalance
that changes nothing sends the same bytes as the one before: so what was written and read is kept,
for small answers only. Values are frozen and equal ones are written as equal bytes, so nobody can
tell the difference.
"""

from functools import lru_cache

from encoding import Assignment, decode_assignment, encode_assignment

_SMALL_BYTES = 1024
_SMALL_TASKS = 64
_KEPT = 1024


def write_answer(assignment: Assignment) -> bytes:
    """Bytes of an answer.

    Raises:
        EncodeError: see `encode_assignment`.
    """
    return _write_small(assignment) if _is_small(assignment) else encode_assignment(assignment)


def read_answer(data: bytes, known_versions: tuple[int, ...]) -> Assignment:
    """Value of an answer, as a reader sees it that knows these versions.

    Raises:
        DecodeError: see `decode_assignment`.
    """
    if len(data) <= _SMALL_BYTES:
        return _read_small(data, known_versions)
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


@lru_cache(maxsize=_KEPT)
def _write_small(assignment: Assignment) -> bytes:
    return encode_assignment(assignment)


@lru_cache(maxsize=_KEPT)
def _read_small(data: bytes, known_versions: tuple[int, ...]) -> Assignment:
    return decode_assignment(data, known_versions=known_versions)
