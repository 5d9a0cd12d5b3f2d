"""docs/assignors.md shows the output of the commands and names every rule."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from assignor.cli.main import main
from assignor.placement.strategies import STRATEGIES
from tests.assignor.explain.groups import ACTIVE_CLAIMS, COPY_CLAIMS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "assignors.md").read_text(encoding="utf-8")
(JOIN,) = re.findall(r"<!-- file join.jsonl -->\n```json\n(.+)\n```", PAGE)


@pytest.mark.parametrize("command", re.findall(r"^\$ assignor (.+)$", PAGE, re.MULTILINE))
def test_the_page_shows_what_the_command_prints(command, tmp_path):
    problem = tmp_path / "join.jsonl"
    problem.write_text(JOIN, encoding="utf-8")
    words = [str(problem) if word == "join.jsonl" else word for word in command.split()]
    printed = CliRunner().invoke(main, words).stdout
    lines = [line.rstrip() for line in printed.strip().splitlines()]
    assert "\n".join(lines) in PAGE


def test_the_page_names_every_rule_and_strategy():
    rows = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    for name in (*ACTIVE_CLAIMS, *COPY_CLAIMS, *STRATEGIES):
        assert name in rows
