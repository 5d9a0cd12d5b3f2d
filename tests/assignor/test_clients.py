"""A client library that is missing or too old is one sentence that says what to install."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from assignor.clients import CLIENT_LIBRARIES, UnfitClient, require_client

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = {
    "kafka-python": "kafka_python",
    "aiokafka": "aiokafka",
    "confluent-kafka": "confluent",
}
COMMAND = (
    "import sys; sys.argv[1:] = 'inspect --bootstrap-server h:1 --all'.split();"
    "from assignor.cli import main; main()"
)
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


OTHER = {"kafka-python": "2.2.15", "aiokafka": "0.11.0", "confluent-kafka": "2.5.3"}
# Imports each adapter in place of whose library there is a module of another release, then that of
# confluent-kafka without kafka-python.
IMPORTS = """
import importlib, sys
from types import SimpleNamespace
from assignor import clients

def imported(adapter, module, library):
    sys.modules[module] = library
    try:
        importlib.import_module(f"assignor.adapters.{{adapter}}")
    except ImportError as error:
        print(f"{{type(error).__name__}}: {{error}}")
    del sys.modules[module]

for adapter, module, release in {given!r}:
    imported(adapter, module, SimpleNamespace(__version__=release))
clients._version_by_metadata = lambda _: None
imported("confluent", "kafka", None)
"""


def fits_not(name, found):
    library = CLIENT_LIBRARIES[name]
    wanted = f"{library.at_least} or newer" + (f", below {library.below}" if library.below else "")
    return (
        f"{name} {found} is installed, and this adapter needs {name} {wanted}: "
        f"pip install 'streams-rebalance[{library.extra}]'"
    )


@pytest.mark.parametrize(("name", "found"), [*OTHER.items(), ("kafka-python", "4.0")])
def test_another_release_is_one_sentence_with_both_releases(monkeypatch, name, found):
    other = SimpleNamespace(__version__=found)
    monkeypatch.setitem(sys.modules, CLIENT_LIBRARIES[name].module, other)
    with pytest.raises(UnfitClient) as raised:
        require_client(name)
    assert str(raised.value) == fits_not(name, found)


def test_a_release_that_does_not_import_is_told_by_its_metadata(tmp_path, monkeypatch):
    metadata = tmp_path / "kafka_python-2.0.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: kafka-python\nVersion: 2.0.2\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(UnfitClient, match=re.escape("kafka-python 2.0.2 is installed")):
        require_client("kafka-python")


@pytest.mark.usefixtures("clock")
def test_each_adapter_checks_its_library_first_and_names_its_own_extra():
    given = [(ADAPTERS[n], CLIENT_LIBRARIES[n].module, found) for n, found in OTHER.items()]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(given=given)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    *unfit, missing = done.stdout.splitlines()
    assert unfit == [f"UnfitClient: {fits_not(name, found)}" for name, found in OTHER.items()]
    assert missing.startswith("ModuleNotFoundError: kafka-python is not installed")
    assert missing.endswith("pip install 'streams-rebalance[confluent]'")


def test_a_missing_library_is_one_sentence_and_keeps_its_name(monkeypatch):
    monkeypatch.setattr("assignor.clients._installed_version", lambda *_: None)
    with pytest.raises(ModuleNotFoundError, match="kafka-python is not installed") as raised:
        require_client("kafka-python")
    assert raised.value.name == "kafka"
    assert "pip install 'streams-rebalance[kafka]'" in str(raised.value)


@pytest.mark.usefixtures("clock")
def test_a_command_ends_with_the_same_sentence(tmp_path):
    (tmp_path / "kafka.py").write_text("__version__ = '2.2.15'", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    [line] = done.stderr.splitlines()
    assert "kafka-python 2.2.15 is installed" in line


@pytest.mark.parametrize("name", CLIENT_LIBRARIES)
def test_the_installed_libraries_fit(name):
    require_client(name)


@pytest.mark.parametrize("name", CLIENT_LIBRARIES)
def test_releases_are_those_of_the_extras(name):
    library = CLIENT_LIBRARIES[name]
    [found] = [each for each in map(Requirement, EXTRAS[library.extra]) if each.name == name]
    wanted = f">={library.at_least}" + (f",<{library.below}" if library.below else "")
    assert found.specifier == SpecifierSet(wanted)


def test_the_extra_for_confluent_brings_the_member_that_its_adapter_uses():
    needs = {Requirement(each).name for each in EXTRAS["confluent"]}
    assert needs >= {Requirement(each).name for each in EXTRAS["kafka"]}
