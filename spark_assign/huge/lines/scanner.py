"""Scan the members of long JSON objects."""

import json
import re
from collections.abc import Iterator
from typing import Any

from assignor.problems import ProblemError, RepeatedKey, unique_keys
from encoding import shown

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def repeated(key: str) -> ProblemError:
    """The error that an object has a key twice."""
    return ProblemError(f"key {shown(key)} is given twice in one object; give it once")


class Scanner:
    """The members of nested JSON objects, one after another, without building the objects."""

    def __init__(self, text: str) -> None:
        """Start before the first value of a text."""
        self.text, self.at = text, 0

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; read each value before the next key.

        Raises:
            ProblemError: no object begins here, or it is broken JSON.
        """
        self._take("{")
        if self._is_next("}"):
            self._take("}")
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._broken("expecting a property name")
            self._take(":")
            yield key
            if self._is_next("}"):
                self._take("}")
                return
            self._take(",")

    def value(self) -> Any:
        """Read the value that begins here.

        Raises:
            ProblemError: it is broken JSON.
        """
        self._skip()
        try:
            value, self.at = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = error.pos
            raise self._broken(error.msg) from None
        except RepeatedKey as error:
            raise repeated(str(error)) from None
        except (ValueError, RecursionError):
            raise self._broken("nested too deeply, or a number too long") from None
        return value

    def has_object(self) -> bool:
        """Whether an object begins here."""
        return self._is_next("{")

    def matches(self, pattern: re.Pattern[str]) -> Iterator[str]:
        """Skip what matches a pattern here, again and again, and yield it."""
        while found := pattern.match(self.text, self.at):
            self.at = found.end()
            yield found[0]

    def end(self) -> None:
        """Check that nothing follows.

        Raises:
            ProblemError: something does.
        """
        self._skip()
        if self.at < len(self.text):
            raise self._broken("extra data")

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _is_next(self, sign: str) -> bool:
        self._skip()
        return self.text.startswith(sign, self.at)

    def _take(self, sign: str) -> None:
        if not self._is_next(sign):
            raise self._broken(f"expecting {sign!r}")
        self.at += 1

    def _broken(self, what: str) -> ProblemError:
        return ProblemError(f"column {self.at + 1}: broken JSON, {what}")
