"""Errors as a user reads them: docs/errors.md has them all, and each says what to do or points."""

import importlib
import inspect
import pkgutil
import re

import pytest

from assignor import ConfigError
from docs.generators.errors import INSIDE, PACKAGES, STATUS, collected, public, render
from encoding import RebalanceError
from spark_assign.errors import BadTable

FOUND, WARNED = collected()
SHOWN = {kind.name: kind for kind in public(FOUND)}

# Whose fault it is that these are raised can do something about it, and is told what.
ADVISED = frozenset(
    {
        "AnswerIsNo",
        "BadInput",
        "BrokerError",
        "ConfigError",
        "FeatureError",
        "NotAuthorized",
        "OptionError",
        "OrderError",
        "OutputInTheWay",
        "PathError",
        "ReleaseError",
        "SparkUnavailable",
        "SurroundingsError",
        "SurroundingsFailed",
        "TopologyError",
        "UntestedClientError",
        "UsageError",
    }
)
ADVICE = re.compile(
    r"[;?]|\b(add|allowed|ask|at least|at most|between|choose|expected|give|go from|have to|known"
    r"|leave|make|must|name each|needs?|only|put|say|set|start|take|there are|use|write)\b"
)
# A message that ends in another one, or in what the operating system says, leaves advice to that.
PASSED_ON = re.compile(
    r"\{(advice|error|failed|fault|hint|last|reasons?|refusals|said|strerror|todo|tried|why|wrong)\}"
)
EXCUSED: dict[str, str] = {}


def test_the_page_has_every_public_exception_of_the_packages():
    missing = set()
    for package in PACKAGES:
        for module in modules_of(package):
            for name, found in inspect.getmembers(module, inspect.isclass):
                is_ours = found.__module__ == module.__name__ and issubclass(found, Exception)
                if is_ours and not name.startswith("_") and name not in INSIDE:
                    missing |= {name} - SHOWN.keys()
    assert missing == set()
    page = render()
    assert [name for name in SHOWN if f"### {name}" not in page] == []


def modules_of(package):
    top = importlib.import_module(package)
    for row in pkgutil.walk_packages(top.__path__, f"{package}."):
        last = row.name.rpartition(".")[2]
        if not last.startswith(("test_", "conftest", "__main__")) and "confluent" not in last:
            yield importlib.import_module(row.name)


def test_every_class_has_its_exit_status_and_says_whose_fault_it_is():
    assert SHOWN.keys() ^ STATUS.keys() == set()
    assert [kind.name for kind in SHOWN.values() if not kind.said.endswith((".", "):"))] == []
    assert [name for name in INSIDE if name not in FOUND] == []


@pytest.mark.parametrize("name", sorted(ADVISED))
def test_who_can_do_something_is_told_what(name):
    silent = [
        text
        for text in SHOWN[name].messages
        if not ADVICE.search(text) and not PASSED_ON.search(text) and text not in EXCUSED
    ]
    assert silent == []


@pytest.mark.parametrize("name", sorted(SHOWN.keys() - ADVISED))
def test_others_name_what_they_are_about(name):
    """A field that is filled in, or more words than a shrug has."""
    vague = [
        text
        for text in SHOWN[name].messages
        if "{" not in text and len(text.split()) < 5 and text != "interrupted"
    ]
    assert vague == []


def test_no_message_ends_in_a_full_stop_of_its_own():
    ended = [
        text
        for name in ADVISED - {"UsageError"}
        for text in SHOWN[name].messages
        if text.endswith(".")
    ]
    assert ended == []


def test_errors_of_ours_have_one_root():
    assert all(issubclass(kind, RebalanceError) for kind in (ConfigError, BadTable))


def test_warnings_are_on_the_page():
    page = render()
    assert WARNED["assignor"]
    assert all(" ".join(text.split()) in page for text in WARNED["assignor"])
