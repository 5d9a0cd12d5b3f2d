"""Planted faults: deliberate changes of the code, each with the tests or the checker to notice it.

The TOML files in this folder list them. A fault has

- `says`: the resulting fault in a few words (optional for a row of a table);
- `place`: `module:qualified.name` of a function, class or module-level value;
- `old` and `new`: text that the place contains exactly once, and its replacement; or `rule`: the
  row of this name is removed from the table at the place, or with `answers_as` gets the result of
  that other row. `TABLE[KEY]` is one of several tables, by the name of its key. `rule = "*"` stands
  for each row of the table that no other fault names; its last row answers as the first one, as
  code without a last row raises an exception, which proves little;

and says who must notice it, by exactly one of `row`, `tests` and `commands`:

- `row`: the tests that are marked with this row of tests/kips.toml, in all environments of the row
  or in those of `worlds`;
- `tests`: files or node ids of tests;
- `commands`: commands of tests/planted/oracles.py; `checker`: the rule that each of them reports as
  broken with the fault and not without it. With `misses = true` it is the other way round.

A row of a table may have a `reason`, why these notice nothing: another row has the same result.
"""

import ast
import hashlib
import importlib
import json
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.ledger import read_rows
from tests.planted.tables import changed_table

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = Path(__file__).parent
CHANGEABLE: Final = (
    "assignor",
    "encoding",
    "probing",
    "spark_assign",
    "system_tests",
    "tests.probing.topologies.model",
)
"""The product, and a model with rules of its own."""
EACH_ROW: Final = "*"


class MovedError(Exception):
    """The place of a fault does not exist any more, or has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One planted fault; see the module for its fields. `file` is the TOML file that lists it."""

    file: str
    place: str
    says: str = ""
    old: str = ""
    new: str = ""
    rule: str = ""
    answers_as: str = ""
    row: str = ""
    worlds: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    checker: str = ""
    misses: bool = False
    reason: str = ""

    @property
    def name(self) -> str:
        """Return the name among all faults."""
        if not self.rule:
            return f"{self.row or self.checker or self.place}: {self.says}"
        result = f"answers as {self.answers_as!r}" if self.answers_as else "is gone"
        return f"{self.place.partition(':')[2]}: row {self.rule!r} {result}"

    @property
    def digest(self) -> str:
        """Return a short hash of the change and of who must notice it."""
        text = json.dumps({**asdict(self), "file": "", "says": "", "reason": ""}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:8]


