"""docs/mutants.md: who notices that a row says something else, from docs/mutants.json."""

import json
from collections import Counter
from itertools import groupby
from pathlib import Path

_STORED = Path(__file__).resolve().parents[1] / "mutants.json"
_PLANTED = _STORED.with_name("planted.json")
_TOP = """# What rows say

[planted](planted.md) takes rows out of the decision tables of `probing/`
([negotiation](negotiation.md)). Where the last row of a table is taken out, no row holds and the
code raises, which proves little. Here every row stays, and says what another row of its table says.

Printed by `python -m docs.generate` from `docs/mutants.json`, which
`python -m tests.system_tests.planted.mutants` measures; it goes on where it was stopped. The judges
are asked in this order, each about what the ones before did not notice:

- *simulator*: up to {bounces} bounces in which the row decides, of those of [planted](planted.md);
- *explorer*: up to {searches} searches in which the row decides, with two members, no crash,
  {states} states at most;
- *unit tests*: `tests/probing`.

A judge notices a mutant if other rules are broken than with the tables as they are. Code that
raises is no broken rule.

{counts}

Nobody can notice a row that never decides; why it does not is said in [planted](planted.md).
{extent}"""


def render() -> str:
    """The whole page."""
    rows = json.loads(_STORED.read_text(encoding="utf-8"))
    reasons = {
        f"{row['table']}: {row['rule']}": row["reason"]
        for row in json.loads(_PLANTED.read_text(encoding="utf-8"))["rows"]
    }
    parts = [_TOP.format(**rows["limits"], counts=_counts(rows), extent=_extent(rows))]
    for table, found in groupby(rows["mutants"], key=lambda row: row["row"].split(": ")[0]):
        lines = ["| row | says | noticed by | how |", "| --- | --- | --- | --- |"]
        lines += [_line(row, reasons) for row in found]
        parts.append(f"## {table[0].upper()}{table[1:]}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _counts(rows: dict) -> str:
    seen = Counter(_state(row) for row in rows["mutants"])
    seen["not measured yet"] = rows["mutants_in_all"] - len(rows["mutants"])
    lines = ["| mutants | noticed by |", "| --- | --- |"]
    lines += [f"| {count} | {state} |" for state, count in sorted(seen.items())]
    return "\n".join([*lines, f"| {rows['mutants_in_all']} | in all |"])


def _extent(rows: dict) -> str:
    unasked = sum(_state(row).startswith("nobody so far") for row in rows["mutants"])
    return f"This is not complete: for {unasked} mutants a judge was not asked." if unasked else ""


def _state(row: dict) -> str:
    if row["seen"] != "nothing":
        return row["seen"]
    if not row.get("decides"):
        return "nothing: the row never decides"
    if row.get("reason"):
        return "nothing, with a reason"
    missing = [judge for judge in ("explorer", "unit tests") if judge not in row["asked"]]
    return f"nobody so far: {' and '.join(missing)} not asked yet" if missing else "nothing"


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
