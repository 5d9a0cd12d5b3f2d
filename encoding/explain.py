"""Every byte of a blob with its name: the walk behind ``assignor decode``.

It reads the same rows with the same readers as the codec, one leaf at a time, so what it shows is
what the codec reads. It is for people; it is linear, but much slower than decoding.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from encoding.errors import DecodeError
from encoding.model import NO_REBALANCE, RUNNING, UNKNOWN_OFFSET_SUM, AssignorError
from encoding.plan import array_of, minimal_size, reader
from encoding.schema import KINDS, KNOWN_VERSIONS, STRUCTURES, Field, rows_of

__all__ = ["Piece", "explain"]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a blob.

    Attributes:
        path: field, with the position of the element for parts of arrays (``client_tags[0].key``).
        offset: first byte. size: number of bytes; an array's own piece is its count alone.
        type: wire type, as in the schema.
        value: integer, text, UUID or ``None``; ``bytes`` for what is not read.
        meaning: one line for people.
    """

    path: str
    offset: int
    size: int
    type: str
    value: Any
    meaning: str


def explain(kind: str, data: bytes) -> Iterator[Piece]:
    """All pieces of a blob in wire order, bytes behind the last field included.

    Args:
        kind: ``subscription`` or ``assignment``.
        data: the blob; check it with the decoder first, which is stricter in what fits together.

    Raises:
        DecodeError: at the piece that cannot be read.
    """
    data = bytes(data)
    version, offset = reader(KINDS[kind][0], 0, f"{kind} ")(data, 0)
    rows = tuple(rows_of(KINDS[kind], version)) if version in KNOWN_VERSIONS else KINDS[kind][:2]
    if version not in KNOWN_VERSIONS and kind == "assignment":
        what = f"assignment is in version {version}, which this reader does not know"
        raise DecodeError(what, offset=0, version=version, available=len(data))
    offset = 0
    for row in rows:
        for piece in _pieces(data, offset, row, version, ""):
            yield piece
            offset = piece.offset + piece.size
    if offset < len(data):
        meaning = "not read: behind the last field of this version"
        if version not in KNOWN_VERSIONS:
            meaning = "not read: only the two numbers of a future version are"
        yield Piece("trailing bytes", offset, len(data) - offset, "", data[offset:], meaning)


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
    name = _NAMES.get((row.name, value))
    return f"{name}: {row.meaning}" if name else row.meaning


_NAMES: dict[tuple[str, Any], str] = {
    ("offset_sum", RUNNING): "running",
    ("offset_sum", UNKNOWN_OFFSET_SUM): "unknown offsets",
    ("next_rebalance_ms", NO_REBALANCE): "never",
} | {("error_code", code.value): code.name for code in AssignorError}
