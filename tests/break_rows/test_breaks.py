"""The breaks, their places and their stored results agree; no break is applied here."""

import pytest

from tests.break_rows.__main__ import is_current, read_results, red_tests, worlds_of
from tests.break_rows.places import (
    ROOT,
    Break,
    MovedError,
    broken_source,
    copy_sources,
    read_breaks,
)
from tests.ledger import read_rows


def test_every_break_has_its_place_and_a_row():
    rows = {row.id: row.where for row in read_rows()}
    for break_ in read_breaks():
        assert broken_source(break_)
        assert set(break_.worlds) <= set(rows[break_.row])


def test_the_code_behind_every_row_was_broken_in_every_world():
    broken = {(break_.row, world) for break_ in read_breaks() for world in worlds_of(break_)}
    lacking = {(row.id, world) for row in read_rows() for world in row.where} - broken
    assert not lacking
    sentence = f"Tests check all {len(read_rows())} promises of five KIPs"
    assert sentence in (ROOT / "README.md").read_text(encoding="utf-8")


def test_what_is_kept_is_of_these_breaks_and_all_of_them_were_noticed():
    results = read_results()
    assert sorted(results) == sorted(break_.name for break_ in read_breaks())
    for break_ in read_breaks():
        assert is_current(break_, results[break_.name]), (
            f"run python -m tests.break_rows {break_.row}"
        )
        assert {world for world, red in results[break_.name]["red"].items() if red} == {
            *worlds_of(break_)
        }


@pytest.mark.parametrize(
    ("place", "old"),
    [
        ("nowhere:decide", "return"),
        ("persisted_formats:nobody", "return"),
        ("persisted_formats:decide_persistent_version", "text that is not there"),
    ],
)
def test_a_break_whose_place_has_moved_fails_loudly(place, old):
    moved = Break(row="268-1", says="moved", place=f"probing.{place}", old=old, new="raise")
    with pytest.raises(MovedError, match="268-1: moved"):
        broken_source(moved)


def test_a_break_is_of_the_product():
    moved = Break(row="268-1", says="test", place="tests.ledger:read_rows", old="a", new="b")
    with pytest.raises(MovedError, match=r"tests\.ledger is no module of the product"):
        broken_source(moved)


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
def test_a_break_is_noticed_and_a_harmless_change_is_not(tmp_path):
    copy_sources(tmp_path)
    test = "tests/probing/test_persisted_formats.py"
    place = "probing.persisted_formats:PersistedSettings.version"
    harmless = Break(row="384-3", says="a", place=place, old="given is None", new="given == None")
    broken = Break(row="384-3", says="b", place=place, old="is None", new="is not None")
    assert red_tests(harmless, [test], tmp_path) == []
    assert len(red_tests(broken, [test], tmp_path)) > 1
    with pytest.raises(MovedError, match="the tests do not run"):
        red_tests(
            Break(row="384-3", says="c", place=place, old="return", new="return return"),
            [test],
            tmp_path,
        )
