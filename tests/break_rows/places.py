"""Named breaks of the product's code: their places, and a copy of the sources with a break.

A break replaces text inside one function, class or module-level value, given by its qualified name.
If the place does not contain the old text exactly once, an error is raised.
"""

import ast
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BREAKS: Final = Path(__file__).with_name("breaks.toml")
PRODUCT: Final = ("assignor", "encoding", "probing", "spark_assign", "system_tests")


class MovedError(Exception):
    """The place of a break does not exist any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One break of a row.

    Attributes:
        row: id in tests/kips.toml.
        says: the resulting fault of the product, in a few words.
        place: `module:qualified.name` of the changed code.
        old: text that occurs there exactly once; new: its replacement.
        worlds: worlds in which the row's marked tests must fail; empty: all worlds of the row.
    """

    row: str
    says: str
    place: str
    old: str
    new: str
    worlds: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name among all breaks."""
        return f"{self.row}: {self.says}"


def read_breaks() -> tuple[Break, ...]:
    """All breaks, in the order of the file."""
    table = tomllib.loads(BREAKS.read_text(encoding="utf-8"))
    return tuple(Break(**{**row, "worlds": tuple(row.get("worlds", ()))}) for row in table["break"])


def path_of(break_: Break) -> str:
    """File of a break, relative to the root.

    Raises:
        MovedError: there is no such module, or it is not part of the product.
    """
    module = break_.place.partition(":")[0]
    if module.split(".")[0] not in PRODUCT:
        raise MovedError(f"{break_.name}: {module} is no module of the product")
    path = module.replace(".", "/")
    for candidate in (f"{path}.py", f"{path}/__init__.py"):
        if (ROOT / candidate).is_file():
            return candidate
    raise MovedError(f"{break_.name}: there is no module {module}")


def broken_source(break_: Break) -> str:
    """The text of the file with the break.

    Raises:
        MovedError: the place does not exist, or does not contain the old text exactly once.
    """
    path = path_of(break_)
    source = (ROOT / path).read_text(encoding="utf-8")
    first, last = _lines_of(break_, ast.parse(source))
    lines = source.splitlines(keepends=True)
    text = "".join(lines[first - 1 : last])
    if text.count(break_.old) != 1:
        raise MovedError(
            f"{break_.name}: {break_.place} in {path} has the old text"
            f" {text.count(break_.old)} times"
        )
    changed = text.replace(break_.old, break_.new)
    return "".join(lines[: first - 1]) + changed + "".join(lines[last:])


def _lines_of(break_: Break, tree: ast.Module) -> tuple[int, int]:
    """First and last line of the place, decorators included."""
    node: ast.AST = tree
    for name in break_.place.partition(":")[2].split("."):
        found = [child for child in ast.iter_child_nodes(node) if name in _names(child)]
        if len(found) != 1:
            raise MovedError(f"{break_.name}: {break_.place} is there {len(found)} times")
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


def copy_sources(to: Path) -> None:
    """Copy all files that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.split("\0"):
        source = ROOT / name
        if name and source.is_file():
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
