"""The ledger of promises: rows of tests/kips.toml, and the marks that prove them.

Marks are read from the source, not from a run, so their arguments are literals:
`@pytest.mark.kip("268-1", "core")`.
"""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORLDS = ("core", "sim", "loop", "real")
_FOLDERS = ("tests", "system_tests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One promise; `where` are the worlds in which it must be proved."""

    id: str
    kip: str
    promise: str
    where: tuple[str, ...]
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One test that proves a row in a world; `test` is a pytest node id without parameters.

    A marked class, whose name ends the id, stands for all of its tests.
    """

    row: str
    world: str
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """An intended deviation from a KIP's `text`: what is done `here`, and the `reason`."""

    rows: tuple[str, ...]
    text: str
    here: str
    reason: str


def read_deviations() -> tuple[Deviation, ...]:
    """The deviations in the order of the file."""
    table = tomllib.loads((ROOT / "tests" / "deviations.toml").read_text(encoding="utf-8"))
    return tuple(Deviation(**{**row, "rows": tuple(row["rows"])}) for row in table["deviation"])


@cache
def read_rows() -> tuple[Row, ...]:
    """The rows in the order of the file."""
    table = tomllib.loads((ROOT / "tests" / "kips.toml").read_text(encoding="utf-8"))
    return tuple(Row(**{**row, "where": tuple(row["where"])}) for row in table["row"])


@cache
def read_marks() -> tuple[Mark, ...]:
    """Every `kip` mark of the test files, sorted; read once in a process.

    Raises:
        ValueError: a mark whose arguments are not two string literals.
    """
    marks = []
    for folder in _FOLDERS:
        for path in sorted((ROOT / folder).rglob("test_*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            marks += list(marks_in(tree, path.relative_to(ROOT).as_posix()))
    return tuple(sorted(marks, key=lambda m: (m.row, m.world, m.test)))


def proved_worlds(row: Row, marks: tuple[Mark, ...]) -> tuple[str, ...]:
    """The worlds of a row that have at least one marked test, in the row's order."""
    marked = {mark.world for mark in marks if mark.row == row.id}
    return tuple(world for world in row.where if world in marked)


def marks_in(node: ast.AST, name: str) -> Iterator[Mark]:
    """Marks of what is defined in a node, whose own node id is `name`."""
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{name}::{child.name}"
            for decorator in child.decorator_list:
                if _is_kip(decorator):
                    row, world = _literals(decorator, name.partition("::")[0])
                    yield Mark(row=row, world=world, test=inner)
        yield from marks_in(child, inner)


def _is_kip(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "kip"
    )


def _literals(node: ast.expr, path: str) -> tuple[str, str]:
    values = [a.value for a in getattr(node, "args", []) if isinstance(a, ast.Constant)]
    if len(values) != 2 or not all(isinstance(v, str) for v in values):
        raise ValueError(
            f"{path}:{node.lineno}: a kip mark takes a row id and a world, as literals"
        )
    return values[0], values[1]
