"""docs/upgrades.md: each change is in one row, under the time at which it is dealt with."""

from docs.generators.upgrades import render
from system_tests.plan import CHANGES, NOT_CHECKED, NOT_REHEARSED, When


def test_every_change_has_one_row_under_its_time():
    page = render()
    for change in CHANGES:
        action = change.with_work("a step of the plan", change.action)
        row = f"| {change.what.replace('|', chr(92) + '|')} | {action}"
        assert page.count(row) == 1, change.what
        section = page.split(f"### {change.when}\n")[1].split("\n### ")[0]
        assert row in section


def test_the_index_counts_every_row_and_names_every_section():
    page = render()
    index = page.split("## What concerns my path?")[1].split("## What else changes")[0]
    counts = [
        int(cell.split(":")[0]) for cell in index.split(" | ") if cell[:1].isdigit() and ":" in cell
    ]
    assert sum(counts) == len(CHANGES)
    for when in When:
        assert f"(#{when.lower().replace(' ', '-')})" in index


def test_what_is_not_checked_and_not_rehearsed_is_listed():
    page = render()
    for sentence in (*NOT_CHECKED, *NOT_REHEARSED):
        assert f"- {sentence}\n" in page
