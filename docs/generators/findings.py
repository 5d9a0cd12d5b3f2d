"""docs/findings.md: what `explore` finds on every upgrade, from docs/findings.json."""

import json
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from system_tests.explore import ISSUES

_STORED = Path(__file__).resolve().parents[1] / "findings.json"
_TOP = """# Findings of every upgrade

Printed by `python -m docs.generate` from `docs/findings.json`, which holds what was measured:
`python -m tests.system_tests.explore.table` runs `explore` ([simulator](simulator.md)) for each
of the {ways} upgrades between kinds of releases (the kinds of [upgrades](upgrades.md), and from
the oldest to the newest release of a kind). Ways on which the simulator would do the same (equal
versions, models and behaviour of both releases, equal pins) are explored once: {dynamic} ways for
dynamic members, {static} for static ones, which exist since 2.3 (KIP-345). The path is that of
the release table, with `upgrade.from` where it is needed; where there is none, one bounce without
a pin is explored.

| members | crashes | searches | complete | states |
| --- | --- | --- | --- | --- |
{shapes}

A search that is not complete stopped at its bound of states: 1,500 with a crash, 600 with three
members. So a way without a row here is one on which nothing was found in so many states, not one on
which nothing can happen; `rolling-bounce explore --from OLD --to NEW` looks further. A finding
without an id, anywhere in these searches: {without}."""
_ISSUES_HEAD = """## What is found

*Decided by*: what the model of a finding was held against. A finding is *introduced by the
upgrade* if neither release alone does it, looked for among three members, too. `plan` warns of
each row on the ways that it concerns (`tests/system_tests/explore/test_table.py`).

| issue | broken rules | a shortest runbook | decided by |
| --- | --- | --- | --- |"""
_EVIDENCE = {
    "KAFKA-6054": "confirmed, sources of 0.10.0.1 to 1.1.1: a leader that cannot read a version "
    "raises, and its thread dies. `plan` recommends none of these ways; no jar of "
    "0.10 is used here",
    "KAFKA-8649": "confirmed on JVMs: `scenarios/real/test_issues.py`. `plan` recommends none of "
    "these ways",
    "KAFKA-9525": "confirmed on JVMs: `scenarios/real/test_static_rejoin.py` (a static member of "
    "2.3.1 beside one of 2.0.1 asks on and on in one generation, a dynamic one does"
    " not). 2.4 and 2.5, by their sources: `StreamThread.enforceRebalance` is the "
    "same two calls",
    "KAFKA-9821": "confirmed, sources of 2.4.1 and 2.5.1 and Kafka's pull request 8596: the "
    "consumer that gives partitions up asks for the follow-up, and nothing but its "
    "memory knows. No jar of 2.4 or 2.5 is used here",
    "KAFKA-10455": "confirmed, Kafka's fix: the subscription of 2.6.1 has a byte that differs each"
    " time; no jar of 2.6 is used here",
    "KAFKA-14382": "confirmed, Kafka's pull request 12869: a follow-up that comes while a "
    "rebalance is running makes others miss their SyncGroup, round after round. "
    "Needs members that are slow in every round, so no JVM runs it here",
    "former-tasks": "confirmed on JVMs: `scenarios/real/test_former_tasks.py`",
}
_REFUTED = """## Refuted

The model was wrong, and was mended.

- *2.4 and 2.5 alone never settle among three members* (rule "settles", no id): the simulator let
  the leader remember that a follow-up is due, and leave the group to ask for it. No release does
  that: the member that gives partitions up rejoins, and stays a member
  (`ConsumerCoordinator.onJoinComplete` of 2.4.1 and 2.5.1; the assignor asks for a rebalance when
  its version changes, and for nothing else). 2.4.1 alone, three members: 4,010 states,
  complete, nothing found.
- *Static members of 2.0 to 2.2* ("nobody stays future", "nothing is forgotten", "settles"): there
  are none. `group.instance.id` exists since 2.3.0, and `--static` says so now.
- *KAFKA-14382 is introduced by the upgrade* (2.4.1 to 2.8.2, two members): 2.8.2
  alone does it among three members, within 270 states and one restart. What two members do not do
  alone is now looked for among three. The endless run of 2.6.0 alone has a rejoin in it that is
  ignored, and is called KAFKA-10455; so KAFKA-14382 is still *introduced* on the ways to 2.6.0.
- *An eager member of 2.6 or newer names former tasks*: see [simulator](simulator.md)."""
_BESIDE = """## Met on JVMs, and not found here

- `former-tasks`: two members run one task while a newer member joins a group that a release before
  2.4 leads. Four real members of 2.3.1 do it (`scenarios/real/test_former_tasks.py`); searches of
  two and three members within these bounds do not come to it. `plan` warns of it.
- A leader of 2.0 to 2.2.1 or of 2.3.0 lists former tasks in one order and their partitions in
  another while a newer member joins. With more than one subtopology its members die of a
  NullPointerException: `scenarios/real/test_probing_answer.py`, in every run with 2.0.1 and
  2.3.0. Fixed in 2.2.2 and 2.3.1, together with KAFKA-8649. The simulator has one subtopology and
  no topic names, so `explore` cannot find it; `plan` warns of it."""
