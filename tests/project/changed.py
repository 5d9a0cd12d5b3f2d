"""Run the fast tests of changed files: `make check`.

Changed files differ from the merge base with origin/main, else with main (from the last commit, if
there is neither), or are not tracked yet. How tests are chosen:

- a changed module of the product stands for its sub-package (`assignor.placement`); the tests of
  that sub-package run, and those of every sub-package that imports the changed module itself, or
  that imports its sub-package and is of the same package. So a change of `encoding.kafka` does not
  run the tests of `assignor`, which import the front door of `encoding`: `make test` does;
- tests below `tests/PACKAGE` that have the name of no sub-package run with each module of the
  package that they import, directly or not;
- a sub-package without tests of its own, as `system_tests.support`, runs those of its package, and
  `system_tests` its scenarios too;
- a changed test file is run itself, and its tests that are not fast are named at the end; a changed
  helper, its folder and those that import it; a file of data, the nearest folder that has tests;
- a helper that a conftest.py loads runs all tests below this folder: all fast tests, if it is the
  one of the project;
- a changed page runs tests/docs; a generator of pages, what compares pages with the code too;
- a page or a file of data also runs the test files that name it;
- a changed command runs tests/cli, and any module of the product tests/planted, which has lines of
  it;
- a module of benchmarks, fuzz or docs runs the test files that import it, directly or not;
- files on which all tests depend run all fast tests;
- tests/project runs always.

A renamed file counts with both of its names.

Exit status: that of pytest; 1 when git fails.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import click
import grimp

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("encoding", "probing", "assignor", "spark_assign", "system_tests")
CONFTEST: Final = "conftest.py"
EVERYTHING: Final = (
    "Makefile",
    CONFTEST,
    "constraints-quix.txt",
    "constraints.txt",
    "pyproject.toml",
    "requirements-quix.lock",
    "requirements.lock",
)
SCENARIOS: Final = "system_tests/scenarios"
# Folders without tests of their own, and the tests that run for any file of theirs.
TESTS_OF: Final = {
    "benchmarks/": ("tests/project",),
    "docs/": ("tests/docs",),
    "docs/generat": ("tests/docs", "tests/cli", "tests/encoding"),
    "examples/": ("tests/docs",),
    "fuzz/": ("tests/fuzz",),
}
# Tests of the product that are not of one sub-package.
COMMANDS: Final = re.compile(r"(assignor|spark_assign|system_tests)/cli/")
TESTS_OF_COMMANDS: Final = "tests/cli"
TESTS_OF_LINES: Final = "tests/planted"
ALWAYS: Final = "tests/project"
FAST: Final = "not slow and not clock and not real and not nightly"
_NOTHING_RAN: Final = 5


def base_of(root: Path = ROOT) -> str:
    """Merge base with origin/main, else with main; `HEAD` if there is neither.

    Raises:
        ClickException: git fails.
    """
    names = ("refs/heads/main", "refs/remotes/origin/main")
    refs = _git(root, "for-each-ref", "--format=%(refname)%00", *names)
    return _git(root, "merge-base", "HEAD", refs[-1].strip())[0].strip() if refs else "HEAD"


def changed_files(root: Path = ROOT) -> list[str]:
    """Files that differ from the merge base with main, or from HEAD; new ones too.

    Raises:
        ClickException: git fails.
    """
    names = _git(root, "diff", "--name-only", "--no-renames", "-z", base_of(root))
    return sorted({*names, *_git(root, "ls-files", "-z", "--others", "--exclude-standard")})


def _git(root: Path, *words: str) -> list[str]:
    command = ["git", *words]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, check=False)
    except OSError as error:
        raise click.ClickException(f"git does not run: {error}; install it") from error
    if done.returncode:
        message = os.fsdecode(done.stderr).strip()
        raise click.ClickException(
            f"`{' '.join(command)}` ended with status {done.returncode}, so that what changed is"
            f" not known: {message}; run it in a checkout, or run `make test`"
        )
    return [name for name in os.fsdecode(done.stdout).split("\0") if name.strip()]


def module_of(name: str) -> str:
    """Dotted name of a Python file: `encoding/kafka/__init__.py` is `encoding.kafka`."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def unit_of(module: str) -> str:
    """Package and sub-package of a module."""
    return ".".join(module.split(".")[:2])


