"""docs/operations.md says what the code says: metrics, settings, arguments, loggers, messages."""

import ast
import importlib
import logging
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from assignor.embedding.errors import _FATAL
from assignor.embedding.input_rules import INPUT_RULES
from assignor.observe.prometheus import PrometheusHook
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
PACKAGES = ("assignor", "probing", "encoding")


def rows(heading):
    """The first table under a heading, each row a list of cells."""
    part = PAGE.partition(f"# {heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", part, re.MULTILINE)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def test_every_metric_is_in_the_table_with_its_labels():
    registry = CollectorRegistry()
    PrometheusHook(group="g", client_id="c", registry=registry)
    made = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in registry.collect()
    }
    assert {cell[0].strip("`").partition("{")[0] for cell in rows("What to watch")} == made


def test_loggers_that_are_named_are_modules_that_log():
    names = set(re.findall(r"`(assignor\.(?:adapters|embedding|observe)[\w.]*)`", PAGE))
    assert {name for name in names if not hasattr(importlib.import_module(name), "_log")} == set()
    assert len(names) > 5


def texts(path):
    """Every text of a module, with a mark where a value is filled in; neighbours are joined."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "\0" for part in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.fixture(scope="module")
def code_texts():
    paths = [path for name in PACKAGES for path in sorted(Path(ROOT / name).rglob("*.py"))]
    return [text for path in paths for text in texts(path)]


INPUT = [row[0] for row in rows("Input")]
MESSAGES = [row[0] for row in rows("Native members and leaders")] + INPUT


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_are_in_the_code(code_texts, message):
    pattern = wanted(message)
    assert len(pattern.pattern) > 12
    assert any(pattern.search(text) for text in code_texts)


def wanted(message):
    pieces = [piece.strip(" ();:") for piece in message.strip("`").split("...")]
    return re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)


def test_every_line_about_the_input_is_among_the_messages():
    found = {
        rule.name: [message for message in INPUT if wanted(message).search(rule.says)]
        for rule in INPUT_RULES
        if rule.level >= logging.WARNING and rule.says
    }
    assert {name: messages for name, messages in found.items() if len(messages) != 1} == {}
    assert sorted(message for [message] in found.values()) == sorted(INPUT)


def test_errors_that_end_a_member_are_among_the_messages():
    section = PAGE.partition("### Kafka's clients and brokers")[2]
    kafkas = {name for name in _FATAL if name.startswith(("Fenced", "Group", "Topic", "Incons"))}
    assert {name for name in kafkas if name not in section} == set()
