"""A mutator that knows how native blobs are made.

Blind mutations rarely leave a msgpack map whole, and never a trailer whose length fits. Here the
map is taken apart, one key is changed, dropped, added or moved, and everything around it is made to
fit again. Half of all mutations are the fuzzer's own.
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

    return mutated(data, max_size, Random(seed), atheris.Mutate)  # noqa: S311 dice of a fuzzer


def mutated(
    data: bytes, max_size: int, dice: Random, blind: Callable[[bytes, int], bytes]
) -> bytes:
    """As `mutate`, with the dice and the fuzzer's own mutator given."""
    place = _map_in(data)
    pairs = None if place is None or dice.random() < 0.5 else _pairs(data[place + _HEADER :])  # noqa: PLR2004 half
    if place is None or pairs is None:
        return blind(data, max_size)
    head, versions = data[:place], data[place : place + _HEADER]
    if dice.random() < 0.1:  # noqa: PLR2004 now and then
        versions = b"".join(dice.choice(_VERSIONS).to_bytes(4) for _ in range(2))
    _change(pairs, dice, blind)
    body = versions + _packed(pairs)
    if head.endswith(MAGIC, 0, -4):
        head = head[:-4] + len(body).to_bytes(4)
    return (head + body)[:max_size]


def _map_in(data: bytes) -> int | None:
    """Where the header of a native blob begins: behind the target's byte or behind a trailer's."""
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
    return found if isinstance(found, list) and all(isinstance(one, tuple) for one in found) else []


def _change(pairs: list[Any], dice: Random, blind: Callable[[bytes, int], bytes]) -> None:
    index = dice.randrange(len(pairs)) if pairs else 0
    match dice.randrange(6) if pairs else 5:
        case 0:
            del pairs[index]
        case 1:
            pairs[index] = (dice.randrange(_KEYS_MAX), pairs[index][1])
        case 2 | 3 | 4:
            pairs[index] = (pairs[index][0], _value(pairs[index][1], dice, blind))
        case _:
            pairs.insert(index, (dice.randrange(_KEYS_MAX), _value(b"\0", dice, blind)))


def _value(value: Any, dice: Random, blind: Callable[[bytes, int], bytes]) -> Any:
    if isinstance(value, bytes) and dice.random() < 0.9:  # noqa: PLR2004 mostly
        return blind(value or b"\0", 512)
    return dice.choice(_ODD)


def _packed(pairs: list[Any]) -> bytes:
    """A map of these pairs, repeated keys and all."""
    packer = msgpack.Packer()
    parts = [packer.pack_map_header(len(pairs))]
    for key, value in pairs:
        try:
            parts += [packer.pack(key), packer.pack(value)]
        except (TypeError, ValueError, OverflowError):  # what was unpacked from nested garbage
            parts += [packer.pack(0), packer.pack(None)]
    return b"".join(parts)
