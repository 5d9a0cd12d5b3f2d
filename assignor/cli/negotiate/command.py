"""``assignor negotiate``: the versions a leader answers with, and what each member does next.

The command needs no broker. It evaluates the decision tables that members and the simulator run.
The leader can be of any release; Kafka members follow Kafka's current rule and differ only in the
versions that they can write.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from assignor.cli.negotiate.rounds import BadMembers, Line, NegotiationRound, parse_members, play
from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.exit_status import BadInput
from assignor.cli.toolkit.options import complete_release, format_option
from assignor.cli.toolkit.text import paragraph, print_table
from probing import UNKNOWN_VERSION, Release, ReleaseError, find_release

ROUNDS_MAX = 50
"""Most rebalances to simulate; a group that settles needs far fewer."""
_COLUMNS = ("member", "used", "supported", "answer", "common", "content", "next")
_NATIVE_COLUMNS = (*_COLUMNS[:3], "native", *_COLUMNS[3:6], "requested", "next")

_HELP = """Show which versions a leader answers with, and what each member does next.

A member in --members is a pair of used and latest supported version, 10/11; the members are named
m1, m2, ... unless you write name:10/11. A member of this project adds the version in its trailer,
11/11+101, or writes a native version, 101/101; one that writes 1 or 2 is pinned (upgrade.from).
--release is the leader's: 2.3 (its newest patch), 2.3.1, 0.10.2.2, native, next or
incompatible (native versions 101, 102, 103).
"""
_EXAMPLES = """
PROGRAM negotiate --members 10/11,11/11
PROGRAM negotiate --members old:9/9,new:11/11 --release 2.8 --until-settled
PROGRAM negotiate --members 2/2,3/3 --release 0.10.2  # the leader fails
PROGRAM negotiate --members 11/11,12/12 --format json
PROGRAM negotiate --members jvm:9/9,n:11/11+101
PROGRAM negotiate --members 101/101,102/102 --level 11
"""
_EXITS = {0: "all members continue", 1: "the leader or a member fails, or the group never settles"}


@click.command(
    "negotiate",
    cls=Command,
    help=_HELP,
    short_help="Show which versions a leader answers with, and what each member does next.",
    examples=_EXAMPLES,
    exits=_EXITS,
)
@click.option(
    "--members", required=True, metavar="LIST", help="Members: used/supported, comma separated."
)
@click.option(
    "--release",
    "release_name",
    default="native",
    show_default=True,
    metavar="RELEASE",
    shell_complete=complete_release,
    help="The leader's release.",
)
@click.option("--rounds", type=click.IntRange(1, ROUNDS_MAX), help="Simulate this many rebalances.")
@click.option("--until-settled", is_flag=True, help="Simulate until no member rejoins.")
@click.option("--level", type=click.IntRange(1), help="Finalized level: highest version to use.")
@format_option()
def negotiate(
    *,
    members: str,
    release_name: str,
    rounds: int | None,
    until_settled: bool,
    level: int | None,
    form: str,
) -> None:
    """Entry point of the subcommand."""
    if rounds is not None and until_settled:
        raise BadInput("--rounds and --until-settled exclude each other; give only one")
    try:
        release = find_release(release_name)
        states = parse_members(members)
    except (ReleaseError, BadMembers) as error:
        raise BadInput(str(error)) from error
    limit = rounds or (ROUNDS_MAX if until_settled else 1)
    played = play(release, states, rounds=limit, level=level)
    many = rounds is not None or until_settled
    if form == "json":
        click.echo(json.dumps(_as_json(release, played, many=many)))
    else:
        _print_text(release, played, many=many)
    endless = until_settled and not played[-1].settled and not played[-1].failed
    if endless and form == "text":
        click.echo(f"the group has not settled after {len(played)} rounds")
    if endless or any(round_.failed for round_ in played):
        sys.exit(1)


def _as_json(release: Release, played: list[NegotiationRound], *, many: bool) -> dict[str, Any]:
    """Return the object of the first round, with all rounds in `rounds` if `many`."""
    leader = {
        "release": release.name,
        "latest": release.latest_version,
        "native": release.latest_native_version,
        "model": release.leader_model.value,
    }
    rounds = [_round_as_json(round_) for round_ in played]
    more = {"settled": played[-1].settled, "rounds": rounds} if many else {}
    return {"leader": leader, **rounds[0], **more}


def _round_as_json(round_: NegotiationRound) -> dict[str, Any]:
    decision = round_.decision
    return {
        "version": None if decision.ends else decision.version,
        "commonly_supported": None if decision.ends else decision.commonly_supported_version,
        "future_members": list(decision.future_members),
        "next_version": decision.next_version or None,
        "next_version_rule": decision.next_version_rule or None,
        "rejoining": list(round_.rejoining),
        "error_code": decision.error_code,
        "leader_dies": decision.why if decision.ends else None,
        "rule": decision.rule,
        "why": decision.why,
        "members": [
            {
                "member": line.member,
                "used": line.used,
                "supported": line.supported,
                "native": line.native,
                "answer": {
                    "version": line.answer.version,
                    "commonly_supported": line.answer.commonly_supported_version,
                    "content": line.answer.content.value,
                    "next_version": line.answer.next_version or None,
                    "subscription_read": line.answer.subscription_read,
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


def _print_text(release: Release, played: list[NegotiationRound], *, many: bool) -> None:
    native = release.latest_native_version
    also = "" if native is None else f" and native version {native}"
    paragraph(
        f"leader: release {release.name}, latest version {release.latest_version}{also},"
        f" model: {release.leader_model.value}"
    )
    for number, round_ in enumerate(played, start=1):
        if many:
            click.echo(f"\nround {number}")
        _print_round(round_)


def _print_round(round_: NegotiationRound) -> None:
    decision = round_.decision
    if decision.ends:
        paragraph(f"the leader fails: {decision.why}")
        return
    future = ", ".join(decision.future_members) or "none"
    error = f", error {decision.error_code} to all members" if decision.error_code else ""
    paragraph(
        f"answer: version {decision.version}, commonly supported version"
        f" {_number(decision.commonly_supported_version)}, future members {future}{error}"
    )
    paragraph(f"{decision.rule}: {decision.why}")
    if round_.has_natives:
        if decision.next_version:
            rule = decision.next_version_rule
            paragraph(f"native members write version {decision.next_version} next: {rule}")
        paragraph(f"rejoining: {', '.join(round_.rejoining) or 'none'}")
    columns = _NATIVE_COLUMNS if round_.has_natives else _COLUMNS
    rows = [_cells(line, columns) for line in round_.lines]
    print_table(columns, rows)
    for line in round_.lines:
        paragraph(f"{line.member}: {line.rule}: {line.why}")


def _cells(line: Line, columns: Sequence[str]) -> tuple[str, ...]:
    """Return a member's row of the table."""
    answer = line.answer
    cells = {
        "member": line.member,
        "used": str(line.used),
        "supported": _number(line.supported),
        "native": "-" if line.native is None else str(line.native),
        "answer": str(answer.version),
        "common": _number(answer.commonly_supported_version),
        "content": answer.content.value if answer.subscription_read else "blind",
        "requested": str(answer.next_version or "-"),
        "next": line.action if line.next_version is None else f"{line.action} {line.next_version}",
    }
    return tuple(cells[column] for column in columns)


def _number(version: int) -> str:
    """Return a latest supported version as text; `-` if there is none, as in versions 1 and 2."""
    return str(version) if version != UNKNOWN_VERSION else "-"
