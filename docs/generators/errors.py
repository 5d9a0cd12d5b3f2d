"""docs/errors.md: every error and warning that a user can meet, read off the source.

Static: the syntax trees of the packages are walked for exception classes and for the calls that
make one; the parts of a message that are filled in at run time are shown as {names}.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("encoding", "probing", "assignor", "system_tests", "spark_assign")
_BASES = frozenset({"Exception", "ValueError", "RuntimeError", "RebalanceError", "ClickException"})
_ENCODE_WORDS = 4
_REFUSE_WORDS = 2  # sentence and status
_BY_STATUS = (
    ("EXIT_SURROUNDINGS", "SurroundingsFailed"),
    ("EXIT_INTERRUPTED", "Interrupted"),
    ("EXIT_BAD", "AnswerIsNo"),
)

STATUS = {
    "AlreadySupervisedError": "",
    "AnswerIsNo": "1",
    "BadInput": "2",
    "BadMembers": "2",
    "BadTable": "2",
    "BrokerError": "3",
    "ClusterUnavailable": "",
    "ConfigError": "2",
    "ConnectFailure": "3",
    "CopartitionMismatch": "2",
    "DecodeError": "2",
    "EmbeddingError": "",
    "EncodeError": "2",
    "FeatureError": "2",
    "Interrupted": "130",
    "LeaderRefused": "2",
    "MemberRefused": "2",
    "MemberStopped": "",
    "MissingSourceTopic": "2",
    "NotAllowed": "1",
    "NotAuthorized": "1",
    "OptionError": "2",
    "OrderError": "2",
    "OutputInTheWay": "2",
    "PartitionCountUnknown": "2",
    "PathError": "2",
    "ProblemError": "2",
    "RebalanceError": "2",
    "RebootstrapConfigError": "",
    "RebootstrapRequiredError": "",
    "ReleaseError": "2",
    "ReportError": "3",
    "SparkUnavailable": "3",
    "StateDirectoryLocked": "",
    "StoreError": "1, or 3 where the disk refused",
    "SurroundingsError": "3",
    "SurroundingsFailed": "3",
    "TaskAssignmentError": "2",
    "TopologyError": "",
    "UnfollowableAnswer": "",
    "UntestedClientError": "",
    "UsageError": "2",
    "ViewMismatch": "",
    "WrongRows": "2",
}
"""Class -> the exit status of a command that ends by it; "" where no command does."""

INSIDE = frozenset(
    {
        "DropConnectionError",
        "EndedEarly",
        "FrameError",
        "MemberDiedError",
        "NotAtRest",
        "NotInTime",
        "NotInTimeError",
        "Stuck",
        "WireError",
        "WireFault",
    }
)
"""Caught where they come from, and told as part of something else: a verdict, a `DecodeError`."""

_TOP = """# Errors and warnings

Printed by `python -m docs.generate` from the source. An error says whose fault it is by its class,
and which numbers and what to do by its message; {names} stand for what is filled in. Commands print
the message behind the name of the program; their exit status is the one that is given here.

Every class in `encoding`, `assignor` and `spark_assign` is a `RebalanceError`. The causes of the
errors of `assignor.embedding` and what a member does about each: [embedding.md](embedding.md).
"""


@dataclass(kw_only=True)
class Kind:
    """An exception class, and the templates of its messages."""

    name: str
    package: str
    bases: tuple[str, ...]
    said: str
    messages: set[str] = field(default_factory=set)


# Read by the tests and by the parent of a child process; what is wrong is told as something else.
_UNTOLD = frozenset({"system_tests/live/events.py", "system_tests/matrix_store.py"})


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Package and syntax tree of every module that is shipped."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            told = path.relative_to(ROOT).as_posix() not in _UNTOLD
            if told and not path.name.startswith(("test_", "conftest")):
                yield package, ast.parse(path.read_text(encoding="utf-8"))


def kinds(trees: list[tuple[str, ast.Module]]) -> dict[str, Kind]:
    """All exception classes by name, and what click and we say as such."""
    classes = [
        (package, node)
        for package, tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    found: dict[str, Kind] = {}
    grown = True
    while grown:
        grown = False
        for package, node in classes:
            bases = tuple(_name(base) for base in node.bases)
            if node.name not in found and any(b in _BASES or b in found for b in bases):
                said = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                found[node.name] = Kind(name=node.name, package=package, bases=bases, said=said)
                _own_messages(found[node.name], node)
                grown = True
    found["UsageError"] = Kind(
        name="UsageError",
        package="assignor",
        bases=(),
        said="Options that do not go together; options and commands that there are not.",
    )
    return found


def collected() -> tuple[dict[str, Kind], dict[str, set[str]]]:
    """Classes with the templates of all messages; and templates of warnings by package."""
    trees = list(sources())
    found = kinds(trees)
    warned: dict[str, set[str]] = defaultdict(set)
    for package, tree in trees:
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            name = _name(call.func)
            if name == "refuse" and len(call.args) > _REFUSE_WORDS:
                continue  # the broker's, which refuses requests
            if name in {"refuse", "failure"}:
                name = next((kind for word, kind in _BY_STATUS if _says(call, word)), "BadInput")
            if name in found and call.args:
                found[name].messages |= set(_said(name, call))
            elif name in {"warning", "warn"} and call.args and not _is_table(call):
                warned[package] |= set(templates(call.args[0])) - {"%s"}
    return found, warned


def _said(name: str, call: ast.Call) -> Iterator[str]:
    """Messages of a call that makes an error; of an `EncodeError` with the field and the reason."""
    if name != "EncodeError" or len(call.args) < _ENCODE_WORDS:
        yield from templates(call.args[0])
        return
    what = next(iter(templates(call.args[0])), "{field}")
    for why in templates(call.args[-1]):
        yield f"cannot write {what} = {{value}} in version {{version}}: {why}"


def templates(node: ast.expr) -> Iterator[str]:
    """What an expression may say, with fields for what is filled in; of a variable nothing."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=values):
            yield "".join(map(_part, values))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            for one in templates(left) or ():
                for two in list(templates(right)) or ["{" + _field(right) + "}"]:
                    yield one + two
        case ast.IfExp(body=body, orelse=orelse):
            yield from templates(body)
            yield from templates(orelse)


