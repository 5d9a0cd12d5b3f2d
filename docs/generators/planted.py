"""docs/planted.md: which tests fail when one rule is removed, from docs/planted.json."""

import json
from itertools import groupby
from pathlib import Path

_STORED = Path(__file__).resolve().parents[1] / "planted.json"
_TOP = """# Which tests fail without each rule

To measure again:

<!-- not run: minutes -->
```sh
python -m tests.system_tests.planted.rules
python -m tests.system_tests.planted.dimensions # faults of groups with dimensions
python -m tests.system_tests.planted.topologies # faults of changed topologies
python -m tests.probing.topologies.planted # rules of changed topologies, explored
```

The first command removes one row at a time from the tables of `probing/`
([negotiation](negotiation.md)), runs {bounces} bounces, and records the best one that breaks
another rule of the simulator than with the complete table. A test repeats it
(`tests/system_tests/planted/test_rules.py`). Broken rules have the names of the checkers.

- A rule in the second column is broken only without the row.
- *no longer found*: the bounce is known to be broken, and without the row the simulator does not
  find that any more.
- *no row holds*: the code raises an exception, which proves little. [mutants](mutants.md) gives the
  row another result instead.
- If no test fails, the last column gives the reason.

The bounces are commands and runbooks as they run with the complete table, where most of them are
good. To see a verdict that is bad for released Kafka code, run
`rolling-bounce explore --from 2.0.1 --to 2.3.0 --members 2 --crashes 0`.
`python -m docs.generate` writes this page from `docs/planted.json`."""
_CHECKERS = """## Checkers

For each checker, the table names a bounce in which it finds a broken rule, and the other checkers
that find a broken rule in the same bounce. If there is none, the bounce is good without the
checker. `explore` stops at the first broken rule of a run, so a checker can be the only one there
that is never the only one in `simulate`."""


_DIMENSIONS = """## Checkers of groups with dimensions

The dimensions of `simulate --draw all` and `explore` ([simulator](simulator.md)) have their own
checkers. For each of them, the code is changed in one place
(`tests/system_tests/planted/dimensions.py`). A test repeats every row."""


_TOPOLOGIES = """## Checkers of changed topologies

The bounces of `simulate --topology` and `--draw topology` have checkers of their own
([simulator](simulator.md#a-changed-application)). For each of them, the code is changed in one
place (`tests/system_tests/planted/topologies.py`). A test repeats every row."""


_EXPLORED = """## Rules of a changed topology

`python -m tests.probing.topologies.planted` removes or replaces one row at a time of the tables in
`probing/topologies` and explores every order of a rolling change with crashes
([topologies](topologies.md)). A test repeats it. Not listed are rows that do not decide in these
explorations: those of levels and of programs that carry both topologies, and claims of hostile
members (`tests/probing/topologies/test_claims.py`)."""


def render() -> str:
    """Return the whole page."""
    stored = json.loads(_STORED.read_text(encoding="utf-8"))
    parts = [_TOP.format(bounces=stored["bounces"])]
    for table, rows in groupby(stored["rows"], key=lambda row: row["table"]):
        lines = ["| removed row | broken rules | in |", "| --- | --- | --- |"]
        lines += [_row(row) for row in rows]
        parts.append(f"## {table[0].upper()}{table[1:]}\n\n" + "\n".join(lines))
    lines = ["| checker | in | removed row | other checkers | alone in |"]
    lines += ["| --- | --- | --- | --- | --- |", *map(_checker, stored["checkers"])]
    parts.append(_CHECKERS + "\n\n" + "\n".join(lines))
    lines = ["| checker | what the changed code does | in | other checkers | and in |"]
    lines += ["| --- | --- | --- | --- | --- |", *map(_dimension, stored["dimensions"])]
    parts.append(_DIMENSIONS + "\n\n" + "\n".join(lines))
    lines = ["| checker | what the changed code does | in | other checkers |"]
    lines += ["| --- | --- | --- | --- |", *map(_topology, stored["topologies"])]
    parts.append(_TOPOLOGIES + "\n\n" + "\n".join(lines))
    lines = ["| rule | fault | change, crashes | finding |"]
    lines += ["| --- | --- | --- | --- |", *map(_explored, stored["explored"])]
    parts.append(_EXPLORED + "\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _row(row: dict) -> str:
    if "bounce" not in row:
        how = "decides, but" if row["decides"] else "never decides:"
        return f"| {row['rule']} | nothing | {how} {row['reason']} |"
    broken = ", ".join(row["red"])
    if row["lost"]:
        broken += f"{'; ' if broken else ''}no longer found: {', '.join(row['lost'])}"
    return f"| {row['rule']} | {broken} | `{row['bounce']}` |"


def _checker(row: dict) -> str:
    without, others = row["without"] or "-", ", ".join(row["others"]) or "none"
    alone = f"`{row['alone']}`" if row["alone"] else "-"
    return f"| {row['checker']} | `{row['bounce']}` | {without} | {others} | {alone} |"


def _topology(row: dict) -> str:
    others = ", ".join(row["others"]) or "none"
    return f"| {row['checker']} | {row['why']} | `{row['bounce']}` | {others} |"


def _explored(row: dict) -> str:
    return (
        f"| {row['rule']} | {row['fault']} | {row['change']}, {row['crashes']} | {row['found']} |"
    )


def _dimension(row: dict) -> str:
    others = ", ".join(row["others"]) or "none"
    search = f"`{row['search']}`" if row["search"] else "-"
    return f"| {row['checker']} | {row['why']} | `{row['bounce']}` | {others} | {search} |"
