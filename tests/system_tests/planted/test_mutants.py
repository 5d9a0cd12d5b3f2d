"""A row with another result is detected: one of each table, and a tenth of all, by the day."""

import pytest

from tests.nightly import sample
from tests.system_tests.planted.mutants import (
    NOTHING,
    REASONS,
    SIMULATOR,
    mutants,
    not_noticed,
    stored,
)


def test_each_row_gets_the_result_of_each_other_row_of_its_table():
    names = [mutant.name for mutant in mutants()]
    assert len(names) == len(set(names)) > 300
    natives_only = "leader, next version of native members: natives only: says "
    assert [name.removeprefix(natives_only) for name in names if name.startswith(natives_only)] == [
        "'pinned'",
        "'a JVM member writes 1 or 2'",
        "'as far as the JVM members go'",
        "'11 for ever'",
    ]
    assert not any("settled: says 'settled'" in name for name in names)


def test_what_is_stored_is_of_mutants_that_there_are():
    rows = stored()
    assert set(rows) <= {mutant.name for mutant in mutants()}
    silent = {name for name, row in rows.items() if row["seen"] == NOTHING and row["decides"]}
    assert set(REASONS) <= silent
    assert all(REASONS.values())


def test_a_native_group_that_is_kept_at_11_for_ever_is_noticed_by_the_simulator():
    row = stored()["leader, next version of native members: natives only: says '11 for ever'"]
    assert (row["seen"], row["red"]) == (SIMULATOR, ["final versions"])


def test_one_mutant_of_each_table_is_still_noticed():
    rows = stored()
    quick = {}
    for mutant in mutants():
        if rows.get(mutant.name, {}).get("seen") == SIMULATOR:
            quick.setdefault(mutant.table, mutant)
    assert len(quick) >= 7
    assert not_noticed(list(quick.values()), rows) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_mutant_that_was_noticed_is_still_noticed():
    assert not_noticed(sample(mutants(), every=10, reason="more mutants"), stored()) == []
