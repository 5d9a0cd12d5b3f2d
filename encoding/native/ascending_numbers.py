"""Ascending numbers on the wire: gaps or a bitmap, whichever is smaller.

A few numbers are faster in plain Python, many in numpy; both write the same bytes, and what plain
Python finds faulty it leaves to the other, which says why.
"""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from encoding.native.unsigned_columns import WIDEST, decode_words, encode_words
from encoding.primitives import FEW, WireFault

__all__ = [
    "BITMAP",
    "Numbers",
    "bits_of",
    "decode_few_numbers",
    "decode_numbers",
    "encode_few_numbers",
    "encode_numbers",
]

Numbers = npt.NDArray[np.int32]
BITMAP = bytes((WIDEST + 1,))
"""Coding of a bitmap, where gaps have the coding of their words."""

_FEW_BITS = 64  # of a bitmap, that plain Python still walks faster


def encode_numbers(numbers: Numbers) -> bytes:
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
    """The same for a short list, in plain Python."""
    if not numbers:
        return b""
    words = encode_words([here - last - 1 for last, here in pairwise([-1, *numbers])])
    size = numbers[-1] // 8 + 1
    if len(words) <= size + 1:
        return words
    return BITMAP + sum([1 << number for number in numbers]).to_bytes(size, "little")


def decode_numbers(data: bytes, limit: int) -> Numbers:
    """Ascending numbers below ``limit``, itself at most ``MAX_TASKS``."""
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
    """A short list in plain Python; ``None`` for none, many or faulty ones."""
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
    """One truth per bit, lowest bit first; ``count`` of them, as if zeros followed."""
    if count is not None:
        data = data.ljust((count + 7) // 8, b"\0")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=count, bitorder="little")
    return bits.view(np.bool_)


def _largest(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return int(values.max())
    return max(values, default=0)
