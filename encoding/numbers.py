"""Ascending numbers on the wire: gaps or a bitmap, whichever is smaller.

A few numbers are faster in plain Python, many in numpy; both write the same bytes, and what plain
Python finds faulty it leaves to the other, which says why.
"""

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from encoding.varints import FEW, WireFault, decode_varints, encode_varints

__all__ = [
    "Numbers",
    "bits_of",
    "decode_few_numbers",
    "decode_numbers",
    "encode_few_numbers",
    "encode_numbers",
]

Numbers = npt.NDArray[np.int32]
_GAPS, _BITMAP = b"\0", b"\1"
_FEW_BITS = 64  # of a bitmap, that plain Python still walks faster


def encode_numbers(numbers: Numbers) -> bytes:
    """Ascending numbers from 0 on as gaps or as a bitmap, whichever is smaller."""
    if len(numbers) <= FEW:
        return encode_few_numbers(numbers.tolist())
    gaps = encode_varints((np.diff(numbers, prepend=-1) - 1).astype(np.uint64))
    last = int(numbers[-1])
    if len(gaps) <= last // 8 + 1:
        return _GAPS + gaps
    bits = np.zeros(last + 1, np.bool_)
    bits[numbers] = True
    return _BITMAP + np.packbits(bits, bitorder="little").tobytes()


def encode_few_numbers(numbers: list[int]) -> bytes:
    """The same for a short list, in plain Python."""
    if not numbers:
        return b""
    gaps = encode_varints([here - last - 1 for last, here in pairwise([-1, *numbers])])
    size = numbers[-1] // 8 + 1
    if len(gaps) <= size:
        return _GAPS + gaps
    return _BITMAP + sum(1 << number for number in numbers).to_bytes(size, "little")


def decode_numbers(data: bytes, limit: int) -> Numbers:
    """Ascending numbers below ``limit``, itself at most ``MAX_TASKS``."""
    if not data:
        return np.empty(0, np.int32)
    coding, body = data[:1], data[1:]
    if coding == _GAPS:
        gaps = decode_varints(body)
        if len(gaps) > limit or _largest(gaps) >= limit:
            raise WireFault(f"a number is above the last one, {limit - 1}")
        far = np.cumsum(np.asarray(gaps, np.int64) + 1) - 1  # their sum may pass 32 bits
        if len(far) and far[-1] >= limit:
            raise WireFault(f"number {far[-1]} is above the last one, {limit - 1}")
        return far.astype(np.int32)
    if coding != _BITMAP:
        raise WireFault(f"numbers in coding {coding[0]}; 0 and 1 are known")
    if len(body) > (limit + 7) // 8:
        raise WireFault(f"a bitmap of {len(body)} bytes for {limit} numbers")
    numbers = np.flatnonzero(bits_of(body)).astype(np.int32)
    if len(numbers) and numbers[-1] >= limit:
        raise WireFault(f"number {numbers[-1]} is above the last one, {limit - 1}")
    return numbers


def decode_few_numbers(data: bytes, limit: int) -> list[int] | None:
    """A short list in plain Python; ``None`` for none, many or faulty ones."""
    if data[:1] == _GAPS:
        numbers = list(accumulate(map(int, decode_varints(data[1:])), lambda a, b: a + b + 1))
    elif data[:1] == _BITMAP and len(data) <= _FEW_BITS // 8:
        bits = int.from_bytes(data[1:], "little")
        numbers = [number for number in range(bits.bit_length()) if bits >> number & 1]
    else:
        return None
    return numbers if numbers and numbers[-1] < limit else None


def bits_of(data: bytes) -> npt.NDArray[np.bool_]:
    """One truth per bit, lowest bit first."""
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").view(np.bool_)


def _largest(values: Any) -> int:
    if isinstance(values, np.ndarray):
        return int(values.max())
    return max(values, default=0)
