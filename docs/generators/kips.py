"""docs/kips.md: the promises of the five KIPs, and the tests that prove them."""

from typing import Any

from tests.break_rows.__main__ import read_results
from tests.break_rows.places import read_breaks
from tests.ledger import (
    Mark,
    Row,
    proved_worlds,
    read_deviations,
    read_marks,
    read_rows,
)


def render() -> str:
    """The whole page."""
    rows, marks = read_rows(), read_marks()
    done = sum(row.state == "done" for row in rows)
    lines = [
        "# What the KIPs promise, and what proves it",
        "",
        "Printed by `python -m docs.generate` from `tests/kips.toml` and the tests' `kip` marks.",
        "A row is done when a passing test carries its id in every world that it names:",
        "**core** (sans-IO), **sim** (simulator), **loop** (real clients on the embedded broker),",
        "**real** (a real broker).",
        "",
        f"Done: {done} of {len(rows)}.",
        "",
        "`python -m tests.break_rows` breaks the product's code row by row and demands that the",
        "row's tests go red; *broken* names what was broken, where, and the worlds that noticed.",
        "One row: `python -m tests.break_rows 268-7`; `--list` only says what would be broken.",
        "Tests are below `tests`, those of `live` and `real` below `system_tests/scenarios`.",
    ]
    lines += _deviations()
    for kip in dict.fromkeys(row.kip for row in rows):
        lines += [
            "",
            f"## {kip}",
            "",
            "| id | promise | state | tests | broken |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_line(row, marks) for row in rows if row.kip == kip]
    return "\n".join(lines) + "\n"


def _deviations() -> list[str]:
    """The section about what is done otherwise on purpose."""
    rows = [
        f"| {one.text} | {one.here} | {one.reason} | {', '.join(one.rows)} |"
        for one in read_deviations()
    ]
    return [
        "",
        "## Deviations from the KIPs' words",
        "",
        "What is done otherwise here on purpose, from `tests/deviations.toml`.",
        "",
        "| the KIP's text | here | reason | rows |",
        "| --- | --- | --- | --- |",
        *rows,
    ]


def _line(row: Row, marks: tuple[Mark, ...]) -> str:
    proved = proved_worlds(row, marks)
    open_worlds = [world for world in row.where if world not in proved]
    state = "done" if row.state == "done" else f"open: {', '.join(open_worlds)}"
    tests = "<br>".join(
        f"{mark.world}: `{_short(mark.test)}`" for mark in marks if mark.row == row.id
    )
    promise = row.promise.replace("|", "\\|")
    return f"| {row.id} | {promise} | {state} | {tests} | {_broken(row)} |"


def _short(test: str) -> str:
    """A test's file and name, without what all files begin with."""
    return test.removeprefix("tests/").removeprefix("system_tests/scenarios/")


def _broken(row: Row) -> str:
    """What was broken to see the tests of a row go red, and where they did."""
    results = read_results()
    return "<br>".join(
        f"{one.says} (`{one.place.partition(':')[2]}`): {', '.join(_noticed(results, one.name))}"
        for one in read_breaks()
        if one.row == row.id
    )


def _noticed(results: dict[str, dict[str, Any]], name: str) -> list[str]:
    return [world for world, red in results.get(name, {"red": {}})["red"].items() if red]
