"""What applications import comes from `assignor`, and what they do not need is not loaded."""

import importlib
import re
import subprocess
import sys

import pytest

import assignor
from tests.docs.pages import ROOT, blocks

CLIENTS = {"kafka", "aiokafka", "confluent_kafka"}
TOOLS = {"networkx", "rich", "click", "javaproperties", "pandas", "pyspark", "prometheus_client"}
INSIDE = {"assignor.cli", "assignor.inspection", "assignor.problems", "assignor.explain"}
MEMBER = """
from assignor import InternalTopicSettings, RunningTasks, Topology
topology = Topology().add_source("w", topics=["w"]).add_processor("c", parents=["w"])
topology.add_state_store("s", processors=["c"])
StreamsAssignor(topology, listener=RunningTasks(), internal_topics=InternalTopicSettings()).close()
"""
# Where the names of `assignor` come from, and its sub-packages for other uses.
PARTS = r"encoding|assignor\.(?:embedding|observe|levels|stores|placement|rebalance|errors)"
IMPORT = re.compile(rf"^from ({PARTS}) import (?:\(([^)]*)\)|([^\n#]*))", re.MULTILINE)


def loaded(code):
    """Names of all modules that a new process has loaded after the code."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.usefixtures("clock")
def test_assignor_alone_loads_no_client_and_no_tool():
    assert loaded("import assignor") & (CLIENTS | TOOLS | INSIDE) == set()


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("adapter", "client"), [("kafka_python", "kafka"), ("aiokafka", "aiokafka")]
)
def test_a_member_loads_its_client_and_nothing_else_that_it_does_not_need(adapter, client):
    found = loaded(f"from assignor.adapters.{adapter} import StreamsAssignor\n{MEMBER}")
    assert found & (CLIENTS | TOOLS | INSIDE) == {client}


# Programs import these from here without a warning, though they are not what they need first.
STAYS = [
    "ClientInput",
    "GroupMember",
    "GroupState",
    "LAG_RUNNING",
    "LeaderKnowledge",
    "LeaderSettings",
    "MemberIdentity",
    "OffloadedPlans",
    "PlanStore",
    "StreamsMember",
    "TaskAssignment",
    "assign_group",
    "default_standbys",
    "group_state",
    "high_availability",
    "identity",
    "named_strategy",
    "quotas",
    "read_problem",
    "run_strategy",
    "sticky",
    "thread_bands",
    "traffic_of",
    "validate",
]


def test_every_name_is_there_also_those_that_are_loaded_late():
    missing = [name for name in [*assignor.__all__, *STAYS] if not hasattr(assignor, name)]
    assert missing == []
    with pytest.raises(AttributeError, match="no attribute 'TaskID'"):
        assignor.TaskID  # noqa: B018


@pytest.mark.parametrize("name", sorted(assignor.MOVED))
def test_a_name_that_has_moved_is_the_one_of_its_new_place_and_warns(name):
    with pytest.warns(DeprecationWarning, match=rf"from {assignor.MOVED[name]} import {name}`"):
        found = getattr(assignor, name)
    assert found is getattr(importlib.import_module(assignor.MOVED[name]), name)


def test_the_warning_names_the_line_that_imports():
    with pytest.warns(DeprecationWarning, match="until 0.3") as seen:
        exec("from assignor import by_task")  # noqa: S102 a program's line
    assert {warning.filename for warning in seen} == {"<string>"}


def programs():
    """(where, text) of all Python that users read: pages and examples."""
    for page in [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]:
        for block in blocks(page):
            if block.kind == "python":
                yield str(block), block.body
    folders = ROOT / "examples", ROOT / "assignor/examples"
    for example in sorted(path for folder in folders for path in folder.rglob("*.py")):
        yield example.relative_to(ROOT).as_posix(), example.read_text(encoding="utf-8")


# An example of the codecs alone.
OTHERS = {"examples/decode_bytes.py"}


def test_pages_and_examples_import_from_one_place():
    elsewhere = [
        f"{where}: {name} of {match[1]}"
        for where, text in programs()
        if where not in OTHERS
        for match in IMPORT.finditer(text)
        for name in re.findall(r"\w+", match[2] or match[3])
        if name in assignor.__all__
    ]
    assert elsewhere == []
