"""docs/negotiation.md: the rules of member and leader and the release table, from the tables."""

import re
from collections.abc import Iterable

from probing import (
    FOLLOWUP_RULES,
    LEADER_RULES,
    MEMBER_RULES,
    NATIVE_ANSWER_RULES,
    NEXT_VERSION_RULES,
    PATH_RULES,
    RELEASES,
    LeaderModel,
    MemberModel,
    Release,
    Standing,
)
from probing.member.used_version import DROPS_TASKS, FIRES_DURING_REBALANCE, HAS_FOLLOWUPS
from probing.releases.rows import ISSUES, LATEST_VERSION_SINCE, NATIVE_RELEASES, NATIVE_VERSIONS
from probing.rules import always

_TOP = """# Which version a group uses

To see what a leader answers to given members, and what they do with it, run `negotiate`:

```sh
assignor negotiate --members 10/11,11/11 --release 2.8 --until-settled
assignor negotiate --members jvm:9/9,native:11/11+101
```

A member is written as NAME:USED/LATEST: the version that it uses and the latest that it supports;
`+101` adds a native version. Versions are those of the assignment protocol (KIP-268). This page has
the rules of all releases as decision tables. In every table, the first row that applies decides.

| word in the tables | meaning |
| --- | --- |
| *used* | the version of the member's subscription |
| *received* | the version of its assignment |
| *common* | the second number of the assignment: the commonly supported version |
| *latest* | the latest version that the member or leader itself supports |
| *future member* | a member whose used version is above the leader's latest version |
| go up, come down | write a higher or lower version, beginning with the next subscription |
| pin | `upgrade.from`: up to 1.1, a member writes version 1 or 2; up to 2.3, it stays eager |
| native | a member or leader of this project |

`python -m docs.generate` writes this page from the tables in `probing/`."""

_KAFKA_DIFFERENCES = """## Where Kafka's code differs from the text of the KIP

- By the KIP, future members get an empty assignment. Since 2.4 they get tasks.
- By the KIP, the second number is the leader's own latest version. Since 2.2.2, 2.3.1 and 2.4 it is
  the lowest version that all members support. Before that, KAFKA-8649 ends members of 2.0 under
  leaders of 2.1 to 2.3.0.
- By the KIP, only the leader starts the last rebalance. In the released code, every member that
  goes up starts one. The model `text of KIP-268` is the rule of the KIP, for comparison.
- A future member beside version 1 or 2 ends the leader up to 2.6. From 2.7 on, all members get
  error 3, in the leader's latest version, which older members cannot read. A native leader answers
  all of them in the lowest version."""

_NATIVE = """## Native members among themselves and beside JVM members

A native member writes one of Kafka's versions with a *trailer*, which JVM members ignore, or a
*native* version (101 and up). It starts at 11 with a trailer, or at the lower Kafka version that it
remembers; `start_version="latest"` starts at 101, as in KIP-268. In one of Kafka's versions it
advertises 11, not 101, because a JVM leader may answer in any version up to the lowest advertised
one. A JVM leader sees an ordinary KIP-268 member that supports version 11.

A native leader answers JVM members by the JVM rule, applied to the JVM members alone. It answers
each native member separately:"""

_NEXT = """The answer also names the version to write at the *next* rebalance, whenever it happens.
This table decides it for each native member:"""

