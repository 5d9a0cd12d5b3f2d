"""A user's strategy from the current directory, without a change of `sys.path`."""

import subprocess
import sys
from pathlib import Path

import pytest

from assignor import ConfigError, named_strategy

STRATEGY = "from assignor import identity as own\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current directory, not on the import path; its modules are unloaded afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in {"", "."}])
    before, path = set(sys.modules), list(sys.path)
    yield tmp_path
    assert sys.path == path
    for name in set(sys.modules) - before:
        if name.startswith("placed_"):
            del sys.modules[name]


def written(folder, **files):
    for name, text in files.items():
        file = folder / f"{name.replace('__in__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")


def test_a_file_in_the_current_directory_is_loaded(folder):
    written(folder, placed_file=STRATEGY)
    assert named_strategy("placed_file:own").__name__ == "identity"
    assert sys.modules["placed_file"].__file__ == str(folder / "placed_file.py")


@pytest.mark.parametrize("init", ["", None])
def test_modules_of_a_package_import_each_other(folder, init):
    name = f"placed_{'regular' if init is not None else 'namespace'}"
    text = f"from . import helper\nfrom {name}.helper import own as same\nown = helper.own\n"
    written(folder, **{f"{name}__in__main": text, f"{name}__in__helper": STRATEGY})
    if init is not None:
        written(folder, **{f"{name}__in____init__": init})
    assert named_strategy(f"{name}.main:own").__name__ == "identity"


def test_the_import_path_comes_first(folder):
    written(folder, json="raise SystemExit(3)\n")
    with pytest.raises(ConfigError, match="json has no callable own"):
        named_strategy("json:own")


def test_a_file_does_not_import_the_files_beside_it(folder):
    written(folder, placed_one="import placed_two\n", placed_two=STRATEGY)
    with pytest.raises(ConfigError) as caught:
        named_strategy("placed_one:own")
    assert "module placed_one needs another one: No module named 'placed_two'" in str(caught.value)
    assert "placed_one" not in sys.modules


def test_the_error_for_a_missing_module_names_the_searched_folder(folder):
    written(folder, placed_there__in__main=STRATEGY)
    for name in ("placed_nowhere:own", "placed_there.no:own"):
        with pytest.raises(ConfigError, match="not in the current directory") as caught:
            named_strategy(name)
        assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("placed_there/main.py", "placed_there.main"),
        ("./placed_there/main", "placed_there.main"),
        ("../elsewhere/main.py", "elsewhere.main"),
        ("placed_there\\main.py", "placed_there.main"),
    ],
)
def test_a_path_is_refused_with_the_dotted_name(folder, path, name):
    written(folder, placed_there__in__main=STRATEGY)
    with pytest.raises(ConfigError) as caught:
        named_strategy(f"{path}:own")
    assert f"is a path, not a module; give its dotted name, such as {name}, " in str(caught.value)


def test_a_path_without_a_name_is_refused(folder):
    with pytest.raises(
        ConfigError, match=r"^/ is a path, not a module; give its dotted name, seen"
    ):
        named_strategy("/:own")


def test_a_file_that_fails_is_not_kept(folder):
    written(folder, placed_broken="1 / 0\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match="placed_broken cannot be imported, ZeroDivisionErr"):
            named_strategy("placed_broken:own")
    assert "placed_broken" not in sys.modules


@pytest.mark.usefixtures("clock")
def test_the_console_script_loads_a_file_of_its_directory(folder):
    written(folder, placed_script=STRATEGY)
    problem = Path(__file__).parents[2] / "problems" / "join.jsonl"
    script = Path(sys.executable).with_name("assignor")
    command = [script, "assign", "--problem", str(problem), "--strategy", "placed_script:own"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
