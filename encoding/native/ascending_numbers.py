"""Ascending numbers on the wire: gaps or a bitmap, whichever is smaller.

Plain Python handles short lists, numpy long ones; both write the same bytes. If plain Python finds
invalid input, it leaves it to the numpy reader, which raises the error.
"""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from encoding.native.unsigned_columns import WIDEST, decode_words, encode_words
from encoding.primitives import FEW, WireFault

Int32Column = npt.NDArray[np.int32]
BITMAP = bytes((WIDEST + 1,))
"""First byte of a bitmap; gaps begin with the first byte of ``encode_words`` instead."""

_FEW_BITS = 64  # size of a bitmap that plain Python reads faster


def encode_numbers(numbers: Int32Column) -> bytes:
    """Ascending numbers from 0 on as gaps or as a bitmap, whichever is smaller."""
    if len(numbers) <= FEW:
        return encode_few_numbers(numbers.tolist())
    gaps = numbers.astype(np.uint64)
    gaps[1:] -= gaps[:-1] + np.uint64(1)
    words = encode_words(gaps)
    last = int(numbers[-1])
    if len(words) <= last // 8 + 2:
        return words
    bits = np.zeros(last + 1, np.bool_)
    bits[numbers] = True
    return BITMAP + np.packbits(bits, bitorder="little").tobytes()


def encode_few_numbers(numbers: list[int]) -> bytes:
    """As ``encode_numbers``, for a short list in plain Python."""
    if not numbers:
        return b""
    words = encode_words([number - last - 1 for last, number in pairwise([-1, *numbers])])
    size = numbers[-1] // 8 + 1
    if len(words) <= size + 1:
        return words
    return BITMAP + sum([1 << number for number in numbers]).to_bytes(size, "little")


def decode_numbers(data: bytes, limit: int) -> Int32Column:
    """The ascending numbers in these bytes, all below ``limit`` (at most ``MAX_TASKS``).

    Raises:
        WireFault: a number is not below the limit, or the bytes are invalid.
    """
    if not data:
        return np.empty(0, np.int32)
    if data[:1] != BITMAP:
        gaps = decode_words(data)
        if len(gaps) > limit or _largest(gaps) >= limit:
            raise WireFault(f"a number is above the last one, {limit - 1}")
        numbers = np.asarray(gaps, np.int64)
        numbers += 1
        numbers = np.cumsum(numbers)  # may pass 32 bits
        numbers -= 1
    elif len(data) - 1 > (limit + 7) // 8:
        raise WireFault(f"a bitmap of {len(data) - 1} bytes for {limit} numbers")
    else:
        numbers = np.flatnonzero(bits_of(data[1:]))
    if len(numbers) and numbers[-1] >= limit:
        raise WireFault(f"number {numbers[-1]} is above the last one, {limit - 1}")
    return numbers.astype(np.int32)


def decode_few_numbers(data: bytes, limit: int) -> list[int] | None:
    """As ``decode_numbers``, for a short list; ``None`` if it is empty, long or invalid."""
    if data[:1] != BITMAP:
        gaps = decode_words(data)
        if not isinstance(gaps, list):
            return None
        numbers = list(accumulate(gaps, lambda last, gap: last + gap + 1))
    elif len(data) <= _FEW_BITS // 8:
        bits = int.from_bytes(data[1:], "little")
        numbers = [number for number in range(bits.bit_length()) if bits >> number & 1]
    else:
        return None
    return numbers if numbers and numbers[-1] < limit else None


def bits_of(data: bytes, count: int | None = None) -> npt.NDArray[np.bool_]:
    """The bits as booleans, lowest bit first; with ``count``, so many, padded with False."""
    if count is not None:
        data = data.ljust((count + 7) // 8, b"\0")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little")
    return bits.view(np.bool_)


def _largest(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return int(values.max())
    return max(values, default=0)
