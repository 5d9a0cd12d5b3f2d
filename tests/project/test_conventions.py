"""Conventions of the project: sizes, clean text, current generated pages."""

import ast
import re
from pathlib import Path

import pytest

from docs.generate import drifted
from tests.project.checkout import ROOT, files

PACKAGES = ("encoding", "probing", "assignor", "spark_assign", "system_tests")
MODULE_LINES = 350
FUNCTION_LINES = 60
README_LINES = 160
DEFINITION = re.compile(r"( *)(?:async def|def|class)\b")


def shipped():
    return [path for path in files(".py") if path.relative_to(ROOT).parts[0] in PACKAGES]


def test_modules_are_small():
    sizes = {
        p.relative_to(ROOT).as_posix(): len(p.read_text(encoding="utf-8").splitlines())
        for p in files(".py")
    }
    assert {name: n for name, n in sizes.items() if n > MODULE_LINES} == {}


def test_functions_fit_a_screen():
    long = {}
    for path in files(".py"):
        text = path.read_text(encoding="utf-8")
        for name, length in lengths(text) if may_be_long(text) else ():
            if length > FUNCTION_LINES:
                long[f"{path.relative_to(ROOT)}:{name}"] = length
    assert long == {}


def may_be_long(text):
    """Whether definitions of one level are far apart; most files need not be parsed then."""
    lines = text.splitlines()
    starts = [(n, len(word[1])) for n, line in enumerate(lines) if (word := DEFINITION.match(line))]
    for at, (number, indent) in enumerate(starts):
        following = (n for n, other in starts[at + 1 :] if other <= indent)
        if next(following, len(lines)) - number > FUNCTION_LINES:
            return True
    return False


def lengths(text):
    """Names and lines of all functions. Only statements are looked at: they hold functions."""
    waiting = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.end_lineno - node.lineno + 1
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            statements = getattr(node, field, None)
            waiting += statements if isinstance(statements, list) else []


def test_every_function_is_measured():
    text = """
class Outer:
    async def first(self):
        try:
            pass
        except OSError:
            def second(): return 1
        match self:
            case _:
                def third():
                    return 1
"""
    assert sorted(lengths(text)) == [("first", 9), ("second", 1), ("third", 2)]
    assert not may_be_long(text)
    assert may_be_long(text + "        pass\n" * (FUNCTION_LINES + 1))


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed(package):
    assert (ROOT / package / "py.typed").exists()


def test_no_test_module_is_used_by_another_one():
    pattern = re.compile(r"^from tests[\w.]*(?:\.test_\w+ import| import .*\btest_)", re.MULTILINE)
    users = [
        p.relative_to(ROOT) for p in files(".py") if pattern.search(p.read_text(encoding="utf-8"))
    ]
    assert users == []


def test_generated_pages_have_not_drifted():
    assert drifted() == [], "run python -m docs.generate"


def test_readme_is_short_and_starts_with_a_command():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES
    assert "```console" in lines[:8]


def test_changelog_has_a_wire_heading_for_each_release():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = re.findall(r"^## .*?(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert releases
    assert [r.splitlines()[0] for r in releases if "### Wire" not in r] == []


def test_no_file_names_a_place_outside_the_project():
    pattern = re.compile(
        r"/(?:work|root|home)/|\.\./(?:shared|\.library)|://[^/\s]*(?:pypi|maven)\."
    )
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files(".py", ".md", ".toml", ".txt", "Makefile", "run")
        if path.name != "test_conventions.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []


def opens_text(call):
    """Whether a call reads or writes text in the encoding of the locale; modes are literals."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if "encoding" in {word.arg for word in call.keywords}:
        return False
    if name in {"read_text", "write_text"}:
        return len(call.args) == ["read_text", "write_text"].index(name)
    words = [word.value for word in call.args if isinstance(word, ast.Constant)]
    modes = [word for word in words if re.fullmatch(r"[rwax][bt+]*", str(word))]
    if modes:
        return name.lower().endswith(("open", "temporaryfile")) and "b" not in modes[0]
    return name == "fdopen" or getattr(call.func, "id", "") == "open"


def test_text_of_files_is_utf_8_in_every_locale():
    found = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in files(".py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and opens_text(call)
    ]
    assert found == []


def test_comments_excuse_every_silenced_check():
    silent = re.compile(r"#\s*(?:noqa(?::\s*[A-Z0-9, ]+)?|type:\s*ignore(?:\[[^\]]*\])?)\s*$")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in shipped()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if silent.search(line)
    ]
    assert found == []


def test_a_test_that_fails_is_not_run_again():
    """A race that a retry hides counts as a race of the product."""
    again = re.compile(
        r"re-?runs?failures|flakefinder|pytest[-_](retry|flaky)|(?<=mark\.)flaky|--reruns"
    )
    names = ("pyproject.toml", "constraints.txt", "requirements.lock", "Makefile")
    paths = [*(ROOT / name for name in names), *files(".py")]
    found = {
        p.relative_to(ROOT).as_posix() for p in paths if again.search(p.read_text(encoding="utf-8"))
    }
    assert found - {Path(__file__).relative_to(ROOT).as_posix()} == set()
