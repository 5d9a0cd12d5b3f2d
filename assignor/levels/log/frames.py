"""Frames of a records file: which are complete, which a power cut truncated, which are damaged.

A frame is `uint32 length | uint64 number | batch | 8 bytes BLAKE2b of all before`. A writer appends
one frame and syncs it, so a power cut leaves at most one incomplete frame at the end of the file.
Some file systems fill the missing part, and bytes after it, with zeros. Exactly two cases are
dropped as the effect of a power cut:

- the file ends inside the frame, and the existing bytes of length and number are correct;
- from some byte on there are only zeros, including all 8 bytes of the checksum.

If at least the first 4 bytes of the checksum are correct and the rest are zeros, the batch is
complete and is kept. Everything else was changed after it was written and is an error, because the
frame may have been acknowledged.
"""

import shlex
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from assignor.levels.log.records import BATCH_LIMIT
from assignor.stores import StoreError

_HEAD: Final = struct.Struct(">IQ")
_LENGTH: Final = struct.Struct(">I")
_CHECK: Final = 8
_CHECK_ENOUGH: Final = 4
_CANDIDATES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One records file.

    Attributes:
        bodies: the batches of its complete frames.
        data: the repaired content: the complete frames and nothing else.
        dropped: number of bytes of an incomplete frame.
        zeros: whether these bytes end with zeros.
    """

    bodies: tuple[bytes, ...]
    data: bytes
    dropped: int = 0
    zeros: bool = False


def frame(number: int, body: bytes) -> bytes:
    """Return the bytes of a frame."""
    head = _HEAD.pack(len(body), number) + body
    return head + _check(head)


def read_segment(data: bytes, first: int, *, name: str) -> Segment:
    """Return the frames of a records file.

    Args:
        data: all bytes of the file.
        first: number of the first frame.
        name: path of the file, for messages and for the command in the remedy.

    Raises:
        StoreError: a frame is damaged; nothing was changed, and the message says how to repair.
    """
    bodies = tuple(_whole_bodies(data, first))
    at = sum(len(body) + _HEAD.size + _CHECK for body in bodies)
    number = first + len(bodies)
    tail = data[at:]
    if not tail:
        return Segment(bodies=bodies, data=data)
    written = tail.rstrip(b"\0")
    goes_on = _goes_on(data, at, number)
    if damage := "complete records follow" if goes_on else _damage(tail, written, number):
        raise StoreError(
            f"record {number} in {name} is damaged at byte {at} ({damage}): this is not the effect"
            " of a power cut, and the record may have been acknowledged; nothing was changed;"
            f" restore the directory from a backup; or, to lose record {number} and all later ones,"
            f" copy the directory and run `truncate -s {at} {shlex.quote(name)}`"
        )
    kept = _kept_body(tail, written, number)
    if kept is not None:
        return Segment(bodies=(*bodies, kept), data=data[:at] + frame(number, kept))
    has_zeros = len(written) < len(tail)
    return Segment(bodies=bodies, data=data[:at], dropped=len(tail), zeros=has_zeros)


def _whole_bodies(data: bytes, number: int) -> Iterator[bytes]:
    at = 0
    while (body := _body(data, at, number)) is not None:
        yield body
        number, at = number + 1, at + _HEAD.size + len(body) + _CHECK


def _body(data: bytes, at: int, number: int) -> bytes | None:
    """Return the batch of a complete frame; None if the frame at `at` is not complete and valid."""
    if len(data) - at < _HEAD.size:
        return None
    length, found = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + length
    if found != number or length > BATCH_LIMIT or end + _CHECK > len(data):
        return None
    if _check(data[at:end]) != data[end : end + _CHECK]:
        return None
    return data[at + _HEAD.size : end]


def _damage(tail: bytes, written: bytes, number: int) -> str:
    """Return why an incomplete frame is damage and not the effect of a power cut; "" if it is.

    Args:
        tail: all bytes after the last complete frame, not empty.
        written: `tail` without zeros at its end.
        number: number of the frame.
    """
    stored_number = written[_LENGTH.size : _HEAD.size]
    if not number.to_bytes(8, "big").startswith(stored_number):
        return f"it does not have number {number}"
    if len(tail) < _LENGTH.size:
        return ""
    [length] = _LENGTH.unpack_from(tail)
    if length > BATCH_LIMIT:
        return f"its length of {length} bytes is impossible"
    end = _HEAD.size + length
    if len(tail) < end + _CHECK:
        return "its length is wrong" if _is_whole_but_for_its_length(tail) else ""
    if len(written) <= end or _kept_body(tail, written, number) is not None:
        return ""
    stored = written[end:]
    if len(stored) < _CHECK_ENOUGH and _check(tail[:end]).startswith(stored):
        return ""
    return "it is complete, but its checksum is wrong"


def _is_whole_but_for_its_length(tail: bytes) -> bool:
    length = len(tail) - _HEAD.size - _CHECK
    if length < 0:
        return False
    head = _LENGTH.pack(length) + tail[_LENGTH.size : -_CHECK]
    return _check(head) == tail[-_CHECK:]


def _kept_body(tail: bytes, written: bytes, number: int) -> bytes | None:
    """Return the batch of a frame if only the end of its checksum is missing; else None."""
    if len(tail) < _HEAD.size:
        return None
    length, found = _HEAD.unpack_from(tail)
    end = _HEAD.size + length
    stored = written[end:]
    is_complete = found == number and len(tail) >= end + _CHECK
    if not is_complete or not _CHECK_ENOUGH <= len(stored) <= _CHECK:
        return None
    return tail[_HEAD.size : end] if _check(tail[:end]).startswith(stored) else None


def _goes_on(data: bytes, at: int, number: int) -> bool:
    """Return whether a complete frame follows the incomplete one."""
    later = number + 1
    for _ in range(_CANDIDATES):
        at = data.find(later.to_bytes(8, "big"), at)
        if at < 0:
            return False
        if at >= _LENGTH.size and _body(data, at - _LENGTH.size, later) is not None:
            return True
        at += 1
    return True


def _check(head: bytes) -> bytes:
    return blake2b(head, digest_size=_CHECK).digest()
