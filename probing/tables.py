"""Reading of the TOML files that hold what differs by release.

Each reader gives the form of its file, so that a misspelled key, a missing one, a value of another
type, or a row that contradicts another is an error when the file is loaded, with file, row and key.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pkgutil import get_data
from typing import Any, TypeAlias

Form: TypeAlias = "type | Sequence[Form | str] | Mapping[str, Form] | Where"
"""What a value of a file has to be.

A type: a value of it; a text is not blank. A list of one form: a list of such values. A tuple of
texts: one of them. A mapping: a table with these keys, checked in this order; a key that ends with
"?" may be absent, and "*" stands for any key.
"""


@dataclass(frozen=True, slots=True)
class Where:
    """A form of whose values more is demanded.

    Attributes:
        form: the form, which is checked first.
        problem_of: given a value and all tables of the file, returns what is wrong, or "".
    """

    form: Form
    problem_of: Callable[[Any, Mapping[str, Any]], str]


# Keys that name a row, best first.
_NAMES = ("name", "id", "claim", "series", "version", "number", "since", "release")


class TableError(ValueError):
    """A file of facts does not have its form; the message names the file, the row and the key."""


def read_table(package: str, name: str, form: Mapping[str, Form]) -> dict[str, Any]:
    """Return the tables of a TOML file in a package, which may be in a zip archive.

    The file is a part of the program: it is read once, when the module that declares it is loaded.

    Args:
        package: the package's name.
        name: the file's name.
        form: the keys of the file, and what each holds.

    Raises:
        OSError: the package has no such file.
        TableError: the file is not TOML, or does not have the form.
    """
    data = get_data(package, name)  # importlib.resources takes 4 ms to import
    path = f"{package.replace('.', '/')}/{name}"
    if data is None:
        raise FileNotFoundError(f"{package} has no {name}: its loader reads no files")
    try:
        tables = tomllib.loads(data.decode())
    except ValueError as error:  # of bytes that are not UTF-8 as well
        raise TableError(f"{path}: {error}") from error
    except RecursionError as error:
        raise TableError(f"{path}: values are nested too deeply") from error
    _check(tables, form, path, None)
    _check(tables, form, path, tables)
    return tables


def _check(value: object, form: Form, where: str, tables: Mapping[str, Any] | None) -> None:
    """Check a value and all values in it; `where` names it.

    Without the tables of the file, what a `Where` demands is not checked: it may read any of them.

    Raises:
        TableError: the first value that does not have its form.
    """
    if isinstance(form, Where):
        _check(value, form.form, where, tables)
        if tables is not None and (problem := form.problem_of(value, tables)):
            raise TableError(f"{where}: {problem}")
        return
    if isinstance(form, type):
        is_right = type(value) is form and value != ""  # a bool is no number
        is_right = is_right and not (isinstance(value, str) and value.isspace())
        wanted = f"of type {form.__name__}" + (", and not blank" if form is str else "")
    elif isinstance(form, Mapping):
        is_right, wanted = isinstance(value, dict), "a table"
    elif isinstance(form, tuple):
        is_right, wanted = value in form, f"one of {', '.join(map(str, form))}"
    else:
        is_right, wanted = isinstance(value, list), "a list"
    if not is_right:
        raise TableError(f"{where}: {value!r} has to be {wanted}")
    if isinstance(form, Mapping) and isinstance(value, dict):
        _check_keys(value, form, where, tables)
    elif isinstance(form, list) and isinstance(value, list):
        for number, item in enumerate(value, 1):
            _check(item, form[0], f"{where}, {_row(item, number)}", tables)


def _check_keys(
    row: dict[str, object], form: Mapping[str, Form], where: str, tables: Mapping[str, Any] | None
) -> None:
    known = {key.removesuffix("?"): of for key, of in form.items()}
    if unknown := [key for key in row if key not in known and "*" not in known]:
        choices = ", ".join(sorted(known))
        raise TableError(f"{where}: unknown key {unknown[0]!r}; choose from {choices}")
    if lacking := [key for key in form if key not in {*row, "*"} and not key.endswith("?")]:
        raise TableError(f"{where}: key {lacking[0]!r} is missing")
    for key in sorted(row, key=[*known].index) if "*" not in known else row:
        _check(row[key], known.get(key, known.get("*", str)), f"{where}, {key}", tables)


def rows_of(form: Form, *identity: str, rises: Callable[[Any], Any] | None = None) -> Where:
    """Return the form of a table with rows, no two of which are the same in their identity.

    Args:
        form: the form of a row.
        identity: keys; a row may lack some of them.
        rises: given the value of the first key, returns what increases from row to row.
    """

    def problem_of(rows: list[dict[str, Any]], _: Mapping[str, Any]) -> str:
        if not rows:
            return "no row is there"
        seen: dict[tuple[object, ...], int] = {}
        for number, row in enumerate(rows, 1):
            own = tuple(str(row.get(key, "")) for key in identity)
            if own in seen:
                return f"{_row(row, number)} repeats {', '.join(identity)} of row {seen[own]}"
            seen[own] = number
            if rises and number > 1:
                last, this = (rises(item[identity[0]]) for item in rows[number - 2 : number])
                if last >= this:
                    return f"{_row(row, number)}: {identity[0]} is not above that of the row before"
        return ""

    return Where([form], problem_of)


def known_in(form: Form, table: str, key: str) -> Where:
    """Return the form of a value that a row of a table has in this key."""

    def problem_of(value: object, tables: Mapping[str, Any]) -> str:
        is_known = value in [row[key] for row in tables[table]]
        return "" if is_known else f"{value!r} is not a {key} of [[{table}]]"

    return Where(form, problem_of)


def all_or_none(form: Form, *keys: str) -> Where:
    """Return the form of a row that has all of these keys or none of them."""

    def problem_of(row: dict[str, Any], _: Mapping[str, Any]) -> str:
        lacking = [key for key in keys if key not in row]
        if lacking in ([], [*keys]):
            return ""
        given = next(key for key in keys if key in row)
        return f"key {lacking[0]!r} is missing, which a row with {given!r} needs"

    return Where(form, problem_of)


def ordered(form: Form, order: Callable[[Any], Any], *relations: str) -> Where:
    """Return the form of a row whose values stand in an order, as far as it has them.

    Args:
        form: the form of the row.
        order: of a value, or of each value of a list.
        relations: as "since < until" or "first <= last", of keys.
    """

    def values(row: dict[str, Any], key: str) -> list[Any]:
        found = row.get(key, [])
        return found if isinstance(found, list) else [found]

    def problem_of(row: dict[str, Any], _: Mapping[str, Any]) -> str:
        for low, sign, high in map(str.split, relations):
            for first, last in product(values(row, low), values(row, high)):
                if order(last) < order(first) or (sign == "<" and order(last) == order(first)):
                    wanted = "above" if sign == "<" else "at or above"
                    return f"{high} {last!r} has to be {wanted} {low} {first!r}"
        return ""

    return Where(form, problem_of)


def of_length(form: Form, least: int, most: int | None = None) -> Where:
    """Return the form of a list with at least, and at most, so many values."""

    def problem_of(value: list[Any], _: Mapping[str, Any]) -> str:
        if least <= len(value) and (most is None or len(value) <= most):
            return ""
        wanted = f"{least}" if least == most else f"{least} or more"
        return f"{value!r} has to have {wanted} values"

    return Where([form], problem_of)


def _row(item: object, number: int) -> str:
    """Return which row of a table an item is: its number from 1, and what names it."""
    keys = [key for key in _NAMES if key in item] if isinstance(item, dict) else []
    names = [f"{key} {item[key]}" for key in keys] if isinstance(item, dict) else []
    return f"row {number}{f' ({names[0]})' if names else ''}"
