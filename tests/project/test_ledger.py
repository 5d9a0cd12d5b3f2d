"""Rows, marks and the printed page agree."""

import ast
from collections import Counter

from tests.ledger import (
    ROOT,
    WORLDS,
    marks_in,
    proved_worlds,
    read_deviations,
    read_marks,
    read_rows,
)


def test_row_ids_are_unique_and_worlds_are_known():
    rows = read_rows()
    assert [i for i, n in Counter(row.id for row in rows).items() if n > 1] == []
    assert [r.id for r in rows if not r.where or set(r.where) - set(WORLDS)] == []
    assert [r.id for r in rows if r.state not in ("open", "done")] == []


def test_marks_name_rows_and_worlds_of_the_ledger():
    where = {row.id: row.where for row in read_rows()}
    wrong = [m for m in read_marks() if m.world not in where.get(m.row, ())]
    assert wrong == []


def test_a_row_is_done_exactly_when_every_world_has_a_marked_test():
    marks = read_marks()
    rows = read_rows()
    proved = {row.id for row in rows if proved_worlds(row, marks) == row.where}
    assert {row.id for row in rows if row.state == "done"} == proved


def test_every_deviation_names_rows_and_is_printed_with_its_reason():
    rows = {row.id for row in read_rows()}
    page = (ROOT / "docs" / "kips.md").read_text(encoding="utf-8")
    for deviation in read_deviations():
        assert deviation.rows
        assert set(deviation.rows) <= rows
        assert f"| {deviation.text} | {deviation.here} | {deviation.reason} |" in page


def test_marks_of_methods_name_their_class():
    source = """
@pytest.mark.kip("1-1", "core")
class TestA:
    @pytest.mark.kip("1-2", "core")
    def test_it(self): ...

@pytest.mark.kip("1-3", "sim")
async def test_it(): ...
"""
    found = {mark.row: mark.test for mark in marks_in(ast.parse(source), "tests/test_x.py")}
    assert found == {
        "1-1": "tests/test_x.py::TestA",
        "1-2": "tests/test_x.py::TestA::test_it",
        "1-3": "tests/test_x.py::test_it",
    }
