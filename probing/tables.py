"""Reading of the TOML files that hold what differs by release.

Each reader gives the form of its file, so that a misspelled key, a missing one or a value of
another type is an error when the file is loaded, with file, row and key.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pkgutil import get_data
from typing import Any, TypeAlias

Form: TypeAlias = "type | Sequence[Form | str] | Mapping[str, Form]"
"""What a value of a file has to be.

A type: a value of it. A list of one form: a list of such values. A tuple of texts: one of them.
A mapping: a table with these keys; a key that ends with "?" may be absent, "*" is any key.
"""

_NAMES = ("name", "id", "claim", "series", "version", "number", "since")  # of rows, best first


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
    _check(tables, form, path)
    return tables


def _check(value: object, form: Form, where: str) -> None:
    """Check a value and all values in it; `where` names it.

    Raises:
        TableError: the first value that does not have its form.
    """
    if isinstance(form, type):
        is_right = type(value) is form  # a bool is no number
        wanted = f"of type {form.__name__}"
    elif isinstance(form, Mapping):
        is_right, wanted = isinstance(value, dict), "a table"
    elif isinstance(form, tuple):
        is_right, wanted = value in form, f"one of {', '.join(map(str, form))}"
    else:
        is_right, wanted = isinstance(value, list), "a list"
    if not is_right:
        raise TableError(f"{where}: {value!r} has to be {wanted}")
    if isinstance(form, Mapping) and isinstance(value, dict):
        _check_keys(value, form, where)
    elif isinstance(form, list) and isinstance(value, list):
        for number, item in enumerate(value, 1):
            _check(item, form[0], f"{where}, {_row(item, number)}")


def _check_keys(row: dict[str, object], form: Mapping[str, Form], where: str) -> None:
    known = {key.removesuffix("?"): of for key, of in form.items()}
    for key, value in row.items():
        if key not in known and "*" not in known:
            raise TableError(
                f"{where}: unknown key {key!r}; choose from {', '.join(sorted(known))}"
            )
        _check(value, known.get(key, known.get("*", str)), f"{where}, {key}")
    if lacking := [key for key in form if key not in {*row, "*"} and not key.endswith("?")]:
        raise TableError(f"{where}: key {lacking[0]!r} is missing")


def _row(item: object, number: int) -> str:
    """Return which row of a table an item is: its number from 1, and what names it."""
    names = (
        [f"{key} {item[key]}" for key in _NAMES if key in item] if isinstance(item, dict) else []
    )
    return f"row {number}{f' ({names[0]})' if names else ''}"
