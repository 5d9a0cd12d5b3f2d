"""A row that says something else is noticed: quickly for one row of each table, whole by hand."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.system_tests.planted.mutants import (
    NOTHING,
    REASONS,
    SIMULATOR,
    mutants,
    not_noticed,
    stored,
)

ROOT = Path(__file__).resolve().parents[3]


def test_each_row_says_what_each_other_row_of_its_table_says():
    names = [one.name for one in mutants()]
    assert len(names) == len(set(names)) > 300
    natives_only = "leader, next version of members of ours: natives only: says "
    assert [name.removeprefix(natives_only) for name in names if name.startswith(natives_only)] == [
        "'pinned'",
        "'a JVM member writes 1 or 2'",
        "'as far as the JVM members go'",
        "'11 for ever'",
    ]
    assert not any("settled: says 'settled'" in name for name in names)


def test_what_is_stored_is_of_mutants_that_there_are():
    rows = stored()
    assert set(rows) <= {one.name for one in mutants()}
    silent = {name for name, row in rows.items() if row["seen"] == NOTHING and row["decides"]}
    assert set(REASONS) <= silent
    assert all(REASONS.values())


def test_a_group_of_ours_that_is_kept_at_11_for_ever_is_noticed_by_the_simulator():
    row = stored()["leader, next version of members of ours: natives only: says '11 for ever'"]
    assert (row["seen"], row["red"]) == (SIMULATOR, ["final versions"])


def test_one_mutant_of_each_table_is_still_noticed():
    rows = stored()
    quick = {}
    for one in mutants():
        if rows.get(one.name, {}).get("seen") == SIMULATOR:
            quick.setdefault(one.table, one)
    assert len(quick) >= 7
    assert not_noticed(list(quick.values()), rows) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_mutant_that_was_noticed_is_still_noticed():
    done = subprocess.run(
        [sys.executable, "-m", "tests.system_tests.planted.mutants", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
