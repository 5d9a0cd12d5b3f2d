"""Each fault has its place and is noticed; each row, checker and promise has a fault."""

import importlib
import os
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.ledger import read_rows
from tests.planted.__main__ import main as planted
from tests.planted.checkers import CHECKERS, best_fault
from tests.planted.faults import (
    ROOT,
    Fault,
    MovedError,
    changed_source,
    fault_from,
    read_faults,
    table_of,
)
from tests.planted.results import (
    STORED,
    is_a_test,
    is_as_expected,
    is_current,
    notice,
    noticers,
    read_results,
)
from tests.planted.runs import OTHER, Copy, worlds_of

PRODUCT = ("encoding", "probing", "assignor", "spark_assign", "system_tests")
UNCHECKED = ("groups with dimensions", "changed topologies", "groups whose levels change")
"""Their checkers have no other tests."""
PLANTED = [
    pytest.param(fault, by, id=f"{number}-{by}", marks=[pytest.mark.real] if by == "real" else [])
    for number, fault in enumerate(read_faults())
    for by in noticers(fault)
]
START_S = 2_000_000_000
HARMLESS = Fault(
    file="",
    row="384-3",
    says="an equal condition",
    place="probing.persisted_formats:PersistedSettings.version",
    old="given is None",
    new="given == None",
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("copy"))


def test_every_fault_has_its_place_and_who_must_notice_it():
    names = Counter(fault.name for fault in read_faults())
    assert [name for name, times in names.items() if times > 1] == []
    for fault in read_faults():
        compile(changed_source(fault), fault.place, "exec")


@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ({"ruel": "none"}, "unknown key 'ruel'"),
        ({}, "give exactly one of `row`, `tests` and `commands`"),
        ({"row": "384-99"}, "tests/kips.toml has no such row"),
    ],
)
def test_a_wrong_fault_is_an_error_that_names_it(keys, error):
    with pytest.raises(ValueError, match=f"^some.toml, fault 'its row' of probing:here: {error}"):
        fault_from("some.toml", {"place": "probing:here", "rule": "its row", **keys})


def test_the_code_behind_every_promise_is_broken_in_every_environment():
    broken = {(fault.row, world) for fault in read_faults() for world in worlds_of(fault)}
    assert {(row.id, world) for row in read_rows() for world in row.where} <= broken
    sentence = f"Tests check all {len(read_rows())} promises of five KIPs"
    assert sentence in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_row_of_every_decision_table_is_removed_or_answers_as_another():
    changed = {(id(table_of(fault)), fault.rule) for fault in read_faults() if fault.rule}
    tables = {}
    sources = [path for name in PRODUCT for path in sorted((ROOT / name).rglob("*.py"))]
    for path in sources:
        if "Rule(" not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for variable, value in vars(module).items():
            for rows in value.values() if isinstance(value, dict) else [value]:
                is_table = isinstance(rows, tuple) and len(rows) > 0
                if is_table and all(hasattr(row, "holds") for row in rows):
                    tables[id(rows)] = f"{module.__name__}:{variable}", rows
    assert len(tables) > 25
    rows = {(key, row.name, table) for key, (table, rows) in tables.items() for row in rows}
    unchanged = sorted((table, name) for key, name, table in rows if (key, name) not in changed)
    assert unchanged == [], 'add a fault with this `place` and `rule = "*"` to tests/planted/*.toml'


def test_every_checker_has_a_fault_that_it_reports():
    for checkers in CHECKERS.values():
        for checker in checkers:
            assert best_fault(checker)


def test_stored_results_are_of_these_faults_and_all_were_noticed():
    results = read_results()
    names = [fault.name for fault in read_faults()]
    stale = [f.name for f in read_faults() if not is_current(f, results.get(f.name))]
    assert stale == [], "run python -m tests.planted, then python -m docs.generate"
    assert list(results) == names, "run python -m tests.planted, then python -m docs.generate"
    for fault in read_faults():
        for noticed in results[fault.name].noticed.values():
            assert is_as_expected(fault, noticed), fault.name
            if isinstance(noticed, str) and noticed:
                assert is_a_test(noticed), f"run python -m tests.planted --anew {fault.name!r}"


@pytest.mark.parametrize(
    ("place", "old"),
    [
        ("nowhere:decide", "return"),
        ("persisted_formats:nobody", "return"),
        ("persisted_formats:decide_persistent_version", "text that is not there"),
    ],
)
def test_a_fault_without_its_place_is_an_error(place, old):
    with pytest.raises(MovedError, match="moved"):
        changed_source(Fault(file="", says="moved", place=f"probing.{place}", old=old, new="raise"))


def test_a_name_of_no_fault_is_a_usage_error():
    assert CliRunner().invoke(planted, ["268-99"]).exit_code == 2


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_a_harmless_change_is_not_noticed_and_a_broken_import_proves_nothing(copy):
    tests = ["tests/probing/test_persisted_formats.py"]
    assert copy.failing_tests(HARMLESS, tests) == []
    with pytest.raises(MovedError, match="the tests do not run"):
        copy.failing_tests(replace(HARMLESS, new="given is is None"), tests)


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_byte_code_of_a_fault_runs_with_the_fault_only(copy, monkeypatch):
    """Python takes byte code for that of a source whose size and time in seconds are the same."""
    fault, write, written = replace(HARMLESS, new="given is True"), Path.write_text, count(1)

    def write_10_s_later(path, *args, **options):
        write(path, *args, **options)
        at_s = START_S + 10 * next(written)
        os.utime(path, (at_s, at_s))

    monkeypatch.setattr(Path, "write_text", write_10_s_later)
    tests = ["tests/probing/test_persisted_formats.py"]
    assert copy.failing_tests(fault, tests)
    assert copy.failing_tests(HARMLESS, tests) == []


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_the_check_says_that_another_test_noticed_a_fault(monkeypatch, tmp_path):
    name = "PERSISTED_RULES: row 'as a leader wrote' is gone"
    file, _, test = read_results()[name].noticed[OTHER].partition("::")
    passing = f"{file}::test_only_an_incompatible_change_waits_for_the_setting"
    stored = STORED.read_text(encoding="utf-8").replace(f"{file}::{test}", passing)
    monkeypatch.setattr("tests.planted.results.STORED", tmp_path / "results.jsonl")
    (tmp_path / "results.jsonl").write_text(stored, encoding="utf-8")
    done = CliRunner().invoke(planted, ["--check", name])
    assert (done.exit_code, done.stderr) == (
        1,
        f"{name} (other): stored {passing}, now {file}::{test}\n",
    )


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("checker", [name for kind in UNCHECKED for name in CHECKERS[kind]])
def test_a_checker_reports_its_fault(copy, checker):
    fault, command, _ = best_fault(checker)
    assert checker in copy.broken_rules(command, fault)


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
@pytest.mark.timeout(2_000)
@pytest.mark.nightly("plants each fault, in a process of its own")
@pytest.mark.parametrize(("fault", "by"), PLANTED)
def test_a_fault_is_noticed_as_stored(copy, fault, by):
    noticed = notice(copy, fault, by)
    assert is_as_expected(fault, noticed)
    assert noticed == read_results()[fault.name].noticed[by]
