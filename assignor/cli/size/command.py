"""``assignor size``: what a group's metadata weighs, and whether the broker takes it."""

import json
from collections.abc import Sequence
from typing import IO, Any

import click

from assignor.cli.size.encodings import EncodingSize, kafka_sizes, native_sizes
from assignor.cli.size.group import SizedGroup, SizedMember, read_group
from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.exit_status import BadInput, say
from assignor.cli.toolkit.options import format_option, problem_option
from assignor.cli.toolkit.text import paragraph, print_table
from assignor.problems import ProblemError, parse_problem
from assignor.rebalance import (
    GROUP_RECORD_LIMIT,
    RECORD_BYTES,
    MemberBytes,
    fit_group,
    protocol_bytes,
)
from encoding import RebalanceError, ViewForm

INPUT_LIMIT = 512 * 1024 * 1024
"""Bytes of a problem; 100,000 tasks on 10,000 clients take 8 million."""

# What the broker makes of the client id of Kafka Streams: it appends a UUID.
_MEMBER_ID = "application-{0}-StreamThread-{1}-consumer-{0}"
_COLUMNS = ("encoding", "subscription", "assignment", "group", "fits")

_HELP = """Say what a group's metadata weighs in every encoding, before anything is deployed.

The problem is one JSON object, as `assignor assign` reads it; a client's optional "endpoint" is its
application.server. The state in the file is taken as it is and nothing is assigned: one member per
thread, a client's tasks dealt evenly over its threads. Subscription and assignment are mean bytes
per member, group is all of them together, which is what the broker keeps in one record.

native_full is the answer to members that hold no view yet, native_delta that of the round in which
one empty client joins and takes its fair share, native_reference that of a round without a change.
"""
_EXAMPLES = """
PROGRAM size --problem group.json
PROGRAM size --problem - --limit 5000000 --format json < group.json
"""


@click.command(
    "size",
    cls=Command,
    help=_HELP,
    short_help="Say what a group's metadata weighs.",
    examples=_EXAMPLES,
    exits={0: "done, whether anything fits or not"},
)
@problem_option(many=False)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=GROUP_RECORD_LIMIT,
    show_default=True,
    metavar="BYTES",
    help="The broker's message.max.bytes.",
)
@format_option()
def size(problem: IO[bytes], limit: int, form: str) -> None:
    """Entry point of the subcommand."""
    try:
        group = read_group(_one_problem(problem))
        members = list(group.members())
        sizes = [*kafka_sizes(group, members), *native_sizes(group, members)]
    except RebalanceError as error:
        raise BadInput(str(error)) from error
    protocol = _protocol_bytes(group, members)
    verdict, changed = _protocol_verdict(sizes, RECORD_BYTES + sum(protocol), limit)
    if form == "json":
        click.echo(json.dumps(_as_json(sizes, len(members), limit)))
        if changed:
            say("assignor", verdict)
        return
    _print_text(sizes, len(members), limit)
    paragraph(verdict)
    paragraph(_leader_verdict(sizes, protocol, limit))


def _one_problem(file: IO[bytes]) -> dict[str, Any]:
    try:
        raw = file.read(INPUT_LIMIT + 1)
    except OSError as error:
        raise BadInput(f"cannot read the problem: {error.strerror}; give a file or -") from error
    if len(raw) > INPUT_LIMIT:
        raise ProblemError(f"the problem has more than {INPUT_LIMIT} bytes; give a smaller one")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise ProblemError(f"the problem is not UTF-8 at byte {error.start}") from None
    return parse_problem(text)


def _as_json(sizes: Sequence[EncodingSize], members: int, limit: int) -> dict[str, Any]:
    return {
        "members": members,
        "limit": limit,
        "encodings": {
            one.name: {
                "subscription": round(sum(one.subscriptions) / members, 2),
                "assignment": round(sum(one.assignments) / members, 2),
                "group": one.group,
                "fits": one.group <= limit,
            }
            for one in sizes
        },
    }


def _print_text(sizes: Sequence[EncodingSize], members: int, limit: int) -> None:
    rows = [
        (
            one.name,
            f"{sum(one.subscriptions) / members:,.0f}",
            f"{sum(one.assignments) / members:,.0f}",
            f"{one.group:,}",
            "yes" if one.group <= limit else f"no, {one.group / limit:,.1f} times the limit",
        )
        for one in sizes
    ]
    click.echo(f"{members:,} members; bytes per member (mean) and of the whole group")
    print_table(_COLUMNS, rows, right=_COLUMNS[1:4])
    fitting = [one.name for one in sizes if one.group <= limit]
    which = "all of them" if len(fitting) == len(sizes) else ", ".join(fitting) or "none of them"
    paragraph(f"within the broker's limit of {limit:,} bytes for the group: {which}")


def _protocol_bytes(group: SizedGroup, members: Sequence[SizedMember]) -> list[int]:
    """Of each member: what the consumer protocol and the record add to the two blobs."""
    topics = sorted(group.partition_counts)
    return [
        protocol_bytes(
            topics=topics,
            partitions=group.served(one),
            member_id=_MEMBER_ID.format(one.client.process_id, one.number + 1),
            rack=one.client.rack or "",
        )
        for one in members
    ]


def _protocol_verdict(sizes: Sequence[EncodingSize], overhead: int, limit: int) -> tuple[str, bool]:
    """A sentence, and whether it changes a verdict."""
    lost = [one.name for one in sizes if one.group <= limit < one.group + overhead]
    said = f"too much for {', '.join(lost)}" if lost else "which changes no verdict"
    return (
        f"the record also holds about {overhead:,} bytes of the consumer protocol (names of topics,"
        f" partitions, member ids): {said}"
    ), bool(lost)


def _leader_verdict(sizes: Sequence[EncodingSize], protocol: Sequence[int], limit: int) -> str:
    """What a native leader does when nobody holds a view yet; empty when everybody gets it."""
    by_name = {one.name: one for one in sizes}
    full, reference = by_name["native_full"], by_name["native_reference"]
    rows = zip(full.subscriptions, full.assignments, reference.assignments, protocol, strict=True)
    budget = fit_group(
        [
            MemberBytes(
                member_id=f"member {number:07}",
                subscription=subscription,
                answer_by_form={ViewForm.FULL: with_view, ViewForm.REFERENCE: without},
                protocol=extra,
            )
            for number, (subscription, with_view, without, extra) in enumerate(rows)
        ],
        limit=limit,
    )
    return budget.warning and f"when nobody holds the view yet, {budget.warning}"
