"""docs/extending.md: every name of this project beside a name of KIP-924 can be imported."""

import importlib
import re
from dataclasses import fields, is_dataclass

import pytest

from assignor.placement import AssignmentError
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/extending.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("### KIP-924's names")[2].partition("\n\n#")[0]
ROWS = [line.strip("| ").split(" | ") for line in TABLE.splitlines() if line.startswith("| `")]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`(assignor\.[\w.]+)`", row[1])})
HELPERS = PAGE.partition("| helper | import | does |")[2].partition("\n\n")[0]
# helper -> its import statement
IMPORTS = dict(re.findall(r"^\| (.+?) \| `(from [^`]+)` \|", HELPERS, re.MULTILINE))
# Every public type of org.apache.kafka.streams.processor.assignment in Kafka 4.0.
OF_KAFKA = [
    *("ApplicationState", "AssignmentConfigs", "KafkaStreamsAssignment", "KafkaStreamsState"),
    *("ProcessId", "TaskAssignmentUtils", "TaskAssignor", "TaskInfo", "TaskTopicPartition"),
    *("TaskAssignment", "AssignedTask", "AssignmentError", "RackAwareOptimizationParams"),
    *("StickyTaskAssignor", "validateTaskAssignment", "identityAssignment"),
    *("defaultStandbyTaskAssignment", "optimizeRackAwareActiveTasks"),
    "optimizeRackAwareStandbyTasks",
]


def found(dotted):
    """What a dotted name leads to: a module first, then attributes; fields of a dataclass too."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if is_dataclass(value) and name in {item.name for item in fields(value)}:
                return name
            value = getattr(value, name)
        return value
    raise AssertionError(dotted)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_imported(name):
    assert found(name) is not None


def test_every_type_of_kip_924_has_a_row():
    cells = " ".join(row[0] for row in ROWS)
    assert [name for name in OF_KAFKA if not re.search(rf"\b{name}\b", cells)] == []
    assert len(NAMES) > 20


def test_the_number_of_native_codes_is_right():
    assert len(AssignmentError) == 6 + 4
    assert "the same names, and four of our own" in TABLE


def test_every_helper_names_its_import():
    rows = [line for line in HELPERS.splitlines() if line.startswith("| `")]
    assert len(IMPORTS) == len(rows) > 10


@pytest.mark.parametrize("helper", IMPORTS)
def test_the_import_of_a_helper_brings_it_from_a_front_door(helper):
    _, where, _, names = IMPORTS[helper].split(maxsplit=3)
    module, imported = importlib.import_module(where), names.split(", ")
    assert all(hasattr(module, name) and name in module.__all__ for name in imported)
    used = re.findall(r"[`{ ](\w+)(?=[`(])", helper)
    assert used
    assert set(used) <= set(imported)
