"""Folders: few modules, no three names with the same first word, one front door."""

import ast
import importlib
import importlib.util
import io
import operator
import re
import tokenize
from collections import Counter, defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.project.checkout import ROOT, files

PACKAGES = ("encoding", "probing", "assignor", "spark_assign", "system_tests")
MODULES_IN_A_FOLDER = 16
NAMES_OF_A_FRONT_DOOR = 60
# What an application needs first.
NAMES_FOR_APPLICATIONS = 30
OF_A_FAMILY = 3


def folders():
    """Folder -> names of its modules, without the prefix `test_`."""
    found = defaultdict(list)
    for path in files(".py"):
        if path.name != "__init__.py":
            folder = path.parent.relative_to(ROOT).as_posix()
            found[folder].append(path.stem.removeprefix("test_"))
    return found


FOLDERS = folders()
SHIPPED = {folder for folder in FOLDERS if folder.split("/")[0] in PACKAGES}
DOORS = sorted(
    door.parent.relative_to(ROOT).as_posix().replace("/", ".")
    for package in PACKAGES
    for door in (ROOT / package).rglob("__init__.py")
    # In an environment of its own: `make test-quix`.
    if door.parent.name != "quix" or find_spec("quixstreams")
)


def test_no_folder_has_more_modules_than_a_reader_can_hold():
    assert {f: len(names) for f, names in FOLDERS.items() if len(names) > MODULES_IN_A_FOLDER} == {}


def test_three_modules_with_the_same_first_word_are_a_folder():
    families = {
        folder: [
            word
            for word, count in Counter(name.split("_")[0] for name in names).items()
            if count >= OF_A_FAMILY
        ]
        for folder, names in FOLDERS.items()
    }
    assert {folder: words for folder, words in families.items() if words} == {}


def test_no_module_is_named_like_its_folder():
    assert [f for f, names in FOLDERS.items() if f.rpartition("/")[2] in names] == []


@pytest.mark.parametrize("folder", sorted(SHIPPED))
def test_every_folder_of_the_product_has_a_front_door(folder):
    if not folder.startswith("system_tests/scenarios"):
        assert (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("package", DOORS)
def test_front_doors_list_names_that_exist(package):
    door = importlib.import_module(package)
    assert door.__doc__
    names = getattr(door, "__all__", [])
    assert [name for name in names if not hasattr(door, name)] == []
    assert len(names) <= (
        NAMES_FOR_APPLICATIONS if package == "assignor" else NAMES_OF_A_FRONT_DOOR
    )
    imported = {
        alias.asname or alias.name
        for node in ast.parse(Path(door.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] in PACKAGES
        for alias in node.names
    }
    assert imported <= set(names)


def test_modules_that_docstrings_name_exist():
    known = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    wrong = [
        f"{folder}: {name}"
        for folder in sorted(SHIPPED)
        for path in sorted((ROOT / folder).glob("*.py"))
        for name in re.findall(r"`([\w]+\.py)`", path.read_text(encoding="utf-8"))
        if name not in known
    ]
    assert wrong == []


def names_in_strings():
    """File -> dotted names below the packages in strings and comments."""
    dotted = re.compile(rf"(?<![\w./])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+")
    imports = re.compile(r"^ *(?:from [\w.]+ import|import [\w.]+)", re.MULTILINE)
    for folder in sorted(FOLDERS):
        for path in sorted((ROOT / folder).glob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not dotted.search(imports.sub("", text)):  # nothing to find: tokens are dear
                continue
            lines = io.StringIO(text)
            for token in tokenize.generate_tokens(lines.readline):
                if token.type in {tokenize.STRING, tokenize.COMMENT}:
                    for name in dotted.findall(token.string):
                        yield path.relative_to(ROOT).as_posix(), name


def exists(name):
    """Whether a dotted name is a module of the project, or defined in a module or its class."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        if module_spec(".".join(parts[:end])) is not None:
            if not parts[end:]:
                return True
            try:
                operator.attrgetter(".".join(parts[end:]))(
                    importlib.import_module(".".join(parts[:end]))
                )
            except AttributeError:
                return False
            return True
    return False


def module_spec(name):
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None


# Two that must not exist in tests, and a variable inside f-strings.
ABSENT = {"assignor.gone", "system_tests.nothing", "assignor.failed"}


def test_modules_in_strings_and_docstrings_exist():
    """Processes are started by module names in strings, which no type checker sees."""
    wrong = {f"{file}: {name}" for file, name in names_in_strings() if not exists(name)}
    assert {line for line in wrong if line.split()[1] not in ABSENT} == set()
