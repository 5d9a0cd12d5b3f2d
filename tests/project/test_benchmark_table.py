"""`make bench` fails for a missed goal and for a part that ends early, and runs every part."""

import re
from pathlib import Path

import pytest

from benchmarks.rows import at_least, at_most
from benchmarks.table import PARTS, Part, run

ROOT = Path(__file__).resolve().parents[2]
MISSED = 'from benchmarks.rows import at_most\nat_most("part", "figure", 2, 1)\nraise SystemExit'


def test_a_goal_is_met_up_to_the_goal_itself():
    assert [at_most("p", "n", value, 3).met for value in (2, 3, 3.01)] == [True, True, False]
    assert [at_least("p", "n", value, 3).met for value in (2.99, 3, 4)] == [False, True, True]
    assert at_most("p", "n", 2, 3, has_goal=False).met is None


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("status", "rows"), [(1, ["figure"]), (3, ["figure", "failed"])])
def test_a_part_that_missed_a_goal_and_one_that_breaks_off_too(status, rows):
    part = Part(name="part", run=("-c", f"{MISSED}({status})"))
    found = run(part, quick=True, problems=None)
    assert [(row.name, row.met) for row in found] == [(name, False) for name in rows]


def test_every_module_that_prints_rows_is_run_by_a_part():
    started = {word.removesuffix(".py").replace("/", ".") for part in PARTS for word in part.run}
    says = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for path in (ROOT / "benchmarks").rglob("*.py")
        if re.search(
            r"^from benchmarks\.rows import", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert len(says) > len(PARTS) / 2
    assert says - started - {"benchmarks.table"} == set()
