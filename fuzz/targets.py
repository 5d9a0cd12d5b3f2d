"""Fuzz targets: one function for each reader of foreign bytes.

A target takes bytes. It raises `Finding` for a broken promise; any other exception is a finding as
well. The promises are those of `encoding.kafka.compiled`, `encoding.native.body` and
`encoding.view.codec`: a reader returns a value or raises `DecodeError`, a value can be written and
read again, an explanation covers every byte, time and memory are linear in the input.
"""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from encoding import (
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    Assignment,
    DecodeError,
    EncodeError,
    FutureSubscription,
    HostInfo,
    Subscription,
    View,
    ViewReference,
    apply_delta,
    assignment_from_fields,
    assignment_to_fields,
    build_view,
    decode_assignment,
    decode_reference,
    decode_subscription,
    decode_view,
    encode_assignment,
    encode_delta,
    encode_reference,
    encode_subscription,
    encode_view,
    explain,
    read_assignment,
    read_subscription,
    subscription_from_fields,
    subscription_to_fields,
    view_reference,
)
from encoding.primitives.varints import encode_varint
from encoding.view import codec as view_codec
from encoding.view import delta as view_delta
from encoding.view.columns import view_checksum
from fuzz.group_row import group_row
from fuzz.inspected_groups import inspect_any_group
from fuzz.led_groups import lead_any_group
from fuzz.member_answers import member_receive
from fuzz.promises import Finding, expect
from fuzz.store_files import check_store_file

__all__ = ["BASES", "TARGETS", "WHOLE", "Finding", "expect"]

FIRST_WITH_SUMS = 7
EMULATING = (*KNOWN_VERSIONS, 102, 103)
READERS: dict[str, tuple[int, ...]] = {
    "kafka": KAFKA_VERSIONS,
    "native": KNOWN_VERSIONS,
    "next": EMULATING,
}
"""Known versions of a reader of Kafka's layouts, of a native one, and of a later native one."""


# Blobs.


def _subscription(data: bytes, known: tuple[int, ...]) -> None:
    try:
        value, end = read_subscription(data, known)
    except DecodeError as error:
        _check_place(error, data)
        _check_version(error, data)
        return
    expect(0 <= end <= len(data), "the end of a subscription lies within its bytes")
    expect(decode_subscription(data, known) == value, "reading twice gives the same")
    _check_explained("subscription", data, known)
    fields = json.loads(json.dumps(subscription_to_fields(value)))
    if isinstance(value, FutureSubscription):
        expect(value.version <= value.latest_supported_version, "versions of a future member fit")
        return
    _check_written(value, encode_subscription, decode_subscription, known)
    if value.native is None or value.native.is_readable:
        expect(subscription_from_fields(fields) == value, "JSON fields hold the subscription")


def _assignment(data: bytes, known: tuple[int, ...]) -> None:
    try:
        value, end = read_assignment(data, known)
    except DecodeError as error:
        _check_place(error, data)
        _check_version(error, data)
        return
    expect(0 <= end <= len(data), "the end of an assignment lies within its bytes")
    expect(decode_assignment(data, known) == value, "reading twice gives the same")
    _check_explained("assignment", data, known)
    fields = json.loads(json.dumps(assignment_to_fields(value)))
    _check_written(value, encode_assignment, decode_assignment, known)
    if value.native is None or value.native.is_readable:
        expect(assignment_from_fields(fields) == value, "JSON fields hold the assignment")


def _check_place(error: DecodeError, data: bytes) -> None:
    expect(error.available == len(data), "an error says how many bytes there were")
    expect(0 <= error.offset <= len(data), "an error names a byte of the input")
    expect(str(error.offset) in str(error), "an error says where it is")


def _check_version(error: DecodeError, data: bytes) -> None:
    used = int.from_bytes(data[:4], signed=True) if len(data) >= 4 else None  # noqa: PLR2004 int32
    named = error.version == used or (used == 0 and error.version is None)
    expect(named, "an error names the used version, if it could be read")


def _check_written(
    value: Any,
    encode: Callable[[Any], bytes],
    decode: Callable[[bytes, Collection[int]], Any],
    known: tuple[int, ...],
) -> None:
    """Check that a value that was read can be written, if a writer may, and read again."""
    try:
        blob = encode(value)
    except EncodeError:
        # Values that only readers accept: malformed text that grew, bodies of later versions,
        # trailers that contradict the Kafka fields.
        expect(not _is_writable(value), "a plain value that was read can be written")
        return
    # A blob may name an older readable_since than the writer of this project does.
    again = decode(blob, known if value.native is None else EMULATING)
    expect(encode(again) == blob, "equal bytes for what was read back")
    native = value.native
    # A reader accepts keys that the writer of another version omits.
    if native is None or (native.version == max(known) == KNOWN_VERSIONS[-1]):
        expect(again == value, "what was read is read back")


def _is_writable(value: Subscription | Assignment) -> bool:
    """Whether the value must be writable: it has no trailer and no text that may grow."""
    return value.native is None and "�" not in repr(value) and "\\x00" not in repr(value)


def _explained(kind: str, data: bytes, known: tuple[int, ...]) -> list[Any]:
    pieces = list(explain(kind, data, known))
    place = 0
    for piece in pieces:
        expect(piece.offset == place, f"{piece.path} begins where the piece before it ends")
        expect(piece.size >= 0, f"{piece.path} has a size")
        place += piece.size
    expect(place == len(data), "the pieces of an explanation are all the bytes")
    return pieces


