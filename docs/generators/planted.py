"""docs/planted.md: what goes red when one rule is taken out, from docs/planted.json."""

import json
from itertools import groupby
from pathlib import Path

_STORED = Path(__file__).resolve().parents[1] / "planted.json"
_TOP = """# What each rule is for

Printed by `python -m docs.generate` from `docs/planted.json`, which holds what was measured:
`python -m tests.system_tests.planted.rules` takes every row out of the tables of `probing/`
([negotiation](negotiation.md)), one at a time, runs {bounces} bounces, and notes the best of those
in which another rule of the simulator is broken than with the whole table. A test repeats it
(`tests/system_tests/planted/test_rules.py`). Broken rules have the names of the checkers.

- *goes red*: rules that are broken only without the row;
- *no longer found*: the bounce is one that history knows to be broken, and without the row the
  simulator does not find that any more;
- a row that nothing misses says why;
- *no row holds*: the code raises, which proves little: [mutants](mutants.md) lets rows say
  something else instead.

The bounces stand here as they are run with the whole table, where most of them are good: they go
red with the broken code only. `python -m tests.system_tests.planted.dimensions` breaks the code in
ten places and prints what goes red each time; a judge that says no to code that Kafka shipped is
shown by `rolling-bounce explore --from 2.0.1 --to 2.3.0 --members 2 --crashes 0`. A bounce is a
command or a runbook, which the tests play."""
_CHECKERS = """## Checkers

What each checker finds fault with, and which others find fault with the same bounce: where there is
none, the bounce is green without the checker. `explore` stops at the first rule that is broken on a
way, so there a checker may stand alone that `simulate` never sees alone."""


_DIMENSIONS = """## Checkers of groups with dimensions

What `simulate --draw all` and options of `explore` add to a group ([simulator](simulator.md)) has
checkers of its own. For each of them the code is broken in one place
(`tests/system_tests/planted/dimensions.py`); a test repeats every row."""


def render() -> str:
    """The whole page."""
    stored = json.loads(_STORED.read_text(encoding="utf-8"))
    parts = [_TOP.format(bounces=stored["bounces"])]
    for table, rows in groupby(stored["rows"], key=lambda row: row["table"]):
        lines = ["| row taken out | what goes red | in |", "| --- | --- | --- |"]
        lines += [_row(row) for row in rows]
        parts.append(f"## {table[0].upper()}{table[1:]}\n\n" + "\n".join(lines))
    lines = ["| checker | in | with this row taken out | other checkers | alone in |"]
    lines += ["| --- | --- | --- | --- | --- |", *map(_checker, stored["checkers"])]
    parts.append(_CHECKERS + "\n\n" + "\n".join(lines))
    lines = ["| checker | what the broken code does | in | other checkers | and in |"]
    lines += ["| --- | --- | --- | --- | --- |", *map(_dimension, stored["dimensions"])]
    parts.append(_DIMENSIONS + "\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _row(row: dict) -> str:
    if "bounce" not in row:
        how = "decides, but" if row["decides"] else "never decides:"
        return f"| {row['rule']} | nothing | {how} {row['reason']} |"
    said = ", ".join(row["red"])
    if row["lost"]:
        said += f"{'; ' if said else ''}no longer found: {', '.join(row['lost'])}"
    return f"| {row['rule']} | {said} | `{row['bounce']}` |"


def _checker(row: dict) -> str:
    without, others = row["without"] or "-", ", ".join(row["others"]) or "none"
    alone = f"`{row['alone']}`" if row["alone"] else "-"
    return f"| {row['checker']} | `{row['bounce']}` | {without} | {others} | {alone} |"


def _dimension(row: dict) -> str:
    others = ", ".join(row["others"]) or "none"
    search = f"`{row['search']}`" if row["search"] else "-"
    return f"| {row['checker']} | {row['why']} | `{row['bounce']}` | {others} | {search} |"
