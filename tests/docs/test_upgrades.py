"""docs/upgrades.md: each change is in one row, under the time at which it is dealt with."""

from dataclasses import replace

from docs.generators import upgrades
from docs.generators.upgrades import render
from probing import NEWEST_KAFKA, RELEASES, find_release
from system_tests.plan import CHANGES, NOT_CHECKED, NOT_REHEARSED, When
from system_tests.plan.changes import NEW, STREAMS_CHANGES


def test_every_change_has_one_row_under_its_time():
    page = render().split("## What else changes\n")[1]
    for change in [row for row in CHANGES if row.what]:
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
    assert sum(counts) == sum(bool(row.what) for row in CHANGES)
    for when in When:
        assert f"(#{when.lower().replace(' ', '-')})" in index


def test_every_row_of_a_way_back_stands_once_under_its_release():
    section = render().split("### On the way back\n")[1].split("\n### ")[0]
    found = [(f"| {row.since}", row.subject, row.back) for row in CHANGES if row.back]
    assert sorted(rows_of(section, 3)) == sorted(map(list, found))


def test_what_is_not_checked_and_not_rehearsed_is_listed():
    page = render()
    for sentence in (*NOT_CHECKED, *NOT_REHEARSED):
        assert f"- {sentence}\n" in page


def newest_section():
    return render().split("## The newest release\n")[1].split("\n## ")[0]


def rows_of(section, cells=2):
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    return [line.split(" | ")[:cells] for line in lines]


def test_the_newest_release_has_a_row_for_each_of_its_changes_and_its_offers_and_the_way_back():
    section = newest_section()
    rows = rows_of(section)
    newest = find_release(NEWEST_KAFKA)
    patches = {release.name for release in RELEASES if release.series == newest.series}
    begun = {row: {since for since, _ in row.ranges} for row in (*CHANGES, *STREAMS_CHANGES)}
    changes = [row for row, releases in begun.items() if patches & releases]
    offers = [row.what for row in NEW if row.release in patches]
    assert f"Kafka {newest.series}, whose newest patch is {newest.name}: " in section
    assert f"| below {newest.series} |" in section
    assert len(rows) == len(changes) + len(offers) + 1
    for kind, what in rows[:-1]:
        found = [row for row in changes if what.startswith(row.what)]
        if found and not found[0].off_by_default:
            assert ("nothing to do" in kind) is not bool(found[0].action)
        else:
            assert kind.startswith("| off by default" if found else "| new")
    assert rows[-1][0] == "| way back"


def test_rows_of_a_patch_of_the_newest_series_are_listed_with_the_patch(monkeypatch):
    """With 4.3.1 as the newest: rows of 4.3.0, and those that only the patch has."""
    (defect,) = (row for row in CHANGES if "KAFKA-20616" in row.source)
    patched = replace(defect, since="4.3.1", until="", what="invented of the patch")
    monkeypatch.setattr(upgrades, "NEWEST_KAFKA", "4.3.1")
    monkeypatch.setattr(upgrades, "CHANGES", (*CHANGES, patched))
    section = newest_section()
    assert "Kafka 4.3, whose newest patch is 4.3.1: " in section
    rows = {what: kind for kind, what in rows_of(section)}
    assert rows[patched.what] == "| changed, nothing to do: since 4.3.1"
    assert rows[defect.what] == "| changed, nothing to do"
