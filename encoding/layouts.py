"""Layouts as text, one line a row, to compare what a version is with what was released.

``released_layouts.json`` holds the lines of every released version. A version that a release has
written is out of our hands: its rows never change again, whatever the tables say tomorrow.
"""

from encoding.native_schema import EARLIEST_NATIVE_VERSION, READABLE_SINCE, native_rows_of
from encoding.plan import array_of
from encoding.schema import KINDS, STRUCTURES, Field, rows_of

__all__ = ["layout_of"]


def layout_of(kind: str, version: int) -> list[str]:
    """The rows of a version in wire order: name and type, with the parts of structures indented.

    Native rows begin with their key and end with their default; the first line says who can read
    the version.

    >>> layout_of("assignment", 1)[1:3]
    ['active_tasks: []assigned_task', '  subtopology: int32']
    """
    if version < EARLIEST_NATIVE_VERSION:
        return [line for row in rows_of(KINDS[kind], version) for line in _lines(row, version, "")]
    rows = native_rows_of(kind, version)
    head = f"readable since {READABLE_SINCE[version]}"
    return [head, *(f"{r.key} {r.name}: {r.type} = {_spelled(r.default)}" for r in rows)]


def _lines(row: Field, version: int, indent: str) -> list[str]:
    lines = [f"{indent}{row.name}: {row.type}"]
    structure = array_of(row.type)
    for part in rows_of(STRUCTURES[structure], version) if structure else ():
        lines += _lines(part, version, f"{indent}  ")
    return lines


def _spelled(default: object) -> str:
    return "none" if default is None or default in ((), {}) else str(default)
