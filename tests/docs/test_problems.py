"""docs/problems.md: every column of a simulation that `assign` prints is defined."""

import json
import re

from click.testing import CliRunner

from assignor.cli.assign.command import assign
from tests.assignor.problems.small_groups import JOIN
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/problems.md").read_text(encoding="utf-8")
COLUMNS = PAGE.partition("| column | is |")[2].partition("\n\n")[0]


def test_every_column_of_a_simulation_is_defined():
    result = CliRunner().invoke(
        assign, ["--problem", "-", "--simulate", "--format", "text"], input=json.dumps(JOIN)
    )
    [header] = [line for line in result.stdout.splitlines() if line.startswith("event ")]
    printed = re.split(r" {2,}", header.strip())[1:]
    defined = [
        name for row in COLUMNS.splitlines() for name in re.findall(r"`([a-z -]+)`", row[:50])
    ]
    assert sorted(printed) == sorted(defined)
