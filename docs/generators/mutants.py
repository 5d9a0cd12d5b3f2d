"""docs/mutants.md: which tests detect a row with another result, from docs/mutants.json."""

import json
from collections import Counter
from itertools import groupby
from pathlib import Path

_STORED = Path(__file__).resolve().parents[1] / "mutants.json"
_PLANTED = _STORED.with_name("planted.json")
_TOP = """# Which tests fail when a rule has another result

To measure again (the command continues where it was stopped):

<!-- not run: hours -->
```sh
python -m tests.system_tests.planted.mutants
```

[planted](planted.md) removes rows from the decision tables of `probing/`
([negotiation](negotiation.md)). If the last row of a table is removed, no row applies and the code
raises an exception, which proves little. On this page, every row stays and gets the result of
another row of its table: this is a *mutant*. Three kinds of tests run in this order, each only for
mutants that the kinds before did not detect:

- *simulator*: up to {bounces} bounces of [planted](planted.md) in which the row decides;
- *explorer*: up to {searches} searches in which the row decides, with two members, no crash, and at
  most {states} states;
- *unit tests*: `tests/probing`.

A mutant is detected if other rules are broken than with the unchanged tables. Code that raises an
exception does not count as a broken rule.

{counts}

No test can detect a change of a row that never decides; [planted](planted.md) says why it never
does. `python -m docs.generate` writes this page from `docs/mutants.json`.
{extent}"""


def render() -> str:
    """Return the whole page."""
    rows = json.loads(_STORED.read_text(encoding="utf-8"))
    reasons = {
        f"{row['table']}: {row['rule']}": row["reason"]
        for row in json.loads(_PLANTED.read_text(encoding="utf-8"))["rows"]
    }
    parts = [_TOP.format(**rows["limits"], counts=_counts(rows), extent=_extent(rows))]
    for table, found in groupby(rows["mutants"], key=lambda row: row["row"].split(": ")[0]):
        lines = ["| row | gets the result of | detected by | how |", "| --- | --- | --- | --- |"]
        lines += [_line(row, reasons) for row in found]
        parts.append(f"## {table[0].upper()}{table[1:]}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _counts(rows: dict) -> str:
    seen = Counter(_state(row) for row in rows["mutants"])
    seen["not measured yet"] = rows["mutants_in_all"] - len(rows["mutants"])
    lines = ["| mutants | detected by |", "| --- | --- |"]
    lines += [f"| {count} | {state} |" for state, count in sorted(seen.items())]
    return "\n".join([*lines, f"| {rows['mutants_in_all']} | in all |"])


def _extent(rows: dict) -> str:
    incomplete = sum(_state(row).startswith("nothing so far") for row in rows["mutants"])
    return f"Incomplete: some tests did not run for {incomplete} mutants." if incomplete else ""


def _state(row: dict) -> str:
    if row["seen"] != "nothing":
        return row["seen"]
    if not row.get("decides"):
        return "nothing: the row never decides"
    if row.get("reason"):
        return "nothing, with a reason"
    missing = [tests for tests in ("explorer", "unit tests") if tests not in row["asked"]]
    return f"nothing so far: {' and '.join(missing)} did not run yet" if missing else "nothing"


def _line(row: dict, reasons: dict[str, str]) -> str:
    how = ""
    if "in" in row:
        how = ", ".join(row["red"])
        if row["lost"]:
            how += f"{'; ' if how else ''}no longer found: {', '.join(row['lost'])}"
        command = f"explore {row['in']}" if row["seen"] == "explorer" else row["in"]
        how += f" in `{command}`"
    elif row["seen"] == "nothing":
        how = row.get("reason") or ("" if row.get("decides") else reasons.get(row["row"], ""))
        raised = row.get("raises")
        how += f"{'; ' if how else ''}raises {raised}" if raised else ""
    name = row["row"].split(": ", 1)[1]
    return f"| {name} | {row['says']} | {_state(row).split(':')[0]} | {how or '-'} |"
