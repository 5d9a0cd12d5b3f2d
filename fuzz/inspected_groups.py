"""Promises for the inspection of a group with one hostile member.

A member chooses its ids, its host and both its blobs. `inspect_group` must accept all of them; the
text of `assignor inspect` must be printable, line by line, and contain the rows of the other
members.
"""

import json
from collections.abc import Iterator, Sequence
from uuid import UUID

from rich.console import Console, RenderableType

from assignor.cli.inspect.all_groups import render_groups
from assignor.cli.inspect.document import document_of
from assignor.cli.inspect.text import render_group
from assignor.inspection import (
    ClusterFacts,
    DescribedGroup,
    DescribedMember,
    GroupInspection,
    inspect_group,
)
from assignor.inspection.values import TopicFacts
from encoding import (
    Assignment,
    Subscription,
    TaskId,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from fuzz.corpus import Seed
from fuzz.promises import expect

FORGED = "FORGED"
"""No line of output may begin with this text: only hostile names contain it, not at their start."""

WIDTHS = (60, 160)
_PAPER = 3_000  # columns of output that is not a terminal
_TOPIC = b"in"
_TEXTS = 3  # of a member in an input: its ids and its host
_FACTS = ClusterFacts(
    topics={"in": TopicFacts(partitions=2)},
    committed={TopicPartition("in", 0): 5},
    end_offsets={TopicPartition("in", 0): 15},
)


def honest_member(name: str) -> DescribedMember:
    """A member of the group `app` that runs task 0_0, as Kafka Streams 4.0 writes it."""
    topics = b"\0\0\0\1" + _text(_TOPIC)
    process_id = UUID(int=int.from_bytes(name.encode()))
    subscription = encode_subscription(
        Subscription(version=11, latest_supported_version=11, process_id=process_id)
    )
    # The consumer protocol of version 1, without owned partitions.
    metadata = b"\0\1" + topics + len(subscription).to_bytes(4) + subscription + bytes(4)
    answer = encode_assignment(
        Assignment(version=11, commonly_supported_version=11, active_tasks=(TaskId(0, 0),))
    )
    partitions = topics + b"\0\0\0\1" + bytes(4)
    return DescribedMember(
        member_id=f"app-{name}-StreamThread-1-consumer-1",
        client_id=f"app-{name}-StreamThread-1-consumer",
        client_host="10.0.0.1",
        metadata=metadata,
        assignment=b"\0\1" + partitions + len(answer).to_bytes(4) + answer,
    )


def group_of(members: Sequence[DescribedMember], protocol: str = "stream") -> DescribedGroup:
    """A stable group `app`."""
    return DescribedGroup(
        group_id="app", state="Stable", protocol_name=protocol, members=tuple(members)
    )


def check_group(
    group: DescribedGroup, facts: ClusterFacts = _FACTS, honest: Sequence[str] = ()
) -> None:
    """Inspect a group, write it as text and as JSON, and check both.

    Args:
        group: as a coordinator describes it.
        facts: of its cluster.
        honest: clients whose rows have to be in the text.

    Raises:
        Finding: a promise does not hold; any other exception is a finding as well.
    """
    look = inspect_group(group, facts)
    document = json.dumps(document_of(look))
    expect(document.isascii() and "\n" not in document, "a document is one line of ASCII")
    expect(json.loads(document)["group"] == group.group_id, "a document names the group exactly")
    for width in WIDTHS:
        for is_cut in (True, False):
            text = render_group(look, width=width, now_ms=0, tasks=True, cut=is_cut)
            lines = _lines(text, width if is_cut else _PAPER)
            _check_lines(lines)
            if width == WIDTHS[-1] or not is_cut:  # narrow terminals may cut names
                _check_honest(lines, look, honest)
        rows = _lines(render_groups([look], width=width), width)
        _check_lines(rows)


def _lines(what: RenderableType, width: int) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(what, highlight=False)
    return [line.rstrip() for line in capture.get().split("\n")]


def _check_lines(lines: Sequence[str]) -> None:
    for line in lines:
        expect(line.isprintable(), f"a line of text is printable: {line!r}")
        expect(not line.startswith(FORGED), f"no line begins with foreign text: {line!r}")


def _check_honest(lines: Sequence[str], look: GroupInspection, honest: Sequence[str]) -> None:
    first = [line.split()[:3] for line in lines]
    for client in honest:
        numbers = ["11/11", "11"] if look.is_streams else []
        row = [client, *numbers]
        expect(
            row in [words[: len(row)] for words in first],
            f"the row of {client} is there:\n" + "\n".join(lines),
        )


def _text(data: bytes) -> bytes:
    return len(data).to_bytes(2) + data


def inspect_any_group(data: bytes) -> None:
    """Check a group with an honest member and one whose texts and blobs are parts of the input.

    The input: member id, client id, host, metadata and assignment, each after its length in two
    bytes. Missing texts are empty; missing blobs are those of an honest member.
    """
    parts = list(_parts(data))
    texts = [part.decode("utf-8", "replace") for part in parts[:_TEXTS]]
    base = honest_member("other")
    blobs = [*parts[_TEXTS:], base.metadata, base.assignment] if len(parts) > _TEXTS else []
    hostile = DescribedMember(
        member_id=f"x{texts[0]}",
        client_id=f"x{texts[1]}",
        client_host=f"x{texts[2]}",
        metadata=(blobs or [base.metadata])[0],
        assignment=(blobs or [b"", base.assignment])[1],
    )
    for protocol in ("stream", "range"):
        check_group(group_of([honest_member("honest"), hostile], protocol), honest=["honest"])


def _parts(data: bytes) -> Iterator[bytes]:
    """At least three parts, at most five."""
    for number in range(_TEXTS + 2):
        if number >= _TEXTS and not data:
            return
        size = int.from_bytes(data[:2])
        yield data[2 : 2 + size]
        data = data[2 + size :]


def group_seeds() -> Iterator[Seed]:
    """Inputs of `inspect_any_group`: honest blobs, and texts with terminal control sequences."""
    base = honest_member("other")
    forged = f"\x1b]0;t\x07\n{FORGED}\u202e[/x]".encode()
    for name, parts in (
        ("honest", (b"", b"", b"", base.metadata, base.assignment)),
        ("forged texts", (forged,) * _TEXTS),
        ("forged blobs", (forged,) * (_TEXTS + 2)),
    ):
        yield Seed("inspect_group", name, b"".join(map(_text, parts)))
