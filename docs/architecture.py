"""The generated part of ARCHITECTURE.md: the tree of sub-packages, and who imports whom."""

import ast
from pathlib import Path

import grimp
import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
PACKAGES = ("encoding", "probing", "assignor", "spark_assign", "system_tests")
BEGIN, END = "<!-- generated: python -m docs.generate -->\n", "<!-- end of generated -->\n"


def page_with_section() -> str:
    """The whole page, with the generated part as the code has it now."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{_section()}{END}{after}"


def _section() -> str:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False, cache_dir=None)
    parts = ["\n"]
    for package in PACKAGES:
        parts.append(f"### {package}\n\n| folder | holds |\n| --- | --- |\n")
        parts += [f"| `{folder}/` | {_subject(folder)} |\n" for folder in _folders(package)]
        parts.append(f"\n```mermaid\nflowchart TD\n{_arrows(graph, package)}```\n\n")
    return "".join(parts)


def _folders(package: str) -> list[str]:
    folders = sorted(door.parent for door in (ROOT / package).rglob("__init__.py"))
    return [folder.relative_to(ROOT).as_posix() for folder in folders if folder.name != package]


def _subject(folder: str) -> str:
    doc = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8")))
    return (doc or "").splitlines()[0].rstrip(".")


def _arrows(graph: grimp.ImportGraph, package: str) -> str:
    """One line a sub-package, with those that it imports; what follows from others is left out."""
    units = sorted(graph.find_children(package))
    found = nx.DiGraph()
    found.add_nodes_from(units)
    for one in units:
        inside = {one} | graph.find_descendants(one)
        for module in inside:
            for imported in graph.find_modules_directly_imported_by(module):
                other = ".".join(imported.split(".")[:2])
                if other in found and other != one:
                    found.add_edge(one, other)
    reduced = nx.transitive_reduction(found)
    lines = []
    for one in units:
        others = " & ".join(sorted(_name(other) for other in reduced.successors(one)))
        if others:
            lines.append(f"    {_name(one)} --> {others}\n")
        elif not reduced.in_degree(one):
            lines.append(f"    {_name(one)}\n")
    return "".join(lines)


def _name(module: str) -> str:
    return module.rpartition(".")[2]