def units_of(module: str, graph: grimp.ImportGraph) -> set[str]:
    """Sub-packages whose tests look at a module: its own, and those that import it."""
    own = unit_of(module)
    units = {own}
    if module in graph.modules:
        units |= {unit_of(importer) for importer in graph.find_modules_that_directly_import(module)}
    package = own.split(".")[0]
    for candidate in sorted(graph.modules):
        if candidate.startswith(f"{package}.") and unit_of(candidate) not in units:
            imported = graph.find_modules_directly_imported_by(candidate)
            if any(other == own or other.startswith(f"{own}.") for other in imported):
                units.add(unit_of(candidate))
    return units


def tests_of(unit: str) -> str | None:
    """Where the tests of a sub-package are; those of its package's own folder, failing that."""
    folder = f"tests/{unit.replace('.', '/')}"
    file = f"{folder.rpartition('/')[0]}/test_{unit.rpartition('.')[2]}.py"
    return next((path for path in (folder, file) if (ROOT / path).exists()), None)


def unnamed_tests_of(module: str, graph: grimp.ImportGraph) -> set[str]:
    """Tests of its package that have no sub-package's name and import it, directly or not."""
    package = module.partition(".")[0]
    found = set()
    for file, names in _imports().items():
        path = Path(*Path(file).parts[:3])
        own_name = f"{package}.{path.stem.removeprefix('test_')}"
        is_test = _is_test(path.name) or not path.suffix
        if file.startswith(f"tests/{package}/") and is_test and own_name not in graph.modules:
            used = {
                other
                for name in names & graph.modules
                for other in (name, *graph.find_upstream_modules(name))
            }
            # A command imports its modules by name when it is called.
            if module in used or f"{package}.cli.main" in used:
                found.add(path.as_posix())
    return found


def importers_of(name: str) -> list[str]:
    """Files that import a Python file, directly or not: of tests, benchmarks, fuzz and docs."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        module = module_of(waiting.pop())
        new = [file for file, names in _imports().items() if module in names and file not in found]
        found.update(new)
        waiting += new
    return sorted(found - {name})


@cache
def _imports() -> dict[str, frozenset[str]]:
    """Names that files import, with all that could be a module: `from a import b` is a and a.b."""
    found = {}
    folders = ("benchmarks", "docs", "fuzz", "tests", SCENARIOS)
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in (ROOT / CONFTEST, *paths):
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytest_plugins":
                names |= set(ast.literal_eval(node.value))
        found[path.relative_to(ROOT).as_posix()] = frozenset(names)
    return found


def naming(name: str) -> set[str]:
    """Test files that name a page or a file of data."""
    path = Path(name)
    texts = (f"/{path.name}", f'"{path.name}"')
    return {file for file, text in _sources().items() if any(part in text for part in texts)}


@cache
def _sources() -> dict[str, str]:
    """Test files and their text."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for folder in ("tests", SCENARIOS)
        for path in sorted((ROOT / folder).rglob("test_*.py"))
    }


