"""Serialisers of keys and values, by the name that Kafka Streams has for a pair of them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from assignor.stores import StoreError
from encoding import shown

_Value = TypeVar("_Value")

_SHOWN: Final = 80  # characters of a value in a message


@dataclass(frozen=True, slots=True)
class Serde(Generic[_Value]):
    """A serialiser with its deserialiser.

    Attributes:
        encode: value -> bytes; equal keys have to become equal bytes.
        decode: bytes -> value.
        name: for messages: the name, and what it takes.
    """

    encode: Callable[[_Value], bytes]
    decode: Callable[[bytes], _Value]
    name: str = "its own serialiser"

    def encoded(self, value: _Value, *, what: str) -> bytes:
        """Return the bytes of a value.

        Args:
            value: to encode.
            what: of a store the value is, for messages, such as "key of store 'counts'".

        Raises:
            TypeError, ValueError: the serialiser does not take the value.
        """
        try:
            found: object = self.encode(value)
        except (TypeError, ValueError, AttributeError) as error:
            refusal = ValueError if isinstance(error, ValueError) else TypeError
            raise refusal(f"{_given(value, what)}, which {self.name} refuses: {error}") from error
        if not isinstance(found, bytes):
            raise TypeError(f"{_given(value, what)}, of which {self.name} makes no bytes")
        return found

    def decoded(self, data: bytes, *, what: str) -> _Value:
        """Return the value of bytes.

        Raises:
            StoreError: they are no value of this serialiser.
        """
        try:
            return self.decode(data)
        except (TypeError, ValueError, LookupError) as error:
            raise StoreError(
                f"{what} is {shown(repr(data), limit=_SHOWN)}, which {self.name} cannot read "
                f"({error}); was it written with another serialiser?"
            ) from error


def _given(value: object, what: str) -> str:
    return f"{what} is {shown(repr(value), limit=_SHOWN)}, of type {type(value).__name__}"


def _same(value: bytes) -> bytes:
    return value


def _json_bytes(value: Any) -> bytes:
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
    ).encode()


BYTES: Final[Serde[bytes]] = Serde(_same, _same, "BYTES (for bytes)")
"""Bytes as they are."""
TEXT: Final[Serde[str]] = Serde(str.encode, bytes.decode, "TEXT (for str)")
"""Text in UTF-8."""
JSON: Final[Serde[Any]] = Serde(_json_bytes, json.loads, "JSON (for what json.dumps writes)")
"""JSON in UTF-8, with sorted keys and without blanks."""
