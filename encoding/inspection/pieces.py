"""Name and explain every byte of a blob, for ``assignor decode``.

It uses the schema rows and readers of the codec, one field at a time, so it shows what the codec
reads. Its time is linear, but it is much slower than decoding.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from encoding.inspection.native_pieces import body_pieces
from encoding.kafka import (
    KAFKA_VERSIONS,
    KINDS,
    KNOWN_VERSIONS,
    STRUCTURES,
    Field,
    array_of,
    minimal_size,
    reader,
    rows_of,
)
from encoding.native import EARLIEST_NATIVE_VERSION, KAFKAS, latest_native_version, trailer_in
from encoding.primitives import (
    NO_REBALANCE,
    RUNNING,
    UNKNOWN_OFFSET_SUM,
    AssignorError,
    DecodeError,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a blob.

    Attributes:
        path: field, with the position of the element for parts of arrays (``client_tags[0].key``).
        offset: first byte. size: number of bytes; an array's own piece is its count alone.
        type: wire type, as in the schema.
        value: integer, text, UUID or ``None``; ``bytes`` for unread parts.
        meaning: one line for people.
        key: msgpack key of a field of a native body, else ``None``.
    """

    path: str
    offset: int
    size: int
    type: str
    value: Any
    meaning: str
    key: int | None = None


def explain(
    kind: str, data: bytes, known_versions: Collection[int] = KNOWN_VERSIONS
) -> Iterator[Piece]:
    """All pieces of a blob in wire order, including a trailer and bytes behind the last field.

    All keys of a native body are shown, also of one that cannot be read: a key never changes its
    meaning. A key that this reader does not know is called ``key N (unknown)``.

    Args:
        kind: ``subscription`` or ``assignment``.
        data: the blob. Decode a blob in a Kafka version first: the decoder also checks whether
            fields fit together.
        known_versions: versions that the reader knows.

    Raises:
        DecodeError: at the piece that cannot be read.
    """
    data = bytes(data)
    version, offset = reader(KINDS[kind][0], 0, f"{kind} ")(data, 0)
    latest = latest_native_version(known_versions)
    if latest is not None and version >= EARLIEST_NATIVE_VERSION:
        yield from _native_pieces(kind, data, version, latest)
        return
    is_known = version in KAFKA_VERSIONS and version in known_versions
    rows = tuple(rows_of(KINDS[kind], version)) if is_known else KINDS[kind][:2]
    if not is_known and kind == "assignment":
        what = f"assignment is in version {version}, which this reader does not know"
        raise DecodeError(what, offset=0, version=version, available=len(data))
    offset = 0
    for row in rows:
        for piece in _pieces(data, offset, row, version, ""):
            yield piece
            offset = piece.offset + piece.size
    if is_known and latest is not None:
        for piece in _trailer_pieces(kind, data, offset, latest):
            yield piece
            offset = piece.offset + piece.size
    meaning = "behind the last field" if is_known else "body of a future version"
    yield from _rest(data, offset, f"not read: {meaning}")


def _rest(data: bytes, offset: int, meaning: str) -> Iterator[Piece]:
    if offset < len(data):
        yield Piece("trailing bytes", offset, len(data) - offset, "", data[offset:], meaning)


def _native_pieces(kind: str, data: bytes, version: int, latest: int) -> Iterator[Piece]:
    offset = 0
    for row in KINDS[kind][:2]:
        for piece in _pieces(data, offset, row, version, ""):
            yield piece
            offset = piece.offset + piece.size
    for name, start, size, type_, value, meaning, key in body_pieces(
        kind, data, offset, version, latest
    ):
        yield Piece(name, start, size, type_, value, _named(name, value, meaning), key)
        offset = start + size
    yield from _rest(data, offset, "not read: behind the last key")


def _trailer_pieces(kind: str, data: bytes, offset: int, latest: int) -> Iterator[Piece]:
    """Pieces of a trailer that can be read; none of one that is ignored."""
    found = trailer_in(data, offset)
    if found is None:
        return
    used, supported, start, end = found
    try:
        pieces = list(body_pieces(kind, data[:end], start, used, latest, ignored=KAFKAS[kind]))
    except DecodeError:
        return
    yield Piece("trailer", offset, 4, "magic", data[offset : offset + 4], "a native blob follows")
    yield Piece("trailer.length", offset + 4, 4, "int32", end - offset - 8, "bytes of that blob")
    for row, number, place in zip(KINDS[kind], (used, supported), (8, 12), strict=False):
        yield Piece(f"trailer.{row.name}", offset + place, 4, "int32", number, row.meaning)
    last = start
    for name, place, size, type_, value, meaning, key in pieces:
        line = _named(name, value, meaning)
        yield Piece(f"trailer.{name}", place, size, type_, value, line, key)
        last = place + size
    if last < end:
        line = "not read: behind the last key"
        yield Piece("trailer.rest", last, end - last, "", data[last:end], line)


def _pieces(data: bytes, offset: int, row: Field, version: int, prefix: str) -> Iterator[Piece]:
    path = prefix + row.name
    structure = array_of(row.type)
    if structure is None:
        value, end = reader(row, version, prefix)(data, offset)
        yield Piece(path, offset, end - offset, row.type, value, _meaning(row, value))
        return
    count, end = reader(Field(row.name, "int32"), version, prefix)(data, offset)
    fields = tuple(rows_of(STRUCTURES[structure], version))
    if count < 0 or count * sum(minimal_size(field.type) for field in fields) > len(data) - end:
        what = f"{path} claims {count} entries, {len(data) - end} bytes are left"
        raise DecodeError(what, offset=offset, version=version, available=len(data))
    yield Piece(path, offset, 4, row.type, count, row.meaning)
    offset = end
    for index in range(count):
        for field in fields:
            for piece in _pieces(data, offset, field, version, f"{path}[{index}]."):
                yield piece
                offset = piece.offset + piece.size


def _meaning(row: Field, value: Any) -> str:
    """The row's line, with the name of the number where it has one."""
    return _named(row.name, value, row.meaning)


def _named(field: str, value: Any, meaning: str) -> str:
    # The value of an unread key may be anything that msgpack makes, for example an empty list.
    name = _NAMES.get((field, value)) if type(value) is int else None
    return f"{name}: {meaning}" if name else meaning


_NAMES: dict[tuple[str, Any], str] = {
    ("offset_sum", RUNNING): "running",
    ("offset_sum", UNKNOWN_OFFSET_SUM): "unknown offsets",
    ("next_rebalance_ms", NO_REBALANCE): "never",
} | {("error_code", code.value): code.name for code in AssignorError}