Row = dict[str, Any]


def render() -> str:
    """The whole page."""
    stored = json.loads(_STORED.read_text(encoding="utf-8"))
    searches = stored["searches"]
    found = [{**search, **finding} for search in searches for finding in search["findings"]]
    without = [row for row in found if row["issue"] is None]
    dynamic, static = stored["same"]
    top = _TOP.format(
        ways=sum(map(len, dynamic)),
        dynamic=len(dynamic),
        static=len(static),
        shapes="\n".join(_shapes(searches)),
        without=len(without) or "none",
    )
    issues = [issue for issue in ISSUES if any(row["issue"] == issue.id for row in found)]
    rows = [_issue(issue.id, issue.why, found) for issue in issues]
    parts = [top, "\n".join([_ISSUES_HEAD, *rows]), *_without(without), _REFUTED, _BESIDE]
    found_of = {issue.id: [row for row in found if row["issue"] == issue.id] for issue in issues}
    parts += ["\n".join(_ways(rows_of_one)) for rows_of_one in found_of.values()]
    return "\n\n".join(parts) + "\n"


def _shapes(searches: Iterable[Row]) -> Iterable[str]:
    key = itemgetter("members", "static", "crashes")
    for (members, static, crashes), group in groupby(searches, key=key):
        rows = list(group)
        complete = sum(row["complete"] for row in rows)
        states = sum(row["states"] for row in rows)
        kind = "static" if static else "dynamic"
        yield f"| {members} {kind} | {crashes} | {len(rows)} | {complete} | {states:,} |"


def _issue(name: str, why: str, found: list[Row]) -> str:
    rows = [row for row in found if row["issue"] == name]
    rules = ", ".join(sorted({row["rule"] for row in rows}))
    least = min(rows, key=lambda row: row["runbook"].count(";"))
    shown = f"`{_command(least)}`: {least['runbook']}"
    return f"| {name}: {why} | {rules} | {shown} | {_EVIDENCE[name]} |"


def _command(row: Row) -> str:
    static = " --static" if row["static"] else ""
    size = f"--members {row['members']} --crashes {row['crashes']}{static}"
    return f"explore --from {row['from']} --to {row['to']} {size}"


def _without(rows: list[Row]) -> Iterable[str]:
    """Return the findings that nobody has decided yet."""
    if rows:
        lines = [f"| {row['rule']} | `{_command(row)}` | {row['runbook']} |" for row in rows]
        head = ["## Without an id", "", "| broken rule | in | runbook |", "| --- | --- | --- |"]
        yield "\n".join([*head, *lines])


def _ways(rows: list[Row]) -> Iterable[str]:
    """Return every way on which an issue is found, by what it says about the upgrade."""
    yield f"## {rows[0]['issue']}: where"
    yield ""
    seen: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in rows:
        kind = "static" if row["static"] else "dynamic"
        seen.setdefault((row["presence"], kind, row["from"]), {})[row["to"]] = None
    yield "| | members | from | to |"
    yield "| --- | --- | --- | --- |"
    for (presence, kind, old), news in sorted(seen.items(), key=lambda one: one[0][:2]):
        yield f"| {presence} | {kind} | {old} | {', '.join(news)} |"
