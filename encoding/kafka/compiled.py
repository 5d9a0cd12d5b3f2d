"""Readers and writers of every schema type, built once per version at import.

``reader`` and ``writer`` turn one row of ``schema`` into a closure over precomputed structs and
numpy record types. Wire values are plain: numbers, text, and per array either one numpy record
array (all elements have one size) or a list of tuples. ``subscription`` and ``assignment`` give
them a meaning.

For any bytes, a reader returns a value or raises ``DecodeError``. It checks counts against the
remaining bytes before it allocates memory; time and memory are linear in the input.
"""

from collections.abc import Callable, Mapping
from itertools import starmap
from operator import attrgetter
from struct import Struct
from struct import error as StructError  # noqa: N812 it is a class
from typing import Any, TypeVar
from uuid import UUID

import numpy as np

from encoding.kafka.schema import STRUCTURES, Field, rows_of
from encoding.primitives import (
    DecodeError,
    EncodeError,
    decode_java_utf,
    decode_utf8,
    decode_utf16,
    encode_java_utf,
    encode_utf8,
    encode_utf16,
)

Read = Callable[[bytes, int], tuple[Any, int]]
Write = Callable[[Any, list[Any]], None]
_Value = TypeVar("_Value")

_INTEGERS = {"int8": "b", "int32": "i", "int64": "q"}
_COUNT = Struct(">i")
_UUID_SIZE = 16
# type -> (struct code of the length, bytes per unit, length that stands for null or None)
_TEXTS: dict[str, tuple[str, int, int | None]] = {
    "bytes": ("i", 1, None),
    "string": ("h", 1, -1),
    "java_utf": ("H", 1, None),
    "utf16": ("i", 2, 0),
}
_DECODERS: dict[str, Callable[[bytes], str | None]] = {
    "bytes": decode_utf8,
    "string": decode_utf8,
    "java_utf": decode_java_utf,
    "utf16": decode_utf16,
}
_ENCODERS: dict[str, Callable[[str], bytes]] = {
    "bytes": encode_utf8,
    "string": encode_utf8,
    "java_utf": encode_java_utf,
    "utf16": encode_utf16,
}


def array_of(type_: str) -> str | None:
    """Name of the structure that an array type repeats; ``None`` for other types."""
    return type_[2:] if type_.startswith("[]") else None


def minimal_size(type_: str) -> int:
    """The fewest bytes that a value of this type takes; never 0."""
    if type_ in _INTEGERS:
        return Struct(">" + _INTEGERS[type_]).size
    if type_ in _TEXTS:
        return Struct(">" + _TEXTS[type_][0]).size
    return _UUID_SIZE if type_ == "uuid" else _COUNT.size


def record_dtype(name: str, version: int) -> np.dtype[Any] | None:
    """Record type of a structure whose elements all have one size, else ``None``.

    A nullable text is allowed as the last field: the record holds its length, for the usual case
    that all these texts are null.
    """
    fields = tuple(rows_of(STRUCTURES[name], version))
    columns = []
    for field in fields:
        if field.type in _INTEGERS:
            columns.append((field.name, np.dtype(">" + _INTEGERS[field.type])))
        elif field is fields[-1] and field.type in _TEXTS and _TEXTS[field.type][2] is not None:
            columns.append((field.name, np.dtype(">" + _TEXTS[field.type][0])))
        else:
            return None
    return np.dtype(columns)


def reader(field: Field, version: int, path: str = "") -> Read:
    """Reader of one row: ``read(data, offset) -> (wire value, end offset)``.

    Version 0 means "not read yet" in errors.
    """
    path = f"{path}{field.name}"
    if field.type in _INTEGERS:
        return _integer_reader(Struct(">" + _INTEGERS[field.type]), version, path)
    if field.type in _TEXTS:
        return _text_reader(field.type, version, path)
    if field.type == "uuid":
        return _uuid_reader(version, path)
    return _array_reader(field.type[2:], version, path)


def writer(field: Field, version: int, path: str = "") -> Write:
    """Writer of one row: ``write(wire value, parts)`` appends its bytes, or ``EncodeError``."""
    path = f"{path}{field.name}"
    if field.type in _INTEGERS:
        return _integer_writer(field.type, version, path)
    if field.type in _TEXTS:
        return _text_writer(field.type, version, path)
    if field.type == "uuid":
        return _uuid_writer(version, path)
    return _array_writer(field.type[2:], version, path)


def readers_of(rows: tuple[Field, ...], version: int, kind: str) -> tuple[tuple[str, Read], ...]:
    """(name, reader) of all fields of a blob except its version, which is read first."""
    return tuple(
        (row.name, reader(row, version, kind))
        for row in rows_of(rows, version)
        if row.name != "version"
    )


def writers_of(
    rows: tuple[Field, ...],
    version: int,
    meanings: Mapping[tuple[str, str], Callable[[_Value], Any]],
) -> tuple[tuple[Callable[[_Value], Any], Write], ...]:
    """(function from the blob's value to a field's wire value, writer) for each field of a blob.

    Args:
        rows: schema rows of the blob.
        version: selects the rows.
        meanings: (field, type) -> that function; by default the attribute named like the field.
            The type is part of the key because the type of a field depends on the version.
    """
    return tuple(
        (meanings.get((row.name, row.type)) or attrgetter(row.name), writer(row, version))
        for row in rows_of(rows, version)
    )


