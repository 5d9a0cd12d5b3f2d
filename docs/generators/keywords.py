"""assignor/adapters/membership/keywords.py: the options' names and types, for type checkers.

No type checker derives a `TypedDict` from a dataclass.
"""

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from types import ModuleType

from assignor import config
from assignor.adapters.membership import OPTION_GROUPS, options

PATH = "assignor/adapters/membership/keywords.py"

_TOP = '''"""Keyword options of a member, as type checkers see them.

`python -m docs.generate` writes this module from `options.py` and `AssignmentConfig`, which have
the meanings, defaults and checks.
"""
'''
# Options that a member has whose topics, state directory and releases are another library's.
_INTEGRATED = {
    *("endpoint", "client_tags", "rack", "rebalance_protocol", "observer", "hooks", "strategy"),
    *(each.name for each in fields(config.AssignmentConfig)),
}
_CLASSES = (
    ("IntegratedMemberKeywords", "TypedDict", "Of a member inside another library."),
    (
        "ApplicationMemberKeywords",
        "IntegratedMemberKeywords",
        "Of a member whose listener is its state stores.",
    ),
    ("MemberKeywords", "ApplicationMemberKeywords", "Of a member."),
)


def render() -> str:
    """Return the text of the module."""
    types = dict(_types())
    parts = [_INTEGRATED, types.keys() - {*_INTEGRATED, "listener"}, {"listener"}]
    blocks = [_TOP, "\n".join(_imports(" ".join(types.values())))]
    for (name, base, text), names in zip(_CLASSES, parts, strict=True):
        rows = [f"    {each}: {kind}" for each, kind in types.items() if each in names]
        head = f'\n\nclass {name}({base}, total=False):\n    """{text}"""\n'
        blocks.append("\n".join((head, *rows)))
    return "\n".join(blocks) + "\n"


def _types() -> Iterator[tuple[str, str]]:
    """Return each option with its type as it is written; a list is taken for a tuple, too."""
    for kind in (*OPTION_GROUPS.values(), config.AssignmentConfig):
        for node in ast.parse(inspect.getsource(kind)).body[0].body:  # type: ignore[attr-defined] # a class
            if isinstance(node, ast.AnnAssign):
                written = ast.unparse(node.annotation).replace("'", '"')
                yield (
                    ast.unparse(node.target),
                    re.sub(r"tuple\[(.*), \.\.\.\]", r"Sequence[\1]", written),
                )


def _imports(used: str) -> Iterator[str]:
    """Return the imports of the two modules that the types need, the standard library's first."""
    origins: dict[str, set[str]] = {"typing": {"TypedDict"}}
    for node in _import_nodes((options, config)):
        names = {each.name for each in node.names if re.search(rf"\b{each.name}\b", used)}
        if names:
            origins.setdefault(node.module or "", set()).update(names)
    for is_own in (False, True):
        for module in sorted(each for each in origins if each.startswith("assignor") is is_own):
            yield f"from {module} import {', '.join(sorted(origins[module]))}"
        if not is_own:
            yield ""


def _import_nodes(modules: Iterable[ModuleType]) -> Iterator[ast.ImportFrom]:
    for module in modules:
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ImportFrom):
                yield node