@cache
def read_faults() -> tuple[Fault, ...]:
    """Return all faults, by file and in the order of the file.

    Raises:
        MovedError: a table that does not exist.
        ValueError: a fault with other keys than a fault has, or not with one who must notice it.
    """
    faults = [
        fault_from(path.name, entry)
        for path in sorted(FOLDER.glob("*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
    ]
    named = {(fault.place, fault.rule) for fault in faults}
    return tuple(
        each
        for fault in faults
        for each in (_each_row(fault, named) if fault.rule == EACH_ROW else [fault])
    )


def fault_from(file: str, entry: dict[str, Any]) -> Fault:
    """Return the fault of an entry of a file.

    Raises:
        ValueError: an unknown key or row, no place, or not exactly one who must notice it.
    """
    name = entry.get("rule") or entry.get("says")
    where = f"{file}, fault {name!r} of {entry.get('place')}"
    if unknown := sorted(set(entry) - {field.name for field in fields(Fault)}):
        raise ValueError(f"{where}: unknown key {unknown[0]!r}; see tests/planted/faults.py")
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in entry.items()}
    fault = Fault(**{"file": file, "place": "", **values})
    if [bool(fault.row), bool(fault.tests), bool(fault.commands)].count(True) != 1:
        raise ValueError(f"{where}: give exactly one of `row`, `tests` and `commands`")
    if bool(fault.commands) != bool(fault.checker) or (fault.reason and not fault.rule):
        raise ValueError(f"{where}: `checker` goes with `commands`, `reason` with `rule`")
    rows = {row.id: row.where for row in read_rows()}
    if fault.row and not (fault.row in rows and set(fault.worlds) <= set(rows[fault.row])):
        raise ValueError(f"{where}: tests/kips.toml has no such row, or not with these worlds")
    return fault


def _each_row(fault: Fault, named: set[tuple[str, str]]) -> list[Fault]:
    names = list(dict.fromkeys(row.name for row in table_of(fault)))
    return [
        replace(fault, rule=name, answers_as=names[0] if name == names[-1] else "")
        for name in names
        if (fault.place, name) not in named
    ]


def table_of(fault: Fault) -> tuple[Any, ...]:
    """Return the rows of the table at a place.

    Raises:
        MovedError: there is no such table.
    """
    module, name, key = _parts(fault)
    try:
        table = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise MovedError(f"{fault.name}: there is no table {fault.place}") from error
    rows = table if not key else {each.name: rows for each, rows in table.items()}.get(key, ())
    return tuple(rows)


def _parts(fault: Fault) -> tuple[str, str, str]:
    """Return module, qualified name and key of a place."""
    module, _, name = fault.place.partition(":")
    name, _, key = name.removesuffix("]").partition("[")
    return module, name, key


def path_of(fault: Fault) -> str:
    """Return the file of a fault, relative to the root.

    Raises:
        MovedError: there is no such module, or it is not part of the product.
    """
    module = fault.place.partition(":")[0]
    if not any(module == part or module.startswith(f"{part}.") for part in CHANGEABLE):
        raise MovedError(f"{fault.name}: {module} is not a module of the product")
    path = module.replace(".", "/")
    for candidate in (f"{path}.py", f"{path}/__init__.py"):
        if (ROOT / candidate).is_file():
            return candidate
    raise MovedError(f"{fault.name}: there is no module {module}")


def changed_source(fault: Fault) -> str:
    """Return the text of the file with the fault.

    Raises:
        MovedError: the place does not exist, does not contain the old text exactly once, or has no
            such row.
    """
    path = path_of(fault)
    source, tree = _parsed(path)
    first, last = _lines_of(fault, tree)
    lines = source.splitlines(keepends=True)
    return "".join(
        [*lines[: first - 1], _changed(fault, "".join(lines[first - 1 : last])), *lines[last:]]
    )


def _changed(fault: Fault, text: str) -> str:
    if not fault.rule:
        if text.count(fault.old) != 1:
            raise MovedError(
                f"{fault.name}: {fault.place} has the old text {text.count(fault.old)} times"
            )
        return text.replace(fault.old, fault.new)
    try:
        changed_table(table_of(fault), fault.rule, fault.answers_as)
    except LookupError as error:
        raise MovedError(f"{fault.name}: {error}") from error
    _, name, key = _parts(fault)
    change = f"_changed({{}}, {fault.rule!r}, {fault.answers_as!r})"
    value = change.format(name)
    if key:
        value = (
            f"{{key: {change.format('rows')} if key.name == {key!r} else rows"
            f" for key, rows in {name}.items()}}"
        )
    imported = "from tests.planted.tables import changed_table as _changed"
    return f"{text}{imported}\n{name} = {value}\n"


@cache
def _parsed(path: str) -> tuple[str, ast.Module]:
    source = (ROOT / path).read_text(encoding="utf-8")
    return source, ast.parse(source)


def _lines_of(fault: Fault, tree: ast.Module) -> tuple[int, int]:
    """Return the first and the last line of the place, decorators included."""
    node: ast.AST = tree
    for name in _parts(fault)[1].split("."):
        found = [child for child in ast.iter_child_nodes(node) if name in _names(child)]
        if len(found) != 1:
            raise MovedError(f"{fault.name}: {fault.place} exists {len(found)} times")
        node = found[0]
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(d.lineno for d in decorators)])  # type: ignore[attr-defined]  # ast
    return first, node.end_lineno  # type: ignore[attr-defined]  # statements have lines


def _names(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    if isinstance(node, ast.Assign):
        return tuple(target.id for target in node.targets if isinstance(target, ast.Name))
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return (node.target.id,)
    return ()
