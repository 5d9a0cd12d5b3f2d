"""A new option is one declaration: this adds one to a copy of the package, and looks everywhere."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
DECLARED = """    patience: int = option(
        3, "rounds that a member waits.", whole(1, 9), page="clients.md#what-to-watch"
    )
"""
# Module -> before which option it stands, and how a wrong value is refused.
PLACES = {
    "assignor/adapters/membership/options.py": (
        "    hold_back: bool = option(\n",
        "patience=0 is refused; give a whole number, 1 to 9",
    ),
    "assignor/config.py": (
        "    max_warmup_replicas: int = option(\n",
        "patience = 0 is not allowed: a whole number, 1 to 9",
    ),
}
PROGRAM = """
import inspect, pydoc, sys
from assignor import AssignmentConfig, ConfigError, Topology
from assignor.adapters.kafka_python import StreamsAssignor, StreamsApplication, streams_consumer
from docs.generators import keywords, options

for made in (StreamsAssignor, StreamsApplication, streams_consumer):
    parameter = inspect.signature(made).parameters["patience"]
    assert (parameter.default, parameter.annotation) == (3, int)
for made in (StreamsAssignor, streams_consumer):
    text = " ".join(pydoc.render_doc(made, renderer=pydoc.plaintext).replace("|", "").split())
    assert "patience: rounds that a member waits. Takes a whole number, 1 to 9. Default: 3." in text
assert "    patience: int\\n" in keywords.render()
assert "rounds that a member waits." in options.render()
topology = Topology().add_source("lines", topics=["lines"])
StreamsAssignor(topology, patience=4).close()
try:
    StreamsAssignor(topology, patience=0)
except ConfigError as error:
    print(error)
try:
    streams_consumer(topology, group_id="g", bootstrap_servers="127.0.0.1:1", patienc=2)
except ConfigError as error:
    print(error)
"""


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("place", PLACES)
def test_one_declaration_is_in_signature_help_types_page_and_check(tmp_path, place):
    following, refused = PLACES[place]
    for name in ("assignor", "docs", "encoding", "probing"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "*.png")
        )
    path = tmp_path / place
    text = path.read_text(encoding="utf-8")
    assert text.count(following) == 1
    path.write_text(text.replace(following, DECLARED + following), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        refused,
        "unknown setting patienc; did you mean patience?",
    ]
