"""A client library that is missing or too old is one sentence that says what to install."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from assignor.clients import CLIENT_LIBRARIES, require_client

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
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def error_of(tmp_path, name, source):
    """What `import` of an adapter ends with, where a module of ours stands for the library."""
    library = CLIENT_LIBRARIES[name]
    (tmp_path / f"{library.module}.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-c", f"import assignor.adapters.{ADAPTERS[name]}"],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("kafka-python", "2.2.15"),
        ("kafka-python", "4.0"),
        ("aiokafka", "0.11.0"),
        ("confluent-kafka", "2.5.3"),
    ],
)
def test_another_release_is_one_sentence_with_both_releases(tmp_path, name, found):
    library = CLIENT_LIBRARIES[name]
    error = error_of(tmp_path, name, f"__version__ = {found!r}")
    assert f"UnfitClient: {name} {found} is installed, and this adapter needs" in error
    assert f"{library.at_least} or newer" in error
    assert error.endswith(f"pip install 'streams-rebalance[{library.extra}]'")


def test_a_release_that_does_not_import_is_told_by_its_metadata(tmp_path):
    metadata = tmp_path / "kafka_python-2.0.2.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: kafka-python\nVersion: 2.0.2\n"
    )
    error = error_of(tmp_path, "kafka-python", "import kafka.vendor.six.moves")
    assert "kafka-python 2.0.2 is installed" in error


def test_a_missing_library_is_one_sentence_and_keeps_its_name(monkeypatch):
    monkeypatch.setattr("assignor.clients._installed_version", lambda *_: None)
    with pytest.raises(ModuleNotFoundError, match="kafka-python is not installed") as raised:
        require_client("kafka-python")
    assert raised.value.name == "kafka"
    assert "pip install 'streams-rebalance[kafka]'" in str(raised.value)


def test_a_command_ends_with_the_same_sentence(tmp_path):
    (tmp_path / "kafka.py").write_text("__version__ = '2.2.15'")
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


def test_without_kafka_python_the_adapter_for_confluent_names_its_own_extra(tmp_path):
    (tmp_path / "kafka.py").write_text("raise ModuleNotFoundError('kafka', name='kafka')")
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    code = "from assignor import clients; clients._version_by_metadata = lambda _: None\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "import assignor.adapters.confluent"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "kafka-python is not installed" in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].endswith("pip install 'streams-rebalance[confluent]'")


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
