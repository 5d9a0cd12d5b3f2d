"""Frames of a segment of the feature log: which are whole, what a power cut left, what is damage.

A frame is `uint32 length | uint64 number | batch | 8 bytes BLAKE2b of all before`. A writer appends
one and waits until it is on the disk, so a power cut leaves at most the beginning of one frame at
the end of the file. Some file systems put zeros in place of what is missing, also beyond the frame.
Exactly that is dropped:

- the file ends inside the frame: what is there of number and length is as the writer wrote it;
- from some byte on there are only zeros, and all 8 bytes of the check are among them.

A check that fits in its first 4 bytes or more and ends in zeros belongs to a whole batch, which is
kept. Everything else was changed after it was written, and is an error: the frame may have been
acknowledged.
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
    """One file of records.

    Attributes:
        bodies: the batches of its whole frames.
        data: the file as it should be: these frames and nothing else.
        dropped: bytes behind them that a power cut left.
        zeros: whether there were zeros among them in place of what was never written.
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
    """Return the frames of a file of records.

    Args:
        data: all its bytes.
        first: number of the first frame.
        name: of the file, for messages; with it the remedy is a command that works.

    Raises:
        StoreError: a frame is damaged; nothing was changed, and the message says how to go on.
    """
    bodies = tuple(_whole_bodies(data, first))
    at = sum(len(body) + _HEAD.size + _CHECK for body in bodies)
    number = first + len(bodies)
    tail = data[at:]
    if not tail:
        return Segment(bodies=bodies, data=data)
    written = tail.rstrip(b"\0")
    goes_on = _goes_on(data, at, number)
    if damage := "and others follow" if goes_on else _damage(tail, written, number):
        raise StoreError(
            f"record {number} in {name} is broken at byte {at} {damage}: this is no power cut, and"
            " the record may have been acknowledged; nothing was changed; put the folder back from"
            f" a copy, or, to give up record {number} and all after it, keep a copy of the folder"
            f" and run `truncate -s {at} {shlex.quote(name)}`"
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
    """Return the batch of a whole frame; None if there is none of that number."""
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
    """Say why a frame that is not whole is not what a power cut leaves; empty: it is.

    Args:
        tail: everything behind the last whole frame, not empty.
        written: the same without the zeros at its end.
        number: of the frame.
    """
    told = written[_LENGTH.size : _HEAD.size]
    if not number.to_bytes(8, "big").startswith(told):
        return f"where a frame with number {number} belongs"
    if len(tail) < _LENGTH.size:
        return ""
    [length] = _LENGTH.unpack_from(tail)
    if length > BATCH_LIMIT:
        return f"and its length of {length} bytes cannot be"
    end = _HEAD.size + length
    if len(tail) < end + _CHECK:
        return "and its length is wrong" if _is_whole_but_for_its_length(tail) else ""
    if len(written) <= end or _kept_body(tail, written, number) is not None:
        return ""
    stored = written[end:]
    if len(stored) < _CHECK_ENOUGH and _check(tail[:end]).startswith(stored):
        return ""
    return "and its whole length is there, with a wrong checksum"


def _is_whole_but_for_its_length(tail: bytes) -> bool:
    length = len(tail) - _HEAD.size - _CHECK
    if length < 0:
        return False
    head = _LENGTH.pack(length) + tail[_LENGTH.size : -_CHECK]
    return _check(head) == tail[-_CHECK:]


def _kept_body(tail: bytes, written: bytes, number: int) -> bytes | None:
    """Return the batch of a frame of which only the end of the check is missing, else None."""
    if len(tail) < _HEAD.size:
        return None
    length, found = _HEAD.unpack_from(tail)
    end = _HEAD.size + length
    stored = written[end:]
    is_there = found == number and len(tail) >= end + _CHECK
    if not is_there or not _CHECK_ENOUGH <= len(stored) <= _CHECK:
        return None
    return tail[_HEAD.size : end] if _check(tail[:end]).startswith(stored) else None


def _goes_on(data: bytes, at: int, number: int) -> bool:
    """Tell whether a later frame is whole, behind one that is not."""
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
