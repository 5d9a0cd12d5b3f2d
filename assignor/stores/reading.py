"""Reading of files and JSON with limits on size and depth.

A missing file yields None. A dangling symbolic link is an error: its target is probably on a volume
that is not mounted.
"""

import json
import math
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NoReturn

from assignor.stores.errors import StoreError

LATEST_MS: Final = 253_402_300_799_000
"""Greatest time that a file may contain, in milliseconds since 1970: the end of the year 9999."""

_DEPTH: Final = 16
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def read_limited(path: Path, *, limit: int) -> bytes | None:
    """Return all bytes of a file; None if it does not exist.

    Args:
        path: path of the file.
        limit: most bytes that are read.

    Raises:
        StoreError: the file is larger, is not a regular file, is a dangling symbolic link, or
            cannot be read.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe waits for its other end.
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise StoreError(f"{path} is not a regular file; remove it, or choose another path")
            if found.st_size > limit:
                raise StoreError(
                    f"{path} has {found.st_size} bytes; the limit is {limit}; it is not used"
                )
            # read(limit) would allocate `limit` bytes. Bytes appended meanwhile are read next time.
            return file.read(found.st_size)
    except FileNotFoundError as error:
        check_links(path, error)
        return None
    except IsADirectoryError as error:
        raise StoreError(f"{path} is a directory, not a regular file; remove it") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def check_links(path: Path, cause: OSError | None = None) -> None:
    """Check that no part of a path is a dangling symbolic link.

    Raises:
        StoreError: a part is a dangling link; the message names the link and its target.
    """
    for part in (path, *path.parents):
        if part.is_symlink() and not part.exists():
            raise StoreError(
                f"{part} is a symbolic link to {part.readlink()}, which does not exist; mount or"
                " restore the target, or remove the link to start without it"
            ) from cause


def check_no_link(path: Path) -> None:
    """Check that a path is no symbolic link: one that was planted would lead a writer elsewhere.

    Directories above it may be links.

    Raises:
        StoreError: it is a link; the message names its target.
    """
    if path.is_symlink():
        raise StoreError(
            f"{path} is a symbolic link to {path.readlink()}, and nothing is written through a link"
            " here; remove it, or make a directory above it the link"
        )


def strict_json(data: bytes) -> Any:
    """Return the value of a JSON text, read strictly.

    Raises:
        ValueError: the text is not JSON, has NaN or an infinity, repeats a key, or is nested deeper
            than 16 lists and objects.
    """
    given = data.decode("utf-8")
    depth = 0
    for token in _TOKEN.finditer(given):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > _DEPTH:
            raise ValueError(f"nested deeper than {_DEPTH} lists and objects")
    return json.loads(
        given, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_unique
    )


def whole_number(value: Any, *, what: str, most: int = (1 << 63) - 1) -> int:
    """Return a decoded value, which must be an integer from 0 to `most`.

    Raises:
        ValueError: the value is not such an integer.
    """
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{what} is {value!r:.40}, not an integer from 0 to {most}")
    return value


def text(value: Any) -> str:
    """Return a decoded value, which must be a string.

    Raises:
        TypeError: the value is not a string.
    """
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is not a string")
    return value


def _no_number(given: str) -> NoReturn:
    raise ValueError(f"{given} is not a number in JSON")


def _finite(given: str) -> float:
    number = float(given)
    if not math.isfinite(number):
        raise ValueError(f"{given:.40} is too large a number")
    return number


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"key {key!r:.40} occurs twice")
        found[key] = value
    return found