def render() -> str:
    """The whole page."""
    found, warned = collected()
    lines = [_TOP]
    for package in PACKAGES:
        rows = [kind for kind in public(found) if kind.package == package]
        lines += [f"## {package}", ""]
        for kind in sorted(rows, key=lambda one: one.name):
            lines += _section(kind)
        if warned[package]:
            lines += ["### Warnings", "", *_list(warned[package]), ""]
    return "\n".join(lines).rstrip() + "\n"


def public(found: dict[str, Kind]) -> list[Kind]:
    """The classes that a user can meet."""
    return [k for k in found.values() if not k.name.startswith("_") and k.name not in INSIDE]


def _section(kind: Kind) -> Iterator[str]:
    above = f" ({', '.join(kind.bases)})" if kind.bases else ""
    status = STATUS[kind.name]
    yield from (f"### {kind.name}{above}", "", kind.said)
    if status:
        yield f"Exit status of commands: {status}."
    yield ""
    if kind.messages:
        yield from (*_list(kind.messages), "")


def _list(messages: set[str]) -> list[str]:
    shown = (" ".join(text.split()) for text in messages)
    return [f"- `` {text} ``" if "`" in text else f"- `{text}`" for text in sorted(shown)]


def _own_messages(kind: Kind, node: ast.ClassDef) -> None:
    for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "__init__" and call.args:
            kind.messages |= set(templates(call.args[0]))


def _part(value: ast.expr) -> str:
    if isinstance(value, ast.Constant):
        return str(value.value)
    return "{" + _field(value.value if isinstance(value, ast.FormattedValue) else value) + "}"


def _field(node: ast.expr) -> str:
    """A short name of what is filled in; no source text, which each Python writes its own way."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=value):
            return str(value)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
            return f"{_field(left)} {'+' if isinstance(sign, ast.Add) else '-'} {_field(right)}"
    inner = _inner(node)
    return "..." if inner is None else _field(inner)


def _inner(node: ast.expr) -> ast.expr | None:
    """The part of an expression that says best what it is about."""
    match node:
        case ast.Call(func=ast.Attribute(attr="join"), args=[inner]) | ast.Call(args=[inner, *_]):
            return inner
        case ast.Call(func=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
            return inner
        case ast.GeneratorExp(generators=[first, *_]) | ast.ListComp(generators=[first, *_]):
            return first.iter
        case ast.BoolOp(values=[inner, *_]) | ast.IfExp(test=inner) | ast.Compare(left=inner):
            return inner
        case ast.UnaryOp(operand=inner) | ast.FormattedValue(value=inner):
            return inner
        case ast.JoinedStr(values=values):
            return next((one for one in values if isinstance(one, ast.FormattedValue)), None)
    return None


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _says(call: ast.Call, name: str) -> bool:
    return any(_name(one) == name for one in call.args[1:])


def _is_table(call: ast.Call) -> bool:
    """Whether it is no warning to a user: the module `warnings` filters are not."""
    return isinstance(call.func, ast.Attribute) and _name(call.func.value) == "simplefilter"