_PROMISES = """### Guarantees and limits

These hold in every group of three that any sequence of bounces can reach. The tests enumerate JVM
members of latest version 2, 3, 4, 9, 11 and 12 and native members of 101 and 102, with and without
pins, every leader of every rebalance, and bounces that are faster or slower than the session
timeout or happen during a rebalance.

- A native leader never makes a native member rejoin only for a version, with one exception: a
  member whose body cannot be read (an incompatible later version) rejoins once. JVM members follow
  their own rule.
- Every group settles within two rebalances, or within three if a JVM member of a version above 11
  becomes the leader of members at 101.
- A change of leader alone costs no rebalance, except for a *pinned native member* beside JVM
  members. A JVM leader answers all members in the pinned version 1 or 2, a native leader does not.
  When a native leader replaces a JVM leader, the JVM members go up (or down to 11) once, and only
  they rejoin.
- Between 101 and 102, no member ever rejoins. With the default start, the same holds for 103.
- Without pins and without versions 1 and 2, no member dies.

A JVM leader can still end the group, as it can with Kafka's own members, in two situations:

- **a.** The leader reads only versions 1 and 2 (a real 1.1 or older) and a native member is not
  pinned. Or a member writes 1 or 2, a native member writes at most 11, and that is above the
  leader's latest version (below 11). The second case ends with the first rebalance under a native
  leader, which lowers native members to 3; a JVM leader does not end it.
- **b.** Native members write 101, a member writes 1 or 2, and a JVM member becomes the leader
  before the native members learn of it. One complete rebalance under any leader ends this case. If
  you may return to a JVM with `upgrade.from` up to 1.1, keep the finalized level at 11; then *b*
  cannot happen.

The member that writes 1 or 2 is usually a pinned JVM. A pinned *native* member has the same effect:
a JVM member without a pin that joins and becomes the leader at once dies in the same way. Pin
native members only while every JVM member in the group is of 1.1 or older, or pinned too."""


_PINS = """`upgrade.from` 0.10.0 pins version 1, and 0.10.1 to 1.1 pin version 2; later values pin
no version. Values up to 2.3 keep the eager rebalance protocol."""


def render() -> str:
    """Return the whole page."""
    parts = [
        _TOP,
        *_member_rules(),
        *_leader_rules(),
        *_native_rules(),
        _KAFKA_DIFFERENCES,
        *_paths(),
        *_versions(),
        *_releases(),
        *_issues(),
    ]
    return "\n\n".join(parts) + "\n"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(map(table_row, (header, tuple("---" for _ in header), *rows)))


def table_row(cells: Iterable[str]) -> str:
    """Return a row of a table in Markdown."""
    texts = (re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(texts)} |"


def template(text: str) -> str:
    """Return a row's sentence with names for numbers: `{lowest_used}` becomes *lowest used*."""
    return re.sub(r"\{(\w+)\}", lambda found: f"*{found[1].replace('_', ' ')}*", text)


def _releases_of(model: LeaderModel | MemberModel) -> str:
    """Return the releases of a model as ranges: `2.4.0 to 2.5.1`."""
    runs: list[list[Release]] = []
    before = None
    for release in RELEASES:
        if model in (release.leader_model, release.member_model):
            if before is not None and runs and runs[-1][-1] is before:
                runs[-1].append(release)
            else:
                runs.append([release])
        before = release
    names = [run[0].name if len(run) == 1 else f"{run[0].name} to {run[-1].name}" for run in runs]
    return ", ".join(names) or "no release"


def _member_rules() -> list[str]:
    parts = ["## What a member does with an answer"]
    tables: dict[tuple[str, ...], list[MemberModel]] = {}
    for model, rules in MEMBER_RULES.items():
        tables.setdefault(tuple(rule.name for rule in rules), []).append(model)
    for models in tables.values():
        parts.append(f"### {', '.join(f'`{model.value}`' for model in models)}")
        parts.append("\n".join(f"- `{model.value}`: {_member_note(model)}" for model in models))
        parts.append(
            table(
                ("rule", "the member", "why"),
                [
                    (rule.name, rule.says.action.value, template(rule.why))
                    for rule in MEMBER_RULES[models[0]]
                ],
            )
        )
    follow = [(rule.name, template(rule.why)) for rule in FOLLOWUP_RULES]
    parts += [
        "### Follow-up rebalances",
        "After the version is settled, models with follow-up rebalances use this table.",
        table(("rule", "why"), follow),
    ]
    return parts


