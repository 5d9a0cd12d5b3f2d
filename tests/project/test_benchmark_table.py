"""`make bench` fails for a missed goal and for a part that ends early, and runs every part."""

import re
from pathlib import Path

from benchmarks.rows import at_least, at_most
from benchmarks.table import PARTS, Part, run

ROOT = Path(__file__).resolve().parents[2]


def test_a_goal_is_met_up_to_the_goal_itself():
    assert [at_most("p", "n", value, 3).met for value in (2, 3, 3.01)] == [True, True, False]
    assert [at_least("p", "n", value, 3).met for value in (2.99, 3, 4)] == [False, True, True]
    assert at_most("p", "n", 2, 3, has_goal=False).met is None


def part(code):
    return Part(name="part", run=("-c", code))


def test_a_part_that_breaks_off_is_a_missed_goal():
    assert [row.met for row in run(part("raise SystemExit(3)"), quick=True, problems=None)] == [
        False
    ]
    assert run(part("pass"), quick=True, problems=None) == []


def test_a_part_that_breaks_off_after_a_missed_goal_has_both_rows():
    code = """
from benchmarks.rows import at_most
at_most("part", "figure", 2, 1)
raise SystemExit(3)
"""
    found = run(part(code), quick=True, problems=None)
    assert [row.name for row in found] == ["figure", "failed"]


def test_a_part_that_missed_a_goal_has_not_broken_off():
    code = """
from benchmarks.rows import at_most
raise SystemExit(at_most("part", "figure", 2, 1).met is False)
"""
    (row,) = run(part(code), quick=False, problems=None)
    assert (row.name, row.met) == ("figure", False)


def test_every_module_that_prints_rows_is_run_by_a_part():
    started = {word.removesuffix(".py").replace("/", ".") for part in PARTS for word in part.run}
    says = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__main__")
        for path in (ROOT / "benchmarks").rglob("*.py")
        if re.search(r"^from benchmarks\.rows import", path.read_text(), re.MULTILINE)
    }
    assert len(says) > len(PARTS) / 2
    assert says - started - {"benchmarks.table"} == set()
