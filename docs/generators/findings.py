"""docs/findings.md: what `explore` finds on every upgrade, from stored searches."""

import json
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

from system_tests.explore import ISSUES
from tests.system_tests.explore.table import STORED

_TOP = """# Findings of every upgrade

To search one upgrade further than this page:

<!-- not run: minutes, and its exit status depends on the releases -->
```sh
rolling-bounce explore --from 2.3.1 --to 3.9
```

`python -m tests.system_tests.explore.table` ran `explore` ([simulator](simulator.md)) for each of
the {ways} upgrades between kinds of releases (the kinds of [upgrades](upgrades.md), and from the
oldest to the newest release of a kind). Upgrades for which the simulator does the same (equal
versions, models and behaviour of both releases, equal pins) were searched once: {dynamic} for
dynamic members, {static} for static ones, which exist since 2.3 (KIP-345). The path is that of the
release table, with `upgrade.from` if it is needed. If no path exists, one bounce without a pin was
searched. `python -m docs.generate` writes this page from
`tests/system_tests/explore/findings.json`.

| members | crashes | searches | complete | states |
| --- | --- | --- | --- | --- |
{shapes}

A search that is not complete stopped at its bound of states: 1,500 with a crash, 600 with three
members. For an upgrade without a row on this page, nothing was found in that many states; more
states may have findings. Findings without an id, in all of these searches: {without}."""
_ISSUES_HEAD = """## Findings by issue

*Evidence* says how the finding was compared with Kafka. A finding is *introduced by the upgrade* if
neither release alone has it, also among three members. `plan` warns of each row on the upgrades
that it affects (`tests/system_tests/explore/test_table.py`).

| issue | broken rules | a shortest runbook | evidence |
| --- | --- | --- | --- |"""
_EVIDENCE = {
    "KAFKA-6054": "confirmed by the sources of 0.10.0.1 to 1.1.1: a leader that cannot read a "
    "version raises an exception, and its thread dies. `plan` recommends none of these upgrades. "
    "No jar of 0.10 was used",
    "KAFKA-8649": "confirmed on JVMs: `scenarios/real/test_issues.py`. `plan` recommends none of "
    "these upgrades",
    "KAFKA-9525": "confirmed on JVMs: `scenarios/real/test_static_rejoin.py` (a static member of "
    "2.3.1 beside one of 2.0.1 rejoins again and again in one generation, a dynamic one does not). "
    "For 2.4 and 2.5 by their sources: `StreamThread.enforceRebalance` makes the same two calls",
    "KAFKA-9821": "confirmed by the sources of 2.4.1 and 2.5.1 and Kafka's pull request 8596: the "
    "consumer that gives partitions up asks for the follow-up rebalance, and only its memory has "
    "this information. No jar of 2.4 or 2.5 was used",
    "KAFKA-10455": "confirmed by Kafka's fix: the subscription of 2.6.1 has a byte that differs "
    "each time. No jar of 2.6 was used",
    "KAFKA-14382": "confirmed by Kafka's pull request 12869: a follow-up rebalance that starts "
    "during another rebalance makes other members miss their SyncGroup, round after round. It "
    "needs members that are slow in every round, so it was not run on a JVM",
    "former-tasks": "confirmed on JVMs: `scenarios/real/test_former_tasks.py`",
    "KIP-429": "by Kafka's upgrade guide of 2.4: two bounces, the first with `upgrade.from`, since "
    "members of 2.4 and later keep tasks without it. Kafka 4 accepts no `upgrade.from` before 2.4, "
    "so one bounce is all that is left; `plan` recommends none of these upgrades. No JVM was used",
}
_REFUTED = """## Refuted findings

In these cases the model was wrong. It has been corrected.

- *2.4 and 2.5 alone never settle among three members* (rule "settles", no id). The simulator let
  the leader remember that a follow-up rebalance is due, and leave the group to ask for it. No
  release does that. The member that gives partitions up rejoins and stays a member
  (`ConsumerCoordinator.onJoinComplete` of 2.4.1 and 2.5.1); the assignor asks for a rebalance only
  when its version changes. 2.4.1 alone, three members: 4,010 states, complete, nothing found.
- *Static members of 2.0 to 2.2* ("nobody stays future", "nothing is forgotten", "settles") do not
  exist: `group.instance.id` exists since 2.3.0. `--static` now says so.
- *KAFKA-14382 is introduced by the upgrade* (2.4.1 to 2.8.2, two members). 2.8.2 alone has it among
  three members, within 270 states and one restart. Findings of two members are now also searched
  among three. The endless run of 2.6.0 alone includes an ignored rejoin, which is KAFKA-10455.
  Therefore KAFKA-14382 is still *introduced* by upgrades to 2.6.0.
- *An eager member of 2.6 or newer names former tasks*: see
  [explore](measurements/explore.md#findings-without-a-kafka-issue)."""
_BESIDE = """## Problems of JVMs that these searches do not find

- `former-tasks`: two members run one task while a newer member joins a group with a leader before
  2.4. Four real members of 2.3.1 show it (`scenarios/real/test_former_tasks.py`); searches of two
  and three members within these bounds do not reach it. `plan` warns of it.
- A leader of 2.0 to 2.2.1 or of 2.3.0 lists former tasks in one order and their partitions in
  another while a newer member joins. With more than one subtopology, its members die of a
  NullPointerException (`scenarios/real/test_probing_answer.py`, in every run with 2.0.1 and 2.3.0).
  It is fixed in 2.2.2 and 2.3.1, together with KAFKA-8649. The simulator has one subtopology and no
  topic names, so `explore` cannot find it; `plan` warns of it."""
Row = dict[str, Any]


def render() -> str:
    """Return the whole page."""
    stored = json.loads(STORED.read_text(encoding="utf-8"))
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
    parts += ["\n".join(_ways(rows_of_issue)) for rows_of_issue in found_of.values()]
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
    """Yield the findings without an issue."""
    if rows:
        lines = [f"| {row['rule']} | `{_command(row)}` | {row['runbook']} |" for row in rows]
        head = ["## Without an id", "", "| broken rule | in | runbook |", "| --- | --- | --- |"]
        yield "\n".join([*head, *lines])


def _ways(rows: list[Row]) -> Iterable[str]:
    """Yield a table of the upgrades on which an issue is found."""
    yield f"## Upgrades with {rows[0]['issue']}"
    yield ""
    seen: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in rows:
        kind = "static" if row["static"] else "dynamic"
        seen.setdefault((row["presence"], kind, row["from"]), {})[row["to"]] = None
    yield "| presence | members | from | to |"
    yield "| --- | --- | --- | --- |"
    for (presence, kind, old), news in sorted(seen.items(), key=lambda item: item[0][:2]):
        yield f"| {presence} | {kind} | {old} | {', '.join(news)} |"