def _member_note(model: MemberModel) -> str:
    notes = [_releases_of(model)]
    if model in DROPS_TASKS:
        notes.append("drops the tasks of a probing answer (KAFKA-8972)")
    if model in HAS_FOLLOWUPS:
        notes.append("asks for follow-up rebalances")
    if model in FIRES_DURING_REBALANCE:
        notes.append("which may start during a rebalance (KAFKA-14382)")
    return "; ".join(notes)


def _leader_rules() -> list[str]:
    parts = ["## What a leader answers"]
    for model in LeaderModel:
        rows = []
        for rule in (rule for rule in LEADER_RULES if model in rule.models):
            says = rule.says
            outcome = says.outcome.value
            if outcome == "answers":
                future = says.future_get.value
                same = says.future_get == says.others_get
                outcome = future if same else f"{says.others_get.value}; future members: {future}"
            rows.append((rule.name, outcome, template(rule.why)))
            if rule.holds is always:
                break
        parts += [
            f"### `{model.value}`: {_releases_of(model)}",
            table(("rule", "tasks", "why"), rows),
        ]
    return parts


def _native_rules() -> list[str]:
    answers = [(rule.name, template(rule.why)) for rule in NATIVE_ANSWER_RULES]
    versions = [(rule.name, template(rule.why)) for rule in NEXT_VERSION_RULES]
    return [
        _NATIVE,
        table(("answer", "why"), answers),
        _NEXT,
        table(("the group has", "why"), versions),
        _PROMISES,
    ]


def _paths() -> list[str]:
    rows = [
        (rule.name, "yes" if rule.possible else "no", template(rule.why)) for rule in PATH_RULES
    ]
    return [
        "## From one release to another",
        "*Lower* is the older release, *higher* the newer; *value* is the series of the older.",
        table(("rule", "rolling", "why"), rows),
    ]


def _versions() -> list[str]:
    rows = [(str(version), since, what) for since, version, what in LATEST_VERSION_SINCE]
    native = [
        (str(row.version), f"whose latest is at least {row.readable_since}", row.summary)
        for row in NATIVE_VERSIONS
    ]
    programs = [
        (row.name, ", ".join(map(str, row.native_versions)), row.summary) for row in NATIVE_RELEASES
    ]
    return [
        "## Versions",
        table(("version", "since", "new in it"), rows),
        "Versions 12 to 100 stay free for Kafka. Versions from 101 on are native:",
        table(("version", "read by members", "meaning"), native),
        table(("release", "writes, beside 1 to 11", "meaning"), programs),
    ]


def _releases() -> list[str]:
    rows = [
        (
            release.name,
            ", ".join(map(str, (release.latest_version, *release.native_versions))),
            release.leader_model.value,
            release.member_model.value,
            release.rebalance_protocol.value,
            _values(release),
            ", ".join(release.open_issues) or "-",
        )
        for release in RELEASES
    ]
    header = (
        "release",
        "latest",
        "leader model",
        "member model",
        "protocol",
        "`upgrade.from`",
        "open issues",
    )
    return [
        "## Releases",
        _PINS,
        table(header, rows),
    ]


def _values(release: Release) -> str:
    """Return the accepted values as a range, then the values that end the member."""
    accepted = list(release.upgrade_from)
    spans = [f"{accepted[0]} to {accepted[-1]}" if accepted[1:] else "".join(accepted) or "-"]
    for standing in (Standing.CRASHES, Standing.REFUSED):
        values = [row.value for row in release.upgrade_from_rows if row.standing is standing]
        if values:
            span = values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"
            spans.append(f"{standing.value}: {span}")
    return "; ".join(spans)


def _issues() -> list[str]:
    rows = [(issue.id, issue.since, ", ".join(issue.fixed_in), issue.summary) for issue in ISSUES]
    return ["## Known issues", table(("id", "since", "fixed in", "problem"), rows)]
