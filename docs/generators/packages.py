"""docs/packages.md: every sub-package with its subject and its imports, read from the code."""

import ast
from pathlib import Path

import grimp
import networkx as nx

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("encoding", "probing", "assignor", "spark_assign", "system_tests")
_TOP = """# All sub-packages

To find where something is decided, look for its subject in the second column. To find what a
sub-package uses, follow the arrows: an arrow is an import, and imports that follow from other
arrows are left out. [ARCHITECTURE](../ARCHITECTURE.md) explains how the packages work together.

`python -m docs.generate` writes this page from the code."""


def render() -> str:
    """Return the whole page."""
    graph = grimp.build_graph(*_PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    parts = [_TOP]
    for package in _PACKAGES:
        rows = "\n".join(f"| `{folder}/` | {_subject(folder)} |" for folder in _folders(package))
        parts.append(f"## {package}\n\n| folder | subject |\n| --- | --- |\n{rows}")
        parts.append(f"```mermaid\nflowchart TD\n{_arrows(graph, package)}```")
    return "\n\n".join(parts) + "\n"


def _folders(package: str) -> list[str]:
    folders = sorted(door.parent for door in (_ROOT / package).rglob("__init__.py"))
    return [folder.relative_to(_ROOT).as_posix() for folder in folders if folder.name != package]


def _subject(folder: str) -> str:
    doc = ast.get_docstring(ast.parse((_ROOT / folder / "__init__.py").read_text(encoding="utf-8")))
    return (doc or "").splitlines()[0].rstrip(".")


def _arrows(graph: grimp.ImportGraph, package: str) -> str:
    """Return one line per sub-package with its direct imports, transitively reduced."""
    units = sorted(graph.find_children(package))
    found = nx.DiGraph()
    found.add_nodes_from(units)
    for unit in units:
        inside = {unit} | graph.find_descendants(unit)
        for module in inside:
            for imported in graph.find_modules_directly_imported_by(module):
                other = ".".join(imported.split(".")[:2])
                if other in found and other != unit:
                    found.add_edge(unit, other)
    reduced = nx.transitive_reduction(found)
    lines = []
    for unit in units:
        others = " & ".join(sorted(_name(other) for other in reduced.successors(unit)))
        if others:
            lines.append(f"    {_name(unit)} --> {others}\n")
        elif not reduced.in_degree(unit):
            lines.append(f"    {_name(unit)}\n")
    return "".join(lines)


def _name(module: str) -> str:
    return module.rpartition(".")[2]
