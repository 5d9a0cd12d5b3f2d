"""docs/negotiation.md: the rules of member and leader and the release table, from the tables."""

import re

from probing import (
    FOLLOWUP_RULES,
    LEADER_RULES,
    MEMBER_RULES,
    PATH_RULES,
    RELEASES,
    LeaderModel,
    MemberModel,
    Release,
    Standing,
)
from probing.member_rules import DROPS_TASKS, FIRES_DURING_REBALANCE, HAS_FOLLOWUPS
from probing.release_data import ISSUES, LATEST_VERSION_SINCE

_TOP = """# Which version a group speaks

Printed by `python -m docs.generate` from the tables of `probing/`. Versions are those of the
assignment protocol (KIP-268); *used* is what a member wrote, *received* what it was answered in,
*common* the second number of the answer. In every table the first row that holds decides. Try it:
`assignor negotiate --members 10/11,11/11 --release 2.8 --until-settled`."""

_KAFKA_DIFFERENCES = """## Where the shipped code is not the KIP

- The KIP gives future members an empty answer; since 2.4 they get real tasks.
- The KIP's second number is the leader's own; since 2.2.2, 2.3.1 and 2.4 it is the lowest supported
  one. In between, KAFKA-8649 ends members of 2.0 under leaders of 2.1 to 2.3.0.
- The KIP lets the leader alone start the last rebalance; in the shipped code every lifted member
  starts its own. Model `text of KIP-268` is the KIP's rule, for comparison.
- A future member beside version 1 or 2 ends the leader up to 2.6; from 2.7 on everybody gets error
  3, written in the leader's latest version, which older members cannot even read. Ours answers all
  of them in the lowest version."""


_PINS = """`upgrade.from` 0.10.0 pins version 1, and 0.10.1 to 1.1 pin version 2; later values pin
nothing. Up to 2.3 a value keeps the eager rebalance protocol."""


def render() -> str:
    """The whole page."""
    parts = [
        _TOP,
        *_member_rules(),
        *_leader_rules(),
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
    return ["## Versions", _table(("version", "since", "what it brought"), rows)]


def _releases() -> list[str]:
    rows = [
        (
            release.name,
            str(release.latest_version),
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
