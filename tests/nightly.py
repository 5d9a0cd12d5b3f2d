"""What only `make nightly` runs, with the reasons: marks, samples and numbers of examples.

Which tests `make test` runs follows from the commit alone, not from the date and not from chance:

- a test marked `nightly("reason")` runs in `make nightly` only; with `but=("id", ...)`, parameters
  with these ids run in every run;
- `sample(values, every=N, reason="...")` is every N-th value of a list, at night all of them;
- `examples(count)` is the number of random examples: a third, the same ones in each run; at night
  all, and other ones each night.

`python -m tests.nightly` lists the tests and their reasons, in the form of tests/nightly.md.
"""

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import pytest

Value = TypeVar("Value")
ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = Path(__file__).with_suffix(".md")
_FOLDERS: Final = ("tests", "system_tests/scenarios")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Left:
    """What `make test` leaves to `make nightly`.

    Attributes:
        test: file and name of the test, or of the function that the test calls.
        what: "all", or what part of it; reason: why not in every run.
    """

    test: str
    what: str
    reason: str


def is_nightly() -> bool:
    """Return whether this run takes everything (`make nightly` sets NIGHTLY=1)."""
    return os.environ.get("NIGHTLY", "") == "1"


def sample(values: Sequence[Value], *, every: int, reason: str) -> list[Value]:
    """Return the values of a test in this run: at night all, else every N-th, the first included.

    Args:
        values: all of them.
        every: the distance between two values of `make test`.
        reason: why not all run in `make test`; `python -m tests.nightly` lists it.
    """
    if not reason:
        raise ValueError("say why not all values run in `make test`")
    return list(values) if is_nightly() else list(values[::every])


def examples(count: int) -> int:
    """Return how many examples a property test draws: `count` at night, else a third."""
    return count if is_nightly() else -(-count // 3)


def is_left(item: pytest.Item) -> bool:
    """Return whether this run leaves a test out, by its marks `nightly`.

    Raises:
        ValueError: a mark gives no reason.
    """
    marks = list(item.iter_markers("nightly"))
    if any(len(mark.args) != 1 or not mark.args[0] for mark in marks):
        raise ValueError(f"{item.nodeid}: give its mark nightly one argument: why not in every run")
    callspec_id = getattr(getattr(item, "callspec", None), "id", None)
    return not is_nightly() and any(callspec_id not in m.kwargs.get("but", ()) for m in marks)


def check_ids(metafunc: pytest.Metafunc) -> None:
    """Check that parameters of a test have the ids that its marks `nightly` except.

    Args:
        metafunc: the test, with all its parameters.

    Raises:
        CollectError: an id is that of no parameter.
    """
    ids = [call.id for call in metafunc._calls]  # no public API
    for mark in metafunc.definition.iter_markers("nightly"):
        if unknown := sorted(set(mark.kwargs.get("but", ())) - set(ids)):
            known = ", ".join(map(repr, ids)) or "it has no parameters"
            raise pytest.Collector.CollectError(
                f"{metafunc.definition.nodeid}: its mark nightly has but={unknown[0]!r}, which is"
                f" the id of no parameter; choose from: {known}"
            )


def nightly_rows() -> list[Left]:
    """Return everything that only `make nightly` runs, read from the sources, sorted.

    Raises:
        ValueError: a reason that is not a text between quotes.
    """
    return sorted(
        left
        for folder in _FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__).resolve()
        if ".nightly(" in (text := path.read_text(encoding="utf-8")) or "sample(" in text
        for left in _left_in(ast.parse(text), path.relative_to(ROOT).as_posix())
    )


def _left_in(node: ast.AST, name: str) -> Iterator[Left]:
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{name}::{child.name}"
        if isinstance(child, ast.Call):
            called = child.func
            keywords = {k.arg: k.value for k in child.keywords}
            if isinstance(called, ast.Attribute) and called.attr == "nightly":
                part = "all"
                if "but" in keywords:
                    part = f"all but {ast.unparse(keywords['but'])}"
                elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    part = "a parameter"
                yield Left(test=inner, what=part, reason=_text(name, *child.args))
            elif isinstance(called, ast.Name) and called.id == "sample" and "every" in keywords:
                yield Left(
                    test=inner,
                    what=f"all but one of {ast.unparse(keywords['every'])} values",
                    reason=_text(name, keywords["reason"]),
                )
        yield from _left_in(child, inner)


def _text(path: str, *nodes: ast.expr) -> str:
    if len(nodes) != 1 or not isinstance(nodes[0], ast.Constant) or not nodes[0].value:
        raise ValueError(f"{path}: write the reason as one text between quotes")
    return str(nodes[0].value)


def page() -> str:
    """Return tests/nightly.md."""
    rows = [f"| `{left.test}` | {left.what} | {left.reason} |" for left in nightly_rows()]
    return "\n".join(
        [
            "# What only `make nightly` runs",
            "",
            "Generated by `python -m tests.nightly`. Property tests draw a third of their examples",
            "in `make test`, the same ones in each run; `make nightly` draws all, other ones each",
            "time.",
            "",
            "| test | left out of `make test` | reason |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name}: {len(nightly_rows())} rows")  # noqa: T201 a command
