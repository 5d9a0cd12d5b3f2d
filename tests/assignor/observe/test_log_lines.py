"""Log lines: one per record, for any names of peers and texts of brokers."""

import json
import logging
import re
import subprocess
import sys
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import assignor
from assignor.logs import line_logger
from assignor.observe import AnswersDecided, Observation, RebalanceWatch
from assignor.observe.events import (
    AnswerHandled,
    AnswerRefused,
    AssignmentTaken,
    MembershipLost,
    RejoinRequested,
    SubscriptionWritten,
)
from assignor.observe.log_lines import LoggingHook
from assignor.observe.rebalances import Outcome
from encoding import TaskId, shown

FORGED = 'x" rule="y\\\n2026-01-01 ERROR generation=9 outcome=lost\x1b[2J\u202e\x85 why="'
AS_A_COMMAND = """
from assignor.cli.main import main
try:
    main(["sample", "--help"])
except SystemExit:
    pass
"""
PAIR = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|[^\s"]+)')
FIELDS = {int: 3, str: FORGED, bool: True, float: 0.5}


class Kept(logging.Handler):
    """A handler that keeps its lines."""

    def __init__(self):
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
        self.texts = []

    def emit(self, record):
        self.texts.append(self.format(record))


@pytest.fixture
def kept():
    return Kept()


def hostile(kind):
    """An event of this kind with a forged line in every text."""
    values = {}
    for name, hint in get_type_hints(kind).items():
        parts = get_args(hint)
        if parts and parts[0] is TaskId:
            values[name] = (TaskId(0, 1, FORGED),)
        elif parts:
            values[name] = ((FORGED, 1, 1) if get_args(parts[0]) else FORGED,)
        else:
            values[name] = FIELDS[hint]
    return kind(**values)


def parsed(line):
    """Return the pairs of a line, with unescaped texts; fail if there is anything else."""
    rest = PAIR.sub("", line).split()
    assert all(word.isalpha() for word in rest), rest
    return {
        name: json.loads(value) if value.startswith('"') else value
        for name, value in PAIR.findall(line)
    }


KINDS = get_args(Observation)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_hostile_event_is_one_line_that_can_be_read_back(kept, kind):
    logger = logging.Logger("own", logging.INFO)  # noqa: LOG001 none that other tests could reach
    logger.addHandler(kept)
    watch = RebalanceWatch([LoggingHook(logger)], clock=lambda: 0.0)
    events = [hostile(kind)]
    if kind in (AnswerRefused, AssignmentTaken, RejoinRequested, SubscriptionWritten):
        events = [hostile(SubscriptionWritten), *events, AnswerHandled(generation=5)]
    for event in events:
        watch(event)
    is_logged = kind in (AnswersDecided, MembershipLost, AnswerHandled) or len(events) > 1
    assert len(kept.texts) == is_logged
    for text in kept.texts:
        assert text.isprintable()
        found = parsed(text.split(" ", 2)[2])
        if kind is AnswersDecided:
            assert found["why"] == found["rule"] == shown(FORGED)
        elif kind in (AnswerRefused, RejoinRequested):
            assert found["why"] == shown(FORGED)
            assert found["generation"] == "5"
        elif kind is not MembershipLost:
            assert found["outcome"] in [outcome.value for outcome in Outcome]


def test_every_field_with_text_is_filled():
    for kind in KINDS:
        event = hostile(kind)
        assert len(fields(kind)) == len(get_type_hints(kind))
        assert all(not isinstance(getattr(event, field.name), Enum) for field in fields(kind))


# All other loggers


def fail():
    raise ValueError(FORGED)


@pytest.fixture
def logger(kept):
    made = line_logger("lines_of_a_test")
    made.addHandler(kept)
    made.propagate = False
    yield made
    made.removeHandler(kept)


def test_a_sentence_with_foreign_text_is_one_printable_line(logger, kept):
    logger.warning("bootstrap server %s: %s", FORGED, ValueError(FORGED))
    (text,) = kept.texts
    assert text.isprintable()
    assert text.startswith('WARNING lines_of_a_test bootstrap server x" rule=')


def test_a_traceback_is_indented_so_that_no_line_of_it_is_forged(logger, kept):
    try:
        fail()
    except ValueError as error:
        logger.exception("a step failed")
        logger.warning("%s", FORGED, exc_info=error)
    for text in kept.texts:
        first, *rest = text.split("\n")
        assert first.startswith(("ERROR", "WARNING"))
        assert any("ValueError: x" in line for line in rest)
        assert all(line.startswith("    ") for line in rest)
        assert all(line.isprintable() for line in (first, *rest))


def test_an_argument_that_cannot_be_written_does_no_harm(logger, kept, monkeypatch):
    class Broken:
        def __str__(self):
            raise ValueError("no text")

    monkeypatch.setattr(logging, "raiseExceptions", False)
    logger.removeHandler(kept)
    logger.warning("%s", Broken())


def test_a_flood_is_cut(logger, kept):
    logger.warning("%s", "x" * 1_000_000)
    assert len(kept.texts[0]) < 5_000
    assert kept.texts[0].endswith("(1,000,000 characters)")


def test_every_module_logs_by_such_a_logger():
    folder = Path(assignor.__file__).parent
    own = [folder / "logs.py", folder / "__init__.py"]
    others = [path for path in folder.rglob("*.py") if path not in own]
    assert not [path for path in others if "getLogger" in path.read_text(encoding="utf-8")]


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("began", "printed"), [("", "lost\n"), (AS_A_COMMAND, "")])
def test_a_program_without_logging_sees_warnings_and_a_command_prints_its_output_alone(
    began, printed
):
    program = f"{began}import assignor, logging\nlogging.getLogger('assignor.logs').warning('lost')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == printed
