"""Serialisers of keys and values, by the name that Kafka Streams has for a pair of them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Serde(Generic[_Value]):
    """A serialiser with its deserialiser.

    Attributes:
        encode: value -> bytes; equal keys have to become equal bytes.
        decode: bytes -> value.
    """

    encode: Callable[[_Value], bytes]
    decode: Callable[[bytes], _Value]


def _same(value: bytes) -> bytes:
    return value


def _json_bytes(value: Any) -> bytes:
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    ).encode()


BYTES: Final[Serde[bytes]] = Serde(_same, _same)
"""Bytes as they are."""
TEXT: Final[Serde[str]] = Serde(str.encode, bytes.decode)
"""Text in UTF-8."""
JSON: Final[Serde[Any]] = Serde(_json_bytes, json.loads)
"""JSON in UTF-8, with sorted keys and without blanks."""
