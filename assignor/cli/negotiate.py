"""``assignor negotiate``: what a leader answers a group of members, and what they do about it.

No broker and no bytes: the same tables that run in the members and in the simulator are asked, so
the answer is what would happen. Leaders of every release can be asked; members follow Kafka's
current rule (they differ in what they can write, which is what is given).
"""

import json
import re
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from probing import (
    EARLIEST_PROBEABLE_VERSION,
    UNKNOWN_VERSION,
    Answer,
    AssignmentReceived,
    Command,
    KeepVersion,
    LeaderDecision,
    MemberModel,
    MemberState,
    MemberVersions,
    Refuse,
    RejoinNow,
    Release,
    ReleaseError,
    decide_answers,
    find_release,
    member_step,
)

WIDTH = 100
ROUNDS_MAX = 50
"""Far more than any group needs that settles at all."""
_VERSION_MAX = 2**31 - 1
_MEMBER = re.compile(r"(?:([^:/,\s]{1,60}):)?(\d{1,10})/(\d{1,10})", re.ASCII)
_COLUMNS = ("member", "used", "supported", "answer", "common", "content", "next")

_HELP = """Ask what a leader answers, and what each member does next.

MEMBERS are pairs of used and latest supported version, in the order m1, m2, ..., or with names:
name:used/supported. The leader is a release: 2.3 (its newest patch), 2.3.1, 0.10.2.2 or native.

\b
Examples:
  assignor negotiate --members 10/11,11/11
  assignor negotiate --members old:9/9,new:11/11 --release 2.8 --until-settled
  assignor negotiate --members 2/2,3/3 --release 0.10.2      the leader dies: exit status 1
  assignor negotiate --members 11/11,12/12 --format json

Exit status: 0 the group goes on, 1 the leader or a member dies or the group never settles,
2 wrong usage.
"""


class _BadInput(click.ClickException):
    """One sentence on stderr, exit status 2."""

    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One member in one round: what it wrote, what it got, what it does next."""

    member: str
    used: int
    supported: int
    answer: Answer
    action: str
    next_version: int | None
    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """One rebalance, and the members as they are after it."""

    decision: LeaderDecision
    lines: tuple[_Line, ...]
    states: tuple[tuple[str, MemberState], ...]

    @property
    def settled(self) -> bool:
        return all(line.action == "keep" for line in self.lines)

    @property
    def failed(self) -> bool:
        dead = any(state.refusal is not None for _, state in self.states)
        return self.decision.refusal is not None or dead


@click.command(help=_HELP, short_help="Ask what a leader answers a group.")
@click.option("--members", required=True, metavar="LIST", help="used/supported, comma separated.")
@click.option("--release", "release_name", default="native", help="The leader's release [native].")
@click.option("--rounds", type=click.IntRange(1, ROUNDS_MAX), help="Play this many rebalances.")
@click.option("--until-settled", is_flag=True, help="Play until nobody rejoins.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def negotiate(
    *, members: str, release_name: str, rounds: int | None, until_settled: bool, style: str
) -> None:
    """Entry point of the subcommand."""
    if rounds is not None and until_settled:
        raise _BadInput("--rounds and --until-settled exclude each other; give one of them")
    try:
        release = find_release(release_name)
    except ReleaseError as error:
        raise _BadInput(str(error)) from error
    states = _parse_members(members)
    played = _play(release, states, rounds or (ROUNDS_MAX if until_settled else 1))
    many = rounds is not None or until_settled
    if style == "json":
        click.echo(json.dumps(_as_json(release, played, many=many)))
    else:
        _print_text(release, played, many=many)
    endless = until_settled and not played[-1].settled and not played[-1].failed
    if endless and style == "text":
        click.echo(f"the group has not settled after {len(played)} rounds")
    if endless or any(round_.failed for round_ in played):
        sys.exit(1)


def _parse_members(text: str) -> tuple[tuple[str, MemberState], ...]:
    """Return the members that ``--members`` lists, with their names."""
    states: dict[str, MemberState] = {}
    for number, part in enumerate(text.split(","), start=1):
        match = _MEMBER.fullmatch(part.strip())
        if match is None:
            raise _BadInput(
                f"member {number} is {part.strip()[:40]!r}; write used/supported, as in 10/11,"
                " or name:used/supported"
            )
        name, used, supported = match[1] or f"m{number}", int(match[2]), int(match[3])
        if name in states:
            raise _BadInput(f"two members are called {name}; give each its own name")
        if used < 1 or supported > _VERSION_MAX:
            raise _BadInput(
                f"member {name} has versions {used}/{supported}; versions go from 1 to"
                f" {_VERSION_MAX}"
            )
        if used > supported:
            raise _BadInput(
                f"member {name} writes version {used} and supports {supported}; a member writes"
                " nothing above its latest supported version"
            )
        states[name] = _member(used=used, supported=supported)
    return tuple(states.items())


def _member(*, used: int, supported: int) -> MemberState:
    """Return a member by Kafka's current rule; below version 3 nobody probes."""
    probes = supported >= EARLIEST_PROBEABLE_VERSION
    newest = find_release("native").known_versions
    known = {version for version in newest if version <= supported} | {used, supported}
    return MemberState(
        release_name=f"with version {supported}",
        model=MemberModel.FOLLOWUP_WAITS if probes else MemberModel.NO_PROBING,
        known_versions=tuple(sorted(known)),
        used_version=used,
    )


