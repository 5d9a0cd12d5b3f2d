"""The size of compressed records, counted in small pieces and up to a limit.

A batch of 300 KB may decompress to hundreds of megabytes. Kafka validates a compressed batch as a
stream when it is produced. Here the size is counted in the same way, and a batch above the limit is
refused. A stored batch can therefore be decompressed as a whole.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import chain

_PIECE = 1 << 16
_GZIP_WINDOW = 31
_XERIAL = b"\x82SNAPPY\0"
_XERIAL_HEAD = 16
_BLOCK = struct.Struct(">i")
_VARINT_MAX = 5


class TooLargeError(Exception):
    """The records are larger than the limit."""


class CorruptError(Exception):
    """The bytes cannot be decompressed."""


def uncompressed_size(codec: int, data: bytes, limit: int) -> int | None:
    """Return the size in bytes of the records of a batch.

    Args:
        codec: codec of the batch's attributes, 0 to 4 (none, gzip, snappy, lz4, zstd).
        data: the records as received.
        limit: maximum size in bytes.

    Returns:
        None if the codec is not installed.

    Raises:
        TooLargeError: the records have more than `limit` bytes.
        CorruptError: the records cannot be decompressed.
        KeyError: the codec is unknown.
    """
    size = 0
    for piece in _SIZES[codec](data):
        if piece is None:
            return None
        size += piece
        if size > limit:
            raise TooLargeError(f"more than {limit} bytes after decompression")
    return size


def _plain(data: bytes) -> Iterator[int]:
    yield len(data)


def _gzip(data: bytes) -> Iterator[int]:
    while True:
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            while not member.eof:
                piece = member.decompress(data, _PIECE)
                data = member.unconsumed_tail
                if not piece and not data and not member.eof:
                    raise CorruptError("the gzip stream is cut off")
                yield len(piece)
        except zlib.error as error:
            raise CorruptError(f"no gzip stream ({error})") from error
        data = member.unused_data.lstrip(b"\0")
        if not data:
            return


def _snappy(data: bytes) -> Iterator[int]:
    """Yield the sizes in the headers of the blocks; a decompressor allocates no more."""
    if not data.startswith(_XERIAL):
        yield _claimed(data)
        return
    at = _XERIAL_HEAD
    while at < len(data):
        if len(data) - at < _BLOCK.size:
            raise CorruptError("the snappy stream is cut off")
        [length] = _BLOCK.unpack_from(data, at)
        at += _BLOCK.size
        if not 0 < length <= len(data) - at:
            raise CorruptError(f"a snappy block of {length} bytes, but {len(data) - at} are left")
        yield _claimed(data[at : at + length])
        at += length


def _claimed(block: bytes) -> int:
    size = 0
    for index, byte in enumerate(block[:_VARINT_MAX]):
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:  # noqa: PLR2004 the bit that says that another byte follows
            return size
    raise CorruptError("a snappy block without a size")


def _lz4(data: bytes) -> Iterator[int | None]:
    if find_spec("lz4") is None:
        yield None
        return
    decompressor = import_module("lz4.frame").LZ4FrameDecompressor()
    for given in chain([data], _empty()):
        try:
            piece = decompressor.decompress(given, max_length=_PIECE)
        except RuntimeError as error:
            raise CorruptError(f"no lz4 frame ({error})") from error
        yield len(piece)
        if decompressor.eof:
            return
        if not piece and decompressor.needs_input:
            raise CorruptError("the lz4 frame is cut off")


def _empty() -> Iterator[bytes]:
    while True:
        yield b""


def _zstd(data: bytes) -> Iterator[int | None]:
    if find_spec("zstandard") is None:
        yield None
        return
    zstandard = import_module("zstandard")
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as reader:
            while piece := reader.read(_PIECE):
                yield len(piece)
    except zstandard.ZstdError as error:
        raise CorruptError(f"no zstd frame ({error})") from error


_SIZES: dict[int, Callable[[bytes], Iterator[int | None]]] = {
    0: _plain,
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}
