"""docs/negotiation.md: the rules of member and leader and the release table, from the tables."""

import re

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
from probing.member.rules import DROPS_TASKS, FIRES_DURING_REBALANCE, HAS_FOLLOWUPS
from probing.releases.rows import ISSUES, LATEST_VERSION_SINCE, NATIVE_RELEASES, NATIVE_VERSIONS

_TOP = """# Which version a group speaks

Printed by `python -m docs.generate` from the tables of `probing/`. Versions are those of the
assignment protocol (KIP-268); *used* is what a member wrote, *received* what it was answered in,
*common* the second number of the answer. In every table the first row that holds decides. Try it:
`assignor negotiate --members 10/11,11/11 --release 2.8 --until-settled`, or with members of ours
`assignor negotiate --members jvm:9/9,ours:11/11+101`."""

_KAFKA_DIFFERENCES = """## Where the shipped code is not the KIP

- The KIP gives future members an empty answer; since 2.4 they get real tasks.
- The KIP's second number is the leader's own; since 2.2.2, 2.3.1 and 2.4 it is the lowest supported
  one. In between, KAFKA-8649 ends members of 2.0 under leaders of 2.1 to 2.3.0.
- The KIP lets the leader alone start the last rebalance; in the shipped code every lifted member
  starts its own. Model `text of KIP-268` is the KIP's rule, for comparison.
- A future member beside version 1 or 2 ends the leader up to 2.6; from 2.7 on everybody gets error
  3, written in the leader's latest version, which older members cannot even read. Ours answers all
  of them in the lowest version."""

_NATIVE = """## Members of ours among themselves and beside JVM members

A member of ours writes a version of Kafka's with a *trailer* behind it, which JVM members do not
see, or a *native* version (101 and up). It starts at 11 with a trailer, or at the lower version of
Kafka's that it remembers; `start_version="latest"` starts at 101, as KIP-268 has it. With a version
of Kafka's it advertises 11 and not 101, because a JVM leader hands out any version up to the lowest
advertised one. To a JVM leader it is an ordinary KIP-268 member, and goes up to 11 at most.

A leader of ours answers JVM members by the JVM rule over the JVM members alone. Members of ours do
not count for it; each of them is answered on its own:"""

_NEXT = """and is told on the way what to write at the *next* rebalance, whenever that comes. The
first row that holds, for each member of ours:"""

_PROMISES = """### What that promises, and what it does not

Proved in every group of three that any number of bounces can lead to (JVM members of latest version
2, 3, 4, 9, 11 and 12 with and without pins, ours of 101 and 102 with and without pins; every leader
of every rebalance; bounces quicker and slower than the session, and in the middle of a rebalance):

- Nobody is ever made to rejoin for a version by a leader of ours but JVM members, whose own rule
  does it, and a member whose body could not be read (an incompatible later version), once.
- Every group settles within two rebalances; within three if a JVM of a version above 11 becomes the
  leader of members at 101.
- A change of leader alone costs no rebalance. The exception is a *pinned member of ours* beside JVM
  members: to a JVM leader its version 1 or 2 is everybody's, to ours it is not, so when one of ours
  takes over from a JVM, the JVM members go up (or down to 11) once, and only they rejoin.
- From 101 to 102 nobody ever rejoins. With the cautious start, neither does anybody for 103.
- Without pins and without versions 1 and 2 nobody dies.

A JVM leader ends the group, as it would with Kafka's own members, in two windows:

- **a.** It reads versions 1 and 2 only (a real 1.1 or before) and a member of ours is not pinned;
  or somebody writes 1 or 2, a member of ours writes at most 11, and that is above what the leader
  reads (its latest version is below 11). The second half closes with the first rebalance that a
  leader of ours holds, which brings its members down to 3; a JVM leader leaves it open.
- **b.** Members of ours write 101, somebody writes 1 or 2, and a JVM leads before they have heard
  of it. One undisturbed rebalance under any leader closes it. Who may still go back to a JVM with
  `upgrade.from` up to 1.1 holds the finalized level at 11, and with it *b* cannot happen.

The one who writes 1 or 2 is mostly a pinned JVM. A pinned member *of ours* does it as well: beside
it, a JVM without a pin that joins and leads at once dies in the same way. Pin members of ours only
while every JVM member in the group is of 1.1 or before, or pinned too."""


