"""`StoreError`, and the context that converts errors of reading into it."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgpack

from encoding import RebalanceError, shown

_MALFORMED: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RebalanceError,
    RecursionError,
    TypeError,
    ValueError,
    msgpack.UnpackException,
    struct.error,
)
"""Exceptions that reading malformed content may raise."""


class StoreError(RebalanceError):
    """A stored file is missing, damaged, or cannot be written; the message names it and why."""


class LaterRelease(StoreError):
    """A stored value has a format that only a later release reads; it is not damaged."""


class ForeignFile(StoreError):
    """A state file is of another program, or another release's format; it is not damaged."""


class RecordTooLarge(StoreError):
    """A record of a changelog is larger than the broker allows; the message says what to do."""


class OutputTooLarge(StoreError):
    """A record to another topic is larger than the broker allows; the message says what to do."""


@contextmanager
def store_errors(name: str, *, problem: str, remedy: str) -> Iterator[None]:
    """Convert every error of reading a file's content into one `StoreError`.

    Every reader of a persisted format decodes within this context, so that damaged content never
    raises any other exception.

    Args:
        name: path of the file, for messages.
        problem: predicate of the message, such as "is not a valid checkpoint".
        remedy: what the operator can do about it.

    Raises:
        StoreError: the content is malformed; the message has name, reason and remedy.
    """
    try:
        yield
    except StoreError as error:
        message = str(error)
        kind = LaterRelease if isinstance(error, LaterRelease) else StoreError
        raise kind(message if remedy in message else f"{message}; {remedy}") from error
    except _MALFORMED as error:
        reason = shown(error if str(error) else type(error).__name__)
        raise StoreError(f"{name} {problem} ({reason}); {remedy}") from error
