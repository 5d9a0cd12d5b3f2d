"""What applications import comes from `assignor`, and what they do not need is not loaded."""

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


def test_every_name_is_there_also_those_that_are_loaded_late():
    missing = [name for name in assignor.__all__ if not hasattr(assignor, name)]
    assert missing == []
    assert set(assignor._LATE) <= set(assignor.__all__)
    with pytest.raises(AttributeError, match="no attribute 'TaskID'"):
        assignor.TaskID  # noqa: B018


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
