"""The JSON object of a line of a problem file."""

import json
from collections import Counter
from typing import Any

from assignor.problems.values import ProblemError
from encoding import shown

_BYTE_ORDER_MARK = "\ufeff"


class RepeatedKey(Exception):
    """A key is twice in an object; `json` would silently keep the last value."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object of its members, for `object_pairs_hook`.

    Raises:
        RepeatedKey: a key is given twice.
    """
    data = dict(pairs)
    if len(data) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise RepeatedKey(next(key for key, count in counts.items() if count > 1))
    return data


def line_text(line: bytes, *, number: int = 1) -> str:
    """The text of a line, without the byte order mark that some programs begin a file with.

    Raises:
        ProblemError: the line is not UTF-8; names the first such byte, from 1.
    """
    try:
        return line.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise ProblemError(
            f"line {number}, byte {error.start + 1}: 0x{byte:02x} is not UTF-8; write it as UTF-8"
        ) from None


def parse_problem(line: str | bytes, *, number: int = 1) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        ProblemError: bytes that are not UTF-8, broken JSON (line and column), a key twice in an
            object, or not an object.
    """
    if isinstance(line, bytes):
        line = line_text(line, number=number)
    try:
        data = json.loads(line, object_pairs_hook=unique_keys)
    except RepeatedKey as error:
        raise ProblemError(
            f"line {number}: key {shown(error)} is given twice in one object; give it once"
        ) from None
    except ValueError as error:
        count = sum(text.startswith("{") for text in line.splitlines())
        if count > 1:
            raise ProblemError(
                f"the file has {count} problems; give one, for example with head -n 1"
            ) from None
        where, what = "a number", "more digits than any field takes"
        if isinstance(error, json.JSONDecodeError):
            where, what = f"column {error.colno}", error.msg
        raise ProblemError(f"line {number}, {where}: broken JSON, {what}") from None
    except RecursionError:
        raise ProblemError(f"line {number}: broken JSON, nested too deeply") from None
    if not isinstance(data, dict):
        raise ProblemError(f"line {number} is not a JSON object; give one problem per line")
    return data
