"""docs/upgrades.md: each change is in one row, under the time at which it is dealt with."""

from docs.generators.upgrades import render
from probing import NEWEST_KAFKA, find_release
from system_tests.plan import CHANGES, NOT_CHECKED, NOT_REHEARSED, When
from system_tests.plan.changes import NEW, STREAMS_CHANGES


def test_every_change_has_one_row_under_its_time():
    page = render().split("## What else changes\n")[1]
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


def test_the_newest_release_has_a_row_for_each_of_its_changes_and_its_offers_and_the_way_back():
    section = render().split("## The newest release\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[:2] for line in section.splitlines() if line.startswith("| ")][2:]
    first = f"{find_release(NEWEST_KAFKA).series}.0"
    changes = [row for row in (*CHANGES, *STREAMS_CHANGES) if row.since == first]
    offers = [row.what for row in NEW if row.release == first]
    assert len(rows) == len(changes) + len(offers) + 1
    for kind, what in rows[:-1]:
        found = [row for row in changes if what.startswith(row.what)]
        if found and not found[0].off_by_default:
            assert ("nothing to do" in kind) is not bool(found[0].action)
        else:
            assert kind == ("| off by default" if found else "| new")
    assert rows[-1][0] == "| way back"
