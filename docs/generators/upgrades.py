"""docs/upgrades.md: what concerns a path, what else changes, and every pair of releases.

From the rows of `system_tests/plan`, the release table and the stored verdicts of all pairs.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from docs.generators.negotiation import table_row
from probing import NEWEST_KAFKA, RELEASES, Release, find_release
from probing.releases import READ, TRUNK
from probing.upgrades import NOT_RUN, one_way_formats_between, seen_with
from system_tests.matrix import expect
from system_tests.matrix.markdown import first_releases, render_page
from system_tests.matrix.store import read_verdicts
from system_tests.plan import (
    ANNOUNCED,
    CHANGES,
    NOT_CHECKED,
    NOT_REHEARSED,
    ReleaseChange,
    When,
)
from system_tests.plan.changes import NEW, STREAMS_CHANGES
from system_tests.support.claims import CLAIMS, Claim

_STORED = Path(__file__).resolve().parents[2] / "tests/system_tests/matrix/upgrades.json"
_TOP = """# Upgrades and rollbacks

To upgrade a group, ask for its path. The answer has its steps, its costs, and the rows of this page
that concern it, no others:

<!-- not run: docs/start-upgrade.md runs a plan -->
```sh
rolling-bounce plan --from 2.3.1 --to 4.4 --uses eos-v1,iq
```

## What concerns my path?