def chosen(files: Iterable[str], graph: grimp.ImportGraph) -> list[str]:
    """Folders and files of tests for changed files, sorted; `tests` for all of them."""
    found = {ALWAYS}
    for name in files:
        is_helper = name.startswith("tests/") and name.endswith(".py")
        if name in EVERYTHING or (is_helper and CONFTEST in importers_of(name)):
            return ["tests", SCENARIOS]
        if not name.endswith(".py"):
            found |= naming(name)
        if name.startswith(("tests/", f"{SCENARIOS}/")):
            found |= _tests_for_test_file(name)
        elif name.endswith(".md"):
            found.add("tests/docs")
        elif name.split("/")[0] in PACKAGES:
            found |= _tests_for_product(name, graph)
        else:
            found |= {
                test for top, tests in TESTS_OF.items() if name.startswith(top) for test in tests
            }
            found |= {file for file in importers_of(name) if _is_test(file)}
    existing = {path for path in found if (ROOT / path).exists()}
    return sorted(
        path for path in existing if not any(path.startswith(f"{other}/") for other in existing)
    )


def _is_test(name: str) -> bool:
    return Path(name).name.startswith("test_") and name.endswith(".py")


def _tests_for_test_file(name: str) -> set[str]:
    """A test file itself; folders of a helper and of those that import it; else the nearest."""
    importers = importers_of(name) if name.endswith(".py") else []
    found = {
        Path(file).parent.as_posix()
        for file in importers
        if _is_test(file) or Path(file).name == CONFTEST
    }
    if _is_test(name):
        return {*found, name}
    folder = Path(name).parent
    if not found:
        while folder != Path("tests") and not any((ROOT / folder).rglob("test_*.py")):
            folder = folder.parent
    return {*found, folder.as_posix()}


def _tests_for_product(name: str, graph: grimp.ImportGraph) -> set[str]:
    is_python = name.endswith(".py")
    module = module_of(name if is_python else Path(name).parent.as_posix())
    units = units_of(module, graph) if is_python else {unit_of(module)}
    found = {path for unit in units if (path := tests_of(unit))}
    if is_python:
        found |= unnamed_tests_of(module, graph)
        found |= {TESTS_OF_LINES, *([TESTS_OF_COMMANDS] if COMMANDS.match(name) else [])}
    if not tests_of(unit_of(module)):
        package = module.partition(".")[0]
        found |= {f"tests/{package}", *([SCENARIOS] if package == "system_tests" else [])}
    return found


def tests_left(files: Sequence[str]) -> list[str]:
    """Those of these test files with tests that are not fast."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", f"not ({FAST})"]
    collected = subprocess.run(
        [*command, *files],
        cwd=ROOT,
        env={**os.environ, "NIGHTLY": "1"},
        capture_output=True,
        check=False,
    ).stdout
    return [file for file in files if f"{file}::" in os.fsdecode(collected)]


@click.command(help=__doc__)
@click.option("--workers", type=int, default=2, show_default=True, help="Processes that test.")
@click.option("--list", "is_list", is_flag=True, help="Print what would run, and end.")
def main(*, workers: int, is_list: bool) -> None:
    """Choose, print, test."""
    files, base = changed_files(), base_of()
    if not files and base in {"HEAD", _git(ROOT, "rev-parse", "HEAD")[0].strip()}:
        click.echo("nothing differs from HEAD, and HEAD is on main: `make test` runs all tests")
    graph = grimp.build_graph(*PACKAGES, cache_dir=str(ROOT / ".import_linter_cache"))
    tests = chosen(files, graph)
    click.echo(f"{len(files)} changed files; fast tests of: {' '.join(tests)}")
    if is_list:
        return
    # A file stays on one worker, which makes its fixtures once.
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--dist", "loadgroup"]
    command += ["--no-loadscope-reorder", "-m", FAST, *tests]
    status = subprocess.run(command, cwd=ROOT, env=os.environ, check=False).returncode
    if left := tests_left([file for file in files if _is_test(file) and (ROOT / file).exists()]):
        click.echo(f"not run, as they are not fast: the other tests of {' '.join(left)}; run them")
        click.echo(f"    NIGHTLY=1 python -m pytest -n 0 {' '.join(left)}")
    sys.exit(0 if status == _NOTHING_RAN else status)


if __name__ == "__main__":
    main()