_PINS = """`upgrade.from` 0.10.0 pins version 1, and 0.10.1 to 1.1 pin version 2; later values pin
nothing. Up to 2.3 a value keeps the eager rebalance protocol."""


def render() -> str:
    """The whole page."""
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


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(
        "| " + " | ".join(re.sub(r"\s+", " ", cell).replace("|", "\\|") for cell in line) + " |"
        for line in lines
    )


def _template(text: str) -> str:
    """A row's sentence with its numbers named: `{lowest_used}` becomes *lowest used*."""
    return re.sub(r"\{(\w+)\}", lambda found: f"*{found[1].replace('_', ' ')}*", text)


def _releases_of(model: LeaderModel | MemberModel) -> str:
    """The releases of a model, folded into runs: `2.4.0 to 2.5.1`."""
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
            _table(
                ("rule", "the member", "why"),
                [
                    (rule.name, rule.action.value, _template(rule.why))
                    for rule in MEMBER_RULES[models[0]]
                ],
            )
        )
    follow = [(rule.name, _template(rule.why)) for rule in FOLLOWUP_RULES]
    parts += [
        "### Follow-ups",
        "Asked after the version is settled, by models that have them.",
        _table(("rule", "why"), follow),
    ]
    return parts


def _member_note(model: MemberModel) -> str:
    notes = [_releases_of(model)]
    if model in DROPS_TASKS:
        notes.append("drops the tasks of a probing answer (KAFKA-8972)")
    if model in HAS_FOLLOWUPS:
        notes.append("has follow-ups")
    if model in FIRES_DURING_REBALANCE:
        notes.append("which may fire during a rebalance (KAFKA-14382)")
    return "; ".join(notes)


def _leader_rules() -> list[str]:
    parts = ["## What a leader answers"]
    for model in LeaderModel:
        rows = []
        for rule in (rule for rule in LEADER_RULES if model in rule.models):
            outcome = rule.verdict.value
            if outcome == "answers":
                future = rule.future_get.value
                same = rule.future_get == rule.others_get
                outcome = future if same else f"{rule.others_get.value}; future members: {future}"
            rows.append((rule.name, outcome, _template(rule.why)))
            if rule.is_unconditional:
                break
        parts += [
            f"### `{model.value}`: {_releases_of(model)}",
            _table(("rule", "tasks", "why"), rows),
        ]
    return parts


def _native_rules() -> list[str]:
    answers = [(rule.name, _template(rule.why)) for rule in NATIVE_ANSWER_RULES]
    versions = [(rule.name, _template(rule.why)) for rule in NEXT_VERSION_RULES]
    return [
        _NATIVE,
        _table(("answer", "why"), answers),
        _NEXT,
        _table(("the group has", "why"), versions),
        _PROMISES,
    ]


def _paths() -> list[str]:
    rows = [
        (rule.name, "yes" if rule.possible else "no", _template(rule.why)) for rule in PATH_RULES
    ]
    return [
        "## From one release to another",
        "*Lower* and *higher* are the two releases by age, *value* is the lower one's series.",
        _table(("rule", "rolling", "why"), rows),
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
        _table(("version", "since", "what it brought"), rows),
        "12 to 100 are left to Kafka. From 101 on they are ours:",
        _table(("version", "read by members", "what it is"), native),
        _table(("release", "writes, beside 1 to 11", "what it is"), programs),
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
        _table(header, rows),
    ]


def _values(release: Release) -> str:
    """The accepted values as a span, then the ones that end the member."""
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
    return ["## Known issues", _table(("id", "since", "fixed in", "what goes wrong"), rows)]