def _short(path: str, needed: int, data: bytes, offset: int, version: int) -> DecodeError:
    left = len(data) - offset
    if not version and offset >= _COUNT.size:  # made for any version; the blob begins with it
        version = _COUNT.unpack_from(data)[0]
    what = f"{path} needs {needed} bytes, {left} are left; the peer's blob is cut off"
    return DecodeError(what, offset=offset, version=version or None, available=len(data))


def _integer_reader(struct: Struct, version: int, path: str) -> Read:
    unpack, size = struct.unpack_from, struct.size

    def read(data: bytes, offset: int) -> tuple[int, int]:
        end = offset + size
        if end > len(data):
            raise _short(path, size, data, offset, version)
        return unpack(data, offset)[0], end

    return read


def _integer_writer(type_: str, version: int, path: str) -> Write:
    pack = Struct(">" + _INTEGERS[type_]).pack

    def write(value: Any, out: list[Any]) -> None:
        try:
            out.append(pack(value))
        except StructError:
            raise EncodeError(path, value, version, f"give an integer that fits {type_}") from None

    return write


def _uuid_reader(version: int, path: str) -> Read:
    def read(data: bytes, offset: int) -> tuple[UUID, int]:
        end = offset + _UUID_SIZE
        if end > len(data):
            raise _short(path, _UUID_SIZE, data, offset, version)
        return UUID(bytes=data[offset:end]), end

    return read


def _uuid_writer(version: int, path: str) -> Write:
    def write(value: Any, out: list[Any]) -> None:
        if not isinstance(value, UUID):
            raise EncodeError(path, value, version, "give a uuid.UUID")
        out.append(value.bytes)

    return write


def _text_reader(type_: str, version: int, path: str) -> Read:
    code, unit, null = _TEXTS[type_]
    read_length = _integer_reader(Struct(">" + code), version, path)
    decode = _DECODERS[type_]

    def read(data: bytes, offset: int) -> tuple[str | None, int]:
        length, start = read_length(data, offset)
        if length <= 0:
            if length < 0 and null is None:
                what = f"{path} has length {length}, but it cannot be null"
                raise DecodeError(what, offset=offset, version=version or None, available=len(data))
            return ("" if length != null and length == 0 else None), start
        end = start + length * unit
        if end > len(data):
            raise _short(path, length * unit, data, start, version)
        text = decode(data[start:end])
        if text is None:
            what = f"{path} is not modified UTF-8"
            raise DecodeError(what, offset=start, version=version or None, available=len(data))
        return text, end

    return read


def _text_writer(type_: str, version: int, path: str) -> Write:
    code, unit, null = _TEXTS[type_]
    prefix = Struct(">" + code)
    limit = int(np.iinfo(np.dtype(code)).max)
    encode = _ENCODERS[type_]

    def write(value: Any, out: list[Any]) -> None:
        if value is None and null is not None:
            out.append(prefix.pack(null))
            return
        if not isinstance(value, str):
            raise EncodeError(path, value, version, "give text")
        data = encode(value)
        if len(data) > limit * unit:
            reason = f"it takes {len(data)} bytes, at most {limit * unit} fit; shorten it"
            raise EncodeError(path, value, version, reason)
        out.append(prefix.pack(len(data) // unit))
        out.append(data)

    return write


def _array_reader(name: str, version: int, path: str) -> Read:
    fields = tuple(rows_of(STRUCTURES[name], version))
    smallest = sum(minimal_size(field.type) for field in fields)
    readers = tuple(reader(field, version, f"{path}.") for field in fields)
    dtype = record_dtype(name, version)
    # If this column is null in all records, they can be used without reading texts.
    text = fields[-1].name if fields[-1].type in _TEXTS else None

    def read(data: bytes, offset: int) -> tuple[Any, int]:
        start = offset + 4
        if start > len(data):
            raise _short(f"the count of {path}", 4, data, offset, version)
        count = _COUNT.unpack_from(data, offset)[0]
        if count < 0 or count * smallest > len(data) - start:
            what = (
                f"{path} claims {count} entries of at least {smallest} bytes,"
                f" {len(data) - start} bytes are left"
            )
            raise DecodeError(what, offset=offset, version=version or None, available=len(data))
        if dtype is not None:
            records = np.frombuffer(data, dtype, count, start)
            if text is None or records[text].max(initial=0) <= 0:
                return records, start + count * dtype.itemsize
        rows = []
        for _ in range(count):
            row = []
            for read_field in readers:
                value, start = read_field(data, start)
                row.append(value)
            rows.append(tuple(row))
        return rows, start

    return read


def _array_writer(name: str, version: int, path: str) -> Write:
    fields = tuple(rows_of(STRUCTURES[name], version))
    writers = tuple(writer(field, version, f"{path}.") for field in fields)
    dtype = record_dtype(name, version)
    codes = "".join(_INTEGERS.get(field.type, "?") for field in fields)
    pack = Struct(">" + codes).pack if "?" not in codes else None

    def write(rows: Any, out: list[Any]) -> None:
        out.append(_COUNT.pack(len(rows)))
        if isinstance(rows, np.ndarray) and rows.dtype == dtype:
            out.append(rows)  # bytes.join takes the array without a copy
            return
        if pack is not None:
            try:
                out.append(b"".join(starmap(pack, rows)))
            except StructError:
                pass  # the loop below finds the invalid entry and names it
            else:
                return
        for row in rows:
            for write_field, value in zip(writers, row, strict=True):
                write_field(value, out)

    return write