def _check_explained(kind: str, data: bytes, known: tuple[int, ...]) -> None:
    try:
        _explained(kind, data, known)
    except DecodeError as error:
        raise Finding(f"what can be read can be explained: {error}") from error


def _explain(data: bytes) -> None:
    for kind in ("subscription", "assignment"):
        for known in READERS.values():
            try:
                _explained(kind, data, known)
            except DecodeError as error:
                _check_place(error, data)
                _check_version(error, data)


# Fields.


def _fields(data: bytes) -> None:
    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(fields, dict):
        return
    for from_fields, to_fields, encode, decode in (
        (subscription_from_fields, subscription_to_fields, encode_subscription, _decode_any),
        (assignment_from_fields, assignment_to_fields, encode_assignment, _decode_answer),
    ):
        try:
            value: Any = from_fields(fields)
        except EncodeError:
            continue
        again = from_fields(to_fields(value))
        # Below version 7 two task lists replace the sums, as on the wire.
        lossless = to_fields is assignment_to_fields or value.version >= FIRST_WITH_SUMS
        expect(not lossless or again == value, "fields of a value give the value")
        expect(from_fields(to_fields(again)) == again, "fields of what was read give the same")
        try:
            blob = encode(value)
        except EncodeError:
            continue
        expect(encode(decode(blob)) == blob, "what was written is read")


def _decode_any(blob: bytes) -> Any:
    return decode_subscription(blob, EMULATING)


def _decode_answer(blob: bytes) -> Any:
    return decode_assignment(blob, EMULATING)


# Views.


def _bases() -> tuple[View, ...]:
    hosts = [HostInfo(f"app-{n}.prod.example", 8080 + n) for n in range(9)]
    small = build_view(epoch=1, sizes=(2,), active={}, standby={})
    middle = build_view(
        epoch=7,
        sizes=(3, 0, 5),
        active={hosts[0]: [0, 3, 6], hosts[1]: [1, 2]},
        standby={hosts[1]: [0, 3], hosts[2]: [0, 1]},
    )
    large = build_view(
        epoch=2**40,
        sizes=(40, 40),
        active={host: range(n, 80, 9) for n, host in enumerate(hosts)},
        standby={host: range((n + 1) % 9, 80, 9) for n, host in enumerate(hosts)},
    )
    return small, middle, large


BASES = _bases()
"""Views that deltas are applied to; the first byte of an input selects one."""


def _view(data: bytes) -> None:
    try:
        view = decode_view(data)
    except DecodeError as error:
        _check_place(error, data)
        return
    _check_view(view)


def _sealed_view(data: bytes) -> None:
    """Check a view with a valid checksum, which a fuzzer cannot find by chance."""
    seal = int.from_bytes(data[-4:])
    with _patched(view_codec, "view_checksum", lambda _: seal):
        try:
            view = decode_view(data)
        except DecodeError as error:
            _check_place(error, data)
            return
    _check_view(view)


def _delta(data: bytes) -> None:
    old = BASES[data[0] % len(BASES)] if data else BASES[0]
    try:
        view = apply_delta(old, data[1:])
    except DecodeError as error:
        _check_place(error, data[1:])
        return
    _check_delta(old, view)


def _sealed_delta(data: bytes) -> None:
    """Check a delta with valid checksums of the old view and of the result."""
    old = BASES[data[0] % len(BASES)] if data else BASES[0]
    name = encode_varint(old.epoch) + view_checksum(old).to_bytes(4)
    delta = bytes([view_codec.DELTA]) + name + data[1:]
    seal = int.from_bytes(delta[-4:])

    def named(view: View) -> ViewReference:
        return view_reference(view) if view is old else ViewReference(view.epoch, seal)

    with _patched(view_delta, "view_reference", named):
        try:
            view = apply_delta(old, delta)
        except DecodeError as error:
            _check_place(error, delta)
            return
    _check_delta(old, view)


def _check_view(view: View) -> None:
    blob = encode_view(view)
    again = decode_view(blob)
    expect(view_reference(again) == view_reference(view), "a view that was read is read back")
    expect(encode_view(again) == blob, "equal bytes for equal views")


def _check_delta(old: View, view: View) -> None:
    _check_view(view)
    again = apply_delta(old, encode_delta(old, view))
    expect(view_reference(again) == view_reference(view), "a delta leads to the view it is for")


def _reference(data: bytes) -> None:
    try:
        reference = decode_reference(data)
    except DecodeError as error:
        _check_place(error, data)
        return
    expect(decode_reference(encode_reference(*reference)) == reference, "a reference is read back")


@contextmanager
def _patched(module: ModuleType, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _reading(check: Callable[[bytes, tuple[int, ...]], None], reader: str) -> Callable[..., None]:
    return lambda data: check(data, READERS[reader])


TARGETS: dict[str, Callable[[bytes], None]] = {
    **{f"subscription/{reader}": _reading(_subscription, reader) for reader in READERS},
    **{f"assignment/{reader}": _reading(_assignment, reader) for reader in READERS},
    "explain": _explain,
    "fields": _fields,
    "view": _view,
    "view/sealed": _sealed_view,
    "delta": _delta,
    "delta/sealed": _sealed_delta,
    "reference": _reference,
    "group_row": group_row,
    "led_group": lead_any_group,
    "member_receive": member_receive,
    "store_files": check_store_file,
    "inspect_group": inspect_any_group,
}
"""Target by name, as in the corpus; the first byte of the fuzzer's inputs is the position here."""

WHOLE = frozenset({"group_row", "inspect_group", "led_group", "member_receive", "store_files"})
"""Targets beyond the decoders; each is a separate part for the fuzzer."""