| question | answer |
| --- | --- |
| what must I do before? | [before you start](#before-you-start) |
| what does the plan turn into a step? | [in the steps](#in-the-steps) |
| what is different afterwards? | [afterwards](#afterwards) |
| what was tried with members of these releases? | [what was run](#what-was-run) |
| what is in the newest release for me? | [the newest release](#the-newest-release) |
| what is announced of later releases? | [later releases](#later-releases) |
| what does nobody check or rehearse for me? | [not checked](#not-checked) |
| how many bounces between two releases? | [all kinds of releases](#all-kinds-of-releases) |
| why more than one, and which? | {paths} |
| is this what KIP-268 promises? | [its test matrix](#kip-268s-test-matrix) |

A path is concerned by the releases after the one that you run, up to the one that you want. A cell
has the number of changes of a release and what they are about:

{index}

"""
_STEP = "a step of the plan"
_WHEN = {
    When.BEFORE: "What to do, or to know, before the first member is stopped.",
    When.STEP: "What the plan makes a step or a setting of a step; with an entry in `--uses`,"
    " only if it is given.",
    When.AFTER: "What is different once the members run the release.",
}
_USES = """A plan has every row with an empty cell in `--uses`, a row with a feature there only if
that feature is given, and a row with `not` only if it is not given. `until`: the first release
without the change."""

_NEWEST = """## The newest release

Kafka {series}, whose newest patch is {name}: what it changes, what it offers, what stays off until
you turn it on, the way back. A row of a later patch than {series}.0 has `since`.
`rolling-bounce plan --to {series}` names the rows that concern a path.

| | what | below {series} | source |
| --- | --- | --- | --- |
"""
_BACK = """### On the way back

What is different below a release, when a group returns to an earlier one. Members ignore settings
that their release does not know, with a warning in their log.

| below | about | what changes | what to do | `--uses` | source |
| --- | --- | --- | --- | --- | --- |
"""
_LATER = """### Later releases

What is recorded here of releases to come, as of {date}; read Kafka's own guide as well.
`rolling-bounce plan --to 5.0` prints the same. For streams groups, see also
[what later releases change](streams-groups.md#later-releases).

| release | what changes | what to do | source |
| --- | --- | --- | --- |
"""
_RUN = f"""### What was run

Claims that were tried with real members of Kafka Streams, in an application for each pair of
releases: `make rehearse-claims` runs them again, with `ONLY=static-back` one of them. Rows of this
page and steps of a plan without such a trial say "{NOT_RUN}".

| claim | name | what was seen |
| --- | --- | --- |
"""


def render() -> str:
    """Return the whole page."""
    parts = [
        _TOP.format(paths=_links(first_releases()), index=_index()),
        *_newest(find_release(NEWEST_KAFKA)),
        "## What else changes\n\n",
        f"{_USES}\n\n",
        *(_section(when) for when in When),
        _BACK,
        *_back_rows(),
        _LATER.format(date=READ[TRUNK]["date"]),
        *(f"{table_row(row)}\n" for row in ANNOUNCED),
        "\n",
        _RUN,
        *map(_claim_row, CLAIMS),
        "\n### Not checked\n\nBy any plan:\n\n",
        *(f"- {sentence}\n" for sentence in NOT_CHECKED),
        "\nBy any rehearsal (`rolling-bounce live`):\n\n",
        *(f"- {sentence}\n" for sentence in NOT_REHEARSED),
        "\n",
        render_page(read_verdicts(_STORED)),
    ]
    return "".join(parts)


def _links(names: Iterable[str]) -> str:
    return "from " + ", ".join(f"[{name}](#{name.replace('.', '')})" for name in names)


def _index() -> str:
    """Return a row for each release with changes: how many there are of each kind."""
    releases = sorted(
        {change.since for change in CHANGES}, key=lambda name: find_release(name).order
    )
    heads = ("release", *(f"[{when.lower()}](#{when.lower().replace(' ', '-')})" for when in When))
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |"]
    for release in releases:
        cells = [release]
        for when in When:
            own = [c for c in CHANGES if c.what and c.since == release and c.when is when]
            subjects = dict.fromkeys(change.subject.value for change in own)
            cells.append(f"{len(own)}: {', '.join(subjects)}" if own else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _section(when: When) -> str:
    """Return the rows of one time, from the newest release to the oldest."""
    own = sorted(
        (change for change in CHANGES if change.what and change.when is when),
        key=lambda change: find_release(change.since).order,
        reverse=True,
    )
    heads = ("release", "until", "about", "what changes", "what to do", "`--uses`", "source")
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |"]
    lines += [_row(change) for change in own]
    return f"### {when}\n\n{_WHEN[when]}\n\n" + "\n".join(lines) + "\n\n"


def _back_rows() -> Iterator[str]:
    """Yield the rows of ways back, from the newest release to the oldest, and the end."""
    rows = [change for change in CHANGES if change.back]
    for change in sorted(rows, key=lambda row: find_release(row.since).order, reverse=True):
        cells = (change.back, change.back_action, _uses(change), change.source)
        yield f"{table_row((change.since, change.subject.value, *cells))}\n"
    yield "\n"


def _newest(newest: Release) -> Iterator[str]:
    """Yield the section of the newest release: its rows of all tables, by kind."""
    yield _NEWEST.format(name=newest.name, series=newest.series)
    first = f"{newest.series}.0"
    patches = [release.name for release in RELEASES if release.series == newest.series]
    rows = [
        (f"new{_in_patch(row.release, first)}", row.what, row.back, row.source)
        for row in NEW
        if row.release in patches
    ]
    for where, changes in (("", CHANGES), (": streams groups", STREAMS_CHANGES)):
        for change in changes:
            begun = [since for since, _ in change.ranges if since in patches]
            if not begun:
                continue
            kind = "changed, to do" if change.action else "changed, nothing to do"
            kind = "off by default" if change.off_by_default else kind
            what = "; ".join(filter(None, (change.what, change.action)))
            back = "; ".join(filter(None, (change.back, change.back_action)))
            rows.append((f"{kind}{_in_patch(begun[0], first)}{where}", what, back, change.source))
    start = find_release(first).order
    before = [release for release in RELEASES if release.order < start][-1]
    one_way = [row.what for row in one_way_formats_between(before, newest)]
    state = "; ".join(one_way) or f"no format is recorded that {before.name} cannot open"
    path = expect(newest, before).outcome
    rows.append(("way back", f"to {before.name}: {path}", state, "release table, simulated"))
    order = ("changed, to do", "changed, nothing to do", "new", "off by default", "way back")
    for row in sorted(rows, key=lambda row: order.index(row[0].partition(":")[0])):
        yield f"{table_row(row)}\n"
    yield "\n"


def _in_patch(release: str, first: str) -> str:
    """Return the patch that has a row, unless it is the first one."""
    return "" if release == first else f": since {release}"


def _claim_row(claim: Claim) -> str:
    return f"| {claim.says} | {claim.name} | {seen_with([claim.name])} |\n"


def _row(change: ReleaseChange) -> str:
    cells = (
        ", ".join(since for since, _ in change.ranges),
        ", ".join(until for _, until in change.ranges if until),
        change.subject.value,
        change.what,
        "; ".join(filter(None, (change.with_work(_STEP, change.action), change.no_return))),
        _uses(change),
        change.source + (f"; shown by `{change.shown}`" if change.shown else ""),
    )
    return table_row(cells)


def _uses(change: ReleaseChange) -> str:
    return ", ".join((*change.uses, *(f"not {use}" for use in change.unless)))
