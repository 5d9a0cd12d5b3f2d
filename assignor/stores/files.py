"""Sealed files: protected by a checksum, replaced atomically and durably.

```
8 bytes magic | uint64 length of the body | body | 16 bytes BLAKE2b of all before
```
After a crash a reader sees the old file or the new one. A truncated, replaced or changed file is
rejected, and the message says why.
"""

import struct
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from assignor.stores.errors import StoreError
from assignor.stores.reading import read_limited
from assignor.stores.replacing import replace_file

_LENGTH = struct.Struct(">Q")
_SEAL = 16
_HEAD = 8 + _LENGTH.size


def seal(magic: bytes, body: bytes) -> bytes:
    """Return the bytes of a sealed file.

    Args:
        magic: 8 bytes that identify the format.
        body: the content.
    """
    data = magic + _LENGTH.pack(len(body)) + body
    return data + blake2b(data, digest_size=_SEAL).digest()


def unseal(magic: bytes, data: bytes, *, name: str) -> bytes:
    """Return the body of a sealed file.

    Args:
        magic: the expected magic.
        data: all bytes of the file.
        name: path of the file, for messages.

    Raises:
        StoreError: the file has another format, is truncated, or was changed.
    """
    if data[:8] != magic:
        raise StoreError(
            f"{name} has another format: it starts with {data[:8]!r}, expected {magic!r}"
        )
    if len(data) < _HEAD + _SEAL:
        raise StoreError(f"{name} is truncated after {len(data)} bytes; it is not used")
    [length] = _LENGTH.unpack_from(data, 8)
    if len(data) != _HEAD + length + _SEAL:
        raise StoreError(
            f"{name} has {len(data)} bytes, but {_HEAD + length + _SEAL} were written; it is not "
            "used"
        )
    if blake2b(data[:-_SEAL], digest_size=_SEAL).digest() != data[-_SEAL:]:
        raise StoreError(f"the checksum of {name} is wrong; it is not used")
    return data[_HEAD:-_SEAL]


def write_sealed(path: Path, magic: bytes, body: bytes) -> None:
    """Write a sealed file, atomically and durably.

    Raises:
        StoreError: the file cannot be written.
    """
    replace_file(path, seal(magic, body))


def unseal_any(magics: Mapping[int, bytes], data: bytes, *, name: str) -> tuple[int, bytes]:
    """Return the format and the body of a sealed file of any known format.

    Args:
        magics: format -> magic; if none matches, the message names the newest.
        data: all bytes of the file.
        name: path of the file, for messages.

    Raises:
        StoreError: as in `unseal`.
    """
    found = next((number for number in magics if magics[number] == data[:8]), max(magics))
    return found, unseal(magics[found], data, name=name)


def read_sealed_any(
    path: Path, magics: Mapping[int, bytes], *, limit: int
) -> tuple[int, bytes] | None:
    """Return the format and the body of a sealed file; None if the file does not exist.

    Raises:
        StoreError: as in `read_sealed`.
    """
    data = read_limited(path, limit=limit)
    return None if data is None else unseal_any(magics, data, name=str(path))


def read_sealed(path: Path, magic: bytes, *, limit: int) -> bytes | None:
    """Return the body of a sealed file; None if the file does not exist.

    Args:
        path: path of the file.
        magic: the expected magic.
        limit: most bytes that are read.

    Raises:
        StoreError: the file is too large, is damaged, or cannot be read.
    """
    data = read_limited(path, limit=limit)
    return None if data is None else unseal(magic, data, name=str(path))
