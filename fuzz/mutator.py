"""A mutator that understands the structure of native blobs.

Blind mutations rarely produce a valid msgpack map, and never a trailer with a matching length. This
mutator parses the map, changes, drops, adds or moves one key, and writes a consistent blob. Half of
all mutations are the fuzzer's own.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import msgpack

from encoding.native.schema import MAGIC, NATIVE_KINDS

__all__ = ["mutate"]

_ODD = (b"", b"\0", "", "text", None, True, False, 0, -1, 2**31, 2**63 - 1, -(2**63))
_HEADER = 8  # two numbers in front of a map
_VERSIONS = (101, 102, 103, 104, 200)
_KEYS_MAX = 1 + max(row.key for rows in NATIVE_KINDS.values() for row in rows) + 3


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """A changed input of at most `max_size` bytes; libFuzzer's signature."""
    import atheris  # noqa: PLC0415 not needed to import the package

    return mutated(data, max_size, Random(seed), atheris.Mutate)  # noqa: S311 a fuzzer


def mutated(data: bytes, max_size: int, rng: Random, blind: Callable[[bytes, int], bytes]) -> bytes:
    """As `mutate`, with a random generator and the fuzzer's own mutator `blind`."""
    place = _map_in(data)
    pairs = None if place is None or rng.random() < 0.5 else _pairs(data[place + _HEADER :])  # noqa: PLR2004 half
    if place is None or pairs is None:
        return blind(data, max_size)
    head, versions = data[:place], data[place : place + _HEADER]
    if rng.random() < 0.1:  # noqa: PLR2004 now and then
        versions = b"".join(rng.choice(_VERSIONS).to_bytes(4) for _ in range(2))
    _change(pairs, rng, blind)
    body = versions + _packed(pairs)
    if head.endswith(MAGIC, 0, -4):
        head = head[:-4] + len(body).to_bytes(4)
    return (head + body)[:max_size]


def _map_in(data: bytes) -> int | None:
    """Offset of the header of a native blob: of a trailer, or right after the target's byte."""
    trailer = data.rfind(MAGIC)
    if trailer >= 0:
        return trailer + 8
    return 1 if data[1:4] == b"\0\0\0" and len(data) > 1 + _HEADER and data[4] > 100 else None  # noqa: PLR2004 native


def _pairs(data: bytes) -> list[Any] | None:
    try:
        found = msgpack.unpackb(data, object_pairs_hook=list, strict_map_key=False)
    except msgpack.ExtraData as extra:
        found = extra.unpacked
    except ValueError:
        return None
    return (
        found if isinstance(found, list) and all(isinstance(pair, tuple) for pair in found) else []
    )


def _change(pairs: list[Any], rng: Random, blind: Callable[[bytes, int], bytes]) -> None:
    index = rng.randrange(len(pairs)) if pairs else 0
    match rng.randrange(6) if pairs else 5:
        case 0:
            del pairs[index]
        case 1:
            pairs[index] = (rng.randrange(_KEYS_MAX), pairs[index][1])
        case 2 | 3 | 4:
            pairs[index] = (pairs[index][0], _value(pairs[index][1], rng, blind))
        case _:
            pairs.insert(index, (rng.randrange(_KEYS_MAX), _value(b"\0", rng, blind)))


def _value(value: Any, rng: Random, blind: Callable[[bytes, int], bytes]) -> Any:
    if isinstance(value, bytes) and rng.random() < 0.9:  # noqa: PLR2004 mostly
        return blind(value or b"\0", 512)
    return rng.choice(_ODD)


def _packed(pairs: list[Any]) -> bytes:
    """The msgpack map of these pairs; duplicate keys are kept."""
    packer = msgpack.Packer()
    parts = [packer.pack_map_header(len(pairs))]
    for key, value in pairs:
        try:
            parts += [packer.pack(key), packer.pack(value)]
        except (TypeError, ValueError, OverflowError):  # msgpack cannot write what it read
            parts += [packer.pack(0), packer.pack(None)]
    return b"".join(parts)