def _play(
    release: Release, states: tuple[tuple[str, MemberState], ...], rounds: int
) -> list[_Round]:
    """Alternate leader and members until settled, dead, or ``rounds`` are over."""
    played: list[_Round] = []
    while len(played) < rounds:
        round_ = _rebalance(release, states)
        played.append(round_)
        states = round_.states
        if round_.failed or round_.settled:
            break
    return played


def _rebalance(release: Release, states: tuple[tuple[str, MemberState], ...]) -> _Round:
    decision = decide_answers(
        release,
        [
            MemberVersions(
                member_id=name,
                used_version=state.used_version,
                latest_supported_version=state.latest_version,
            )
            for name, state in states
        ],
    )
    if decision.refusal is not None:
        return _Round(decision=decision, lines=(), states=states)
    answers = {answer.member_id: answer for answer in decision.answers}
    lines, after = [], []
    for name, before in states:
        state, commands = member_step(
            before,
            AssignmentReceived(
                received_version=answers[name].version,
                commonly_supported_version=answers[name].commonly_supported_version,
                error_code=decision.error_code,
            ),
        )
        lines.append(_line(before, answers[name], commands))
        after.append((name, state))
    return _Round(decision=decision, lines=tuple(lines), states=tuple(after))


def _line(before: MemberState, answer: Answer, commands: tuple[Command, ...]) -> _Line:
    """Return one member's line; the command that decides is the last one about versions."""
    deciding = [c for c in commands if isinstance(c, KeepVersion | RejoinNow | Refuse)][-1]
    match deciding:
        case Refuse():
            action, version = "stop", None
        case RejoinNow():
            action, version = "rejoin", deciding.used_version
        case _:
            action, version = "keep", deciding.used_version
    return _Line(
        member=answer.member_id,
        used=before.used_version,
        supported=before.latest_version,
        answer=answer,
        action=action,
        next_version=version,
        rule=deciding.rule,
        why=deciding.why,
    )


def _as_json(release: Release, played: list[_Round], *, many: bool) -> dict[str, Any]:
    """Return the first round under the documented keys, and every round if more were asked for."""
    leader = {
        "release": release.name,
        "latest": release.latest_version,
        "model": release.leader_model.value,
    }
    rounds = [_round_as_json(round_) for round_ in played]
    more = {"settled": played[-1].settled, "rounds": rounds} if many else {}
    return {"leader": leader, **rounds[0], **more}


def _round_as_json(round_: _Round) -> dict[str, Any]:
    decision = round_.decision
    refusal = decision.refusal
    return {
        "version": None if refusal else decision.version,
        "commonly_supported": None if refusal else decision.commonly_supported_version,
        "future_members": list(decision.future_members),
        "error_code": decision.error_code,
        "leader_dies": None if refusal is None else refusal.why,
        "rule": decision.rule,
        "why": decision.why,
        "members": [
            {
                "member": line.member,
                "used": line.used,
                "supported": line.supported,
                "answer": {
                    "version": line.answer.version,
                    "commonly_supported": line.answer.commonly_supported_version,
                    "content": line.answer.content.value,
                    "rule": line.answer.rule,
                    "why": line.answer.why,
                },
                "next": {"action": line.action, "version": line.next_version},
                "rule": line.rule,
                "why": line.why,
            }
            for line in round_.lines
        ],
    }


def _print_text(release: Release, played: list[_Round], *, many: bool) -> None:
    _paragraph(
        f"leader: release {release.name}, latest version {release.latest_version},"
        f" model: {release.leader_model.value}"
    )
    for number, round_ in enumerate(played, start=1):
        if many:
            click.echo(f"\nround {number}")
        _print_round(round_)


def _print_round(round_: _Round) -> None:
    decision = round_.decision
    if decision.refusal is not None:
        _paragraph(f"the leader dies: {decision.why}")
        return
    future = ", ".join(decision.future_members) or "none"
    error = f", error {decision.error_code} to everybody" if decision.error_code else ""
    _paragraph(
        f"group: written in version {decision.version}, commonly supported"
        f" {_number(decision.commonly_supported_version)}, future members {future}{error}"
    )
    _paragraph(f"{decision.rule}: {decision.why}")
    rows = [
        (
            line.member,
            str(line.used),
            str(line.supported),
            str(line.answer.version),
            _number(line.answer.commonly_supported_version),
            line.answer.content.value,
            line.action if line.next_version is None else f"{line.action} {line.next_version}",
        )
        for line in round_.lines
    ]
    if _is_terminal():
        table = Table(*_COLUMNS)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
    else:
        _print_columns(rows)
    for line in round_.lines:
        _paragraph(f"{line.member}: {line.rule}: {line.why}")


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _print_columns(rows: Sequence[tuple[str, ...]]) -> None:
    """Print aligned columns without a terminal's ornaments."""
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    for row in (_COLUMNS, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def _number(version: int) -> str:
    """Return a second number for people: versions 1 and 2 have none."""
    return str(version) if version != UNKNOWN_VERSION else "-"


def _paragraph(text: str) -> None:
    """Print a sentence, folded to the width that a page of text has."""
    click.echo("\n".join(textwrap.wrap(text, WIDTH, subsequent_indent="  ")))
