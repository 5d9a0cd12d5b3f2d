"""``assignor decode`` and ``assignor encode``: blobs to people and programs, and back.

Both read from a pipe as well: one JSON object per line in, one per line out, in order and flushed,
so that a program in another language can keep one process and ask it questions. A line that cannot
be answered is answered with an error, and the stream goes on. Input lines and blobs are bounded.
"""

import json
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import click

from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.exit_status import BadInput
from assignor.cli.toolkit.options import format_option
from assignor.cli.toolkit.text import print_table
from encoding import (
    KAFKA_VERSIONS,
    KNOWN_VERSIONS,
    DecodeError,
    Piece,
    RebalanceError,
    assignment_from_fields,
    assignment_to_fields,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    explain,
    subscription_from_fields,
    subscription_to_fields,
)

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of one input line or file; a whole group's metadata record is 1 MB by default."""

_VALUE_WIDTH = 60
_KINDS = ("subscription", "assignment")
_COLUMNS = ("offset", "size", "type", "field", "value", "meaning")

_DECODE_HELP = """Show what a subscription or assignment blob says.

Without --format json every field is listed with its offset, size, type and meaning. A subscription
of a future version shows its two numbers. Bytes behind the last field are no error; a trailer there
is listed too. Native bodies are listed by key, keys of later versions as unknown; as JSON, what
Kafka has no field for is in "native".
"""
_DECODE_EXAMPLES = """
PROGRAM decode --kind subscription --hex 0000000c0000000c
PROGRAM decode --kind assignment --file blob.bin --format json
kafka-tool | PROGRAM decode --kind subscription --hex -
PROGRAM decode --jsonl - < questions  # lines of {"kind": ..., "hex": ...}
"""

_ENCODE_HELP = """Write blobs from JSON fields.

Each line in is an object with "kind", "version", "latest_supported" and "fields", as `assignor
decode --format json` prints them; missing fields take their defaults. Each line out has "hex" or
"error", and the "id" of its question if it had one. Tasks may be given as task_offset_sums or as
prev_tasks and standby_tasks; if both are, the sums count from version 7 on.
"""
_ENCODE_EXAMPLES = """
PROGRAM encode --jsonl fields.jsonl
PROGRAM decode --jsonl blobs.jsonl | jq -c '{kind: "assignment"} + .' |
    PROGRAM encode --jsonl -
"""


class _BadQuestion(ValueError):
    """A line that is JSON, but no question."""


def _jsonl_option(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--jsonl",
        type=click.File("rb"),
        required=required,
        metavar="FILE|-",
        help="A stream of questions, one a line; - is stdin.",
    )


@click.command(
    "decode",
    cls=Command,
    help=_DECODE_HELP,
    short_help="Explain the bytes of a blob.",
    examples=_DECODE_EXAMPLES,
    exits={2: "the bytes are not what they claim to be (a line of a stream: 0)"},
)
@click.option("--kind", type=click.Choice(_KINDS), help="What the blob is.")
@click.option("--hex", "hex_text", metavar="HEX|-", help="The blob, in hex; - is stdin.")
@click.option(
    "--file",
    type=click.File("rb"),
    metavar="FILE|-",
    help="The blob, raw or in hex; - is stdin.",
)
@_jsonl_option(required=False)
@format_option()
def decode(
    kind: str | None,
    hex_text: str | None,
    file: IO[bytes] | None,
    jsonl: IO[bytes] | None,
    form: str,
) -> None:
    """Decode one blob or a stream of them."""
    sources = sum(source is not None for source in (hex_text, file, jsonl))
    if sources != 1:
        raise click.UsageError("give exactly one of --hex, --file and --jsonl")
    if jsonl is not None:
        _answer_lines(jsonl, _decode_question)
        return
    if kind is None:
        raise click.UsageError("say what the blob is: --kind subscription or --kind assignment")
    data = _blob(hex_text, file)
    try:
        if form == "json":
            click.echo(_json(_to_fields(kind, data)))
            return
        pieces = list(explain(kind, data))
        if pieces[0].value in KAFKA_VERSIONS:
            _to_fields(kind, data)  # stricter than the listing in what fits together
        _print_pieces(pieces)
    except DecodeError as error:
        raise BadInput(str(error)) from None


@click.command(
    "encode",
    cls=Command,
    help=_ENCODE_HELP,
    short_help="Write blobs from their fields.",
    examples=_ENCODE_EXAMPLES,
    exits={0: "done; a line that cannot be written is answered by its error"},
)
@_jsonl_option(required=True)
def encode(jsonl: IO[bytes]) -> None:
    """Encode a stream of blobs."""
    _answer_lines(jsonl, _encode_question)


def _to_fields(kind: str, data: bytes) -> dict[str, Any]:
    if kind == "subscription":
        return subscription_to_fields(decode_subscription(data))
    return assignment_to_fields(decode_assignment(data))


