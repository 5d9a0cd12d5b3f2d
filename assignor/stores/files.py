"""Files that are whole or not there: sealed with a checksum, replaced at once, surely on the disk.

```
8 bytes magic | uint64 length of the body | body | 16 bytes BLAKE2b of all before
```
A reader sees the old file or the new one, whatever dies when; a file that was cut, mixed up or
changed is refused with a reason.
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
    """The bytes of a file.

    Args:
        magic: 8 bytes that say what it is.
        body: its content.
    """
    data = magic + _LENGTH.pack(len(body)) + body
    return data + blake2b(data, digest_size=_SEAL).digest()


def unseal(magic: bytes, data: bytes, *, name: str) -> bytes:
    """The body of a file.

    Args:
        magic: what it has to be.
        data: all its bytes.
        name: for messages.

    Raises:
        StoreError: another kind of file, cut off, or changed.
    """
    if data[:8] != magic:
        raise StoreError(f"{name} is no such file: it starts with {data[:8]!r}, not {magic!r}")
    if len(data) < _HEAD + _SEAL:
        raise StoreError(f"{name} is cut off after {len(data)} bytes; it is not used")
    [length] = _LENGTH.unpack_from(data, 8)
    if len(data) != _HEAD + length + _SEAL:
        raise StoreError(
            f"{name} has {len(data)} bytes, {_HEAD + length + _SEAL} were written; it is not used"
        )
    if blake2b(data[:-_SEAL], digest_size=_SEAL).digest() != data[-_SEAL:]:
        raise StoreError(f"the checksum of {name} is wrong; it is not used")
    return data[_HEAD:-_SEAL]


def write_sealed(path: Path, magic: bytes, body: bytes) -> None:
    """Replace a file at once; when this returns, it is on the disk.

    Raises:
        StoreError: the disk refused.
    """
    replace_file(path, seal(magic, body))


def unseal_any(magics: Mapping[int, bytes], data: bytes, *, name: str) -> tuple[int, bytes]:
    """The format of a file and its body.

    Args:
        magics: magic by format; the last one is asked for where none fits.
        data: all its bytes.
        name: for messages.

    Raises:
        StoreError: as of `unseal`.
    """
    found = next((number for number in magics if magics[number] == data[:8]), max(magics))
    return found, unseal(magics[found], data, name=name)


def read_sealed_any(
    path: Path, magics: Mapping[int, bytes], *, limit: int
) -> tuple[int, bytes] | None:
    """The format and the body of a file of any known format, or None where there is none.

    Raises:
        StoreError: as of `read_sealed`.
    """
    data = read_limited(path, limit=limit)
    return None if data is None else unseal_any(magics, data, name=str(path))


def read_sealed(path: Path, magic: bytes, *, limit: int) -> bytes | None:
    """The body of a file, or None where there is none.

    Args:
        path: where.
        magic: what it has to be.
        limit: bytes that are read at most.

    Raises:
        StoreError: it is too large, broken, or the disk refused.
    """
    data = read_limited(path, limit=limit)
    return None if data is None else unseal(magic, data, name=str(path))
