"""The one error of all stores, and the boundary that turns whatever a reader raises into it."""

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
"""What code that takes decoded values apart may raise."""


class StoreError(RebalanceError):
    """A stored file is missing, broken, or cannot be written; the message says which and why."""


@contextmanager
def understood(name: str, *, problem: str, remedy: str) -> Iterator[None]:
    """Turn every error of reading a file's content into one `StoreError`.

    Every reader of a persisted format takes its bytes apart within this context, so that no
    content, however it was damaged, raises anything else.

    Args:
        name: of the file, for messages.
        problem: what the file fails to be, as "names no process".
        remedy: what to do about it.

    Raises:
        StoreError: what was raised within, with name, reason and remedy.
    """
    try:
        yield
    except StoreError as error:
        told = str(error)
        raise StoreError(told if remedy in told else f"{told}; {remedy}") from error
    except _MALFORMED as error:
        reason = shown(error if str(error) else type(error).__name__)
        raise StoreError(f"{name} {problem} ({reason}); {remedy}") from error