def _decode_question(question: dict[str, Any]) -> dict[str, Any]:
    text = question.get("hex")
    if not isinstance(text, str):
        raise _BadQuestion('give the blob as text in "hex"')
    return {"fields": _to_fields(_kind(question), _unhex(text))}


def _encode_question(question: dict[str, Any]) -> dict[str, Any]:
    fields = question.get("fields", {})
    if not isinstance(fields, dict):
        raise _BadQuestion('give an object in "fields"')
    is_subscription = _kind(question) == "subscription"
    supported = "latest_supported" if is_subscription else "commonly_supported"
    if "version" in question:
        fields = fields | {"version": question["version"]}
    fields = {supported: _latest_beside(fields.get("version"))} | fields
    if "latest_supported" in question:
        fields[supported] = question["latest_supported"]
    if is_subscription:
        return {"hex": encode_subscription(subscription_from_fields(fields)).hex()}
    return {"hex": encode_assignment(assignment_from_fields(fields)).hex()}


def _latest_beside(version: object) -> int:
    """The latest supported version that goes with a used one: Kafka's for Kafka's, else ours."""
    if isinstance(version, int) and version > KAFKA_VERSIONS[-1]:
        return max(*KNOWN_VERSIONS, version)
    return KAFKA_VERSIONS[-1]


def _kind(question: dict[str, Any]) -> str:
    kind = question.get("kind")
    if kind not in _KINDS:
        raise _BadQuestion('give "kind" as "subscription" or "assignment"')
    return str(kind)


def _answer_lines(stream: IO[bytes], answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    for number, line in enumerate(_lines(stream), start=1):
        sys.stdout.write(_json(_answer(number, line, answer)) + "\n")
        sys.stdout.flush()


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines of the stream; ``None`` for one that is too long, which is skipped piece by piece."""
    while line := stream.readline(LINE_LIMIT + 1):
        if len(line) <= LINE_LIMIT or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LINE_LIMIT)
        yield None


def _answer(
    number: int, line: bytes | None, answer: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    if line is None:
        return {"error": f"line {number} is longer than {LINE_LIMIT} bytes; split it"}
    try:
        question = json.loads(line.rstrip(b"\r\n"))
    except json.JSONDecodeError as error:
        return {"error": f"line {number} column {error.colno}: not JSON: {error.msg}"}
    except (ValueError, RecursionError) as error:
        # Not UTF-8, a number of thousands of digits, or brackets nested thousands deep.
        return {"error": f"line {number} column 1: not JSON: {error}"}
    if not isinstance(question, dict):
        return {"error": f"line {number} column 1: not a JSON object"}
    head = {"id": question["id"]} if "id" in question else {}
    try:
        return head | answer(question)
    except (RebalanceError, ValueError) as error:
        return head | {"error": str(error)}


def _json(value: object) -> str:
    # ASCII only: names of a peer may hold halves of surrogate pairs, which no terminal takes.
    return json.dumps(value, ensure_ascii=True)


def _blob(hex_text: str | None, file: IO[bytes] | None) -> bytes:
    if hex_text is not None and hex_text != "-":
        return _unhex_or_refuse(hex_text)
    stream = file if file is not None else sys.stdin.buffer
    data = stream.read(LINE_LIMIT + 1)
    if len(data) > LINE_LIMIT:
        raise BadInput(f"the input is longer than {LINE_LIMIT} bytes; it is no metadata blob")
    # A raw blob starts with a zero byte, the top of its version; hex text never does.
    if file is not None and (not data.isascii() or b"\0" in data):
        return data
    return _unhex_or_refuse(data.decode("ascii", "replace"))


def _unhex_or_refuse(text: str) -> bytes:
    try:
        return _unhex(text)
    except ValueError as error:
        raise BadInput(str(error)) from None


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise ValueError(f"not hex: {error}; give two digits per byte") from None


def _print_pieces(pieces: list[Piece]) -> None:
    rows: list[tuple[str, ...]] = [
        (str(p.offset), str(p.size), p.type, p.path, _shown(p.value), p.meaning) for p in pieces
    ]
    columns: tuple[str, ...] = _COLUMNS
    if any(piece.key is not None for piece in pieces):
        keys = ("" if piece.key is None else str(piece.key) for piece in pieces)
        rows = [(*row[:2], key, *row[2:]) for row, key in zip(rows, keys, strict=True)]
        columns = (*_COLUMNS[:2], "key", *_COLUMNS[2:])
    print_table(columns, rows)


def _shown(value: object) -> str:
    match value:
        case bytes():
            text = value.hex()
        case str() | None:
            text = _json(value)
        case _:
            text = str(value)
    return text if len(text) <= _VALUE_WIDTH else f"{text[: _VALUE_WIDTH - 3]}..."
