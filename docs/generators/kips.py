"""docs/kips.md: the promises of the five KIPs, and the tests that prove them."""

from tests.ledger import (
    Mark,
    Row,
    proved_worlds,
    read_deviations,
    read_marks,
    read_rows,
)
from tests.planted.faults import read_faults
from tests.planted.results import read_results


def render() -> str:
    """Return the whole page."""
    rows, marks = read_rows(), read_marks()
    done = sum(row.state == "done" for row in rows)
    lines = [
        "# The promises of the KIPs, and the tests that prove them",
        "",
        "To break a copy of the code behind one promise on purpose, and see its tests fail:",
        "",
        "<!-- not run: plants faults -->",
        "```sh",
        "python -m tests.planted 268-7 --world core",
        "python -m tests.planted 268-7 # in all environments, those of real brokers too",
        "python -m tests.planted 268-7 --list # only print what would be broken",
        "```",
        "",
        f"Done: {done} of {len(rows)}.",
        "",
        "Each row is one promise of a KIP, from `tests/kips.toml`. A row is *done* if a passing",
        "test has its id in every environment that the row names: **core** (sans-IO), **sim**",
        "(simulator), **loop** (real clients on the embedded broker), **real** (a real broker).",
        "The last column names deliberate changes of the code, where they are, and the",
        "environments whose tests failed with them. Tests are below `tests`; those of `live` and",
        "`real` are below `system_tests/scenarios`. `python -m docs.generate` writes this page.",
    ]
    lines += _deviations()
    for kip in dict.fromkeys(row.kip for row in rows):
        lines += [
            "",
            f"## {kip}",
            "",
            "| id | promise | state | tests | changes that make them fail |",
            "| --- | --- | --- | --- | --- |",
        ]
        lines += [_line(row, marks) for row in rows if row.kip == kip]
    return "\n".join(lines) + "\n"


def _deviations() -> list[str]:
    """Return the section about intentional differences from the KIPs."""
    rows = [
        f"| {row.text} | {row.here} | {row.reason} | {', '.join(row.rows)} |"
        for row in read_deviations()
    ]
    return [
        "",
        "## Deviations from the texts of the KIPs",
        "",
        "This project differs from the KIPs in these places on purpose (`tests/deviations.toml`).",
        "",
        "| the KIP's text | this project | reason | rows |",
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
    """Return a test's file and name, without the common start of all paths."""
    return test.removeprefix("tests/").removeprefix("system_tests/scenarios/")


def _broken(row: Row) -> str:
    """Return the changes that make the tests of a row fail, and the environments where they do."""
    results = read_results()
    return "<br>".join(
        f"{fault.says} (`{fault.place.partition(':')[2]}`): "
        f"{', '.join(by for by, test in results[fault.name].noticed.items() if test)}"
        for fault in read_faults()
        if fault.row == row.id
    )
