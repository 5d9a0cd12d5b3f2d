"""``assignor size``: the size of a group's metadata, and whether the broker accepts it."""

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
"""Most bytes of a problem; 100,000 tasks on 10,000 clients take 8 million."""

# A member id as the broker makes it from Kafka Streams' client id, by appending a UUID.
_MEMBER_ID = "application-{0}-StreamThread-{1}-consumer-{0}"
_COLUMNS = ("encoding", "subscription", "assignment", "group", "fits")

_HELP = """Report the size of a group's metadata in every encoding, without a cluster.

The problem file is as for `assignor assign`; a client's optional "endpoint" is its
application.server. The command uses the tasks in the file and assigns nothing. Each thread is one
member; a client's tasks are distributed evenly over its threads. The columns subscription and
assignment are mean bytes per member. The column group is the sum over all members, which the broker
stores in one record.

native_full is the answer to members without a routing view. native_delta is the answer when one
empty client joins and takes its fair share. native_reference is the answer when nothing changes.
"""
_EXAMPLES = """
PROGRAM size --problem group.json
PROGRAM size --problem - --limit 5000000 --format json < group.json
"""


@click.command(
    "size",
    cls=Command,
    help=_HELP,
    short_help="Report the size of a group's metadata.",
    examples=_EXAMPLES,
    exits={0: "success, whether or not the metadata fits"},
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
        group = read_group(_single_problem(problem))
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


def _single_problem(file: IO[bytes]) -> dict[str, Any]:
    try:
        raw = file.read(INPUT_LIMIT + 1)
    except OSError as error:
        raise BadInput(f"cannot read the problem: {error.strerror}; give a file or -") from error
    if len(raw) > INPUT_LIMIT:
        raise ProblemError(f"the problem has more than {INPUT_LIMIT} bytes; give a smaller file")
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
            row.name: {
                "subscription": round(sum(row.subscriptions) / members, 2),
                "assignment": round(sum(row.assignments) / members, 2),
                "group": row.group,
                "fits": row.group <= limit,
            }
            for row in sizes
        },
    }


def _print_text(sizes: Sequence[EncodingSize], members: int, limit: int) -> None:
    rows = [
        (
            row.name,
            f"{sum(row.subscriptions) / members:,.0f}",
            f"{sum(row.assignments) / members:,.0f}",
            f"{row.group:,}",
            "yes" if row.group <= limit else f"no, {row.group / limit:,.1f} times the limit",
        )
        for row in sizes
    ]
    click.echo(f"{members:,} members; mean bytes per member, and bytes of the whole group")
    print_table(_COLUMNS, rows, right=_COLUMNS[1:4])
    fitting = [row.name for row in sizes if row.group <= limit]
    which = "all of them" if len(fitting) == len(sizes) else ", ".join(fitting) or "none of them"
    paragraph(f"encodings within the broker's limit of {limit:,} bytes for the group: {which}")


def _protocol_bytes(group: SizedGroup, members: Sequence[SizedMember]) -> list[int]:
    """Return, per member, the bytes that the consumer protocol and the record add."""
    topics = sorted(group.partition_counts)
    return [
        protocol_bytes(
            topics=topics,
            partitions=group.served(member),
            member_id=_MEMBER_ID.format(member.client.process_id, member.number + 1),
            rack=member.client.rack or "",
        )
        for member in members
    ]


def _protocol_verdict(sizes: Sequence[EncodingSize], overhead: int, limit: int) -> tuple[str, bool]:
    """Return a sentence about the added bytes, and whether an encoding no longer fits."""
    lost = [row.name for row in sizes if row.group <= limit < row.group + overhead]
    effect = f"these no longer fit: {', '.join(lost)}" if lost else "no verdict changes"
    return (
        f"the record also holds about {overhead:,} bytes of the consumer protocol (topic names,"
        f" partitions, member ids): {effect}"
    ), bool(lost)


def _leader_verdict(sizes: Sequence[EncodingSize], protocol: Sequence[int], limit: int) -> str:
    """Return what a native leader leaves out when no member has a view yet; empty: nothing."""
    by_name = {row.name: row for row in sizes}
    full, reference = by_name["native_full"], by_name["native_reference"]
    rows = zip(full.subscriptions, full.assignments, reference.assignments, protocol, strict=True)
    _, warning = fit_group(
        {
            f"member {number:07}": MemberBytes(
                subscription=subscription,
                answer_by_form={ViewForm.FULL: with_view, ViewForm.REFERENCE: without},
                protocol=extra,
            )
            for number, (subscription, with_view, without, extra) in enumerate(rows)
        },
        limit=limit,
    )
    return warning and f"while no member has the routing view, {warning}"
