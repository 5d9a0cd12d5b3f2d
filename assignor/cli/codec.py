"""``assignor decode`` and ``assignor encode``: metadata bytes to fields, and back.

Both also work as filters: they read one JSON object per line, and write one per line, in order and
flushed, so that a program in another language can use one long-running process. An invalid line
yields an error object, and the next lines are processed. Input lines and blobs are limited in size.
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
"""Most bytes of one input line or file; by default a broker stores 1 MB for a whole group."""

_VALUE_WIDTH = 60
_KINDS = ("subscription", "assignment")
_COLUMNS = ("offset", "size", "type", "field", "value", "meaning")

_DECODE_HELP = """Decode the metadata of a subscription or assignment.

The text format lists every field with its offset, size, type and meaning. Of a subscription in a
version that is not known, only the used and the latest supported version are shown. Bytes after the
last field are allowed; a trailer of this project is listed. A native body is listed by key; keys of
later versions are listed as unknown. In JSON, fields that Kafka does not have are under "native".
"""
_DECODE_EXAMPLES = """
PROGRAM decode --kind subscription --hex 0000006300000063
PROGRAM decode --kind assignment --file blob.bin --format json
kafka-tool | PROGRAM decode --kind subscription --hex -
PROGRAM decode --jsonl - < questions  # lines of {"kind": ..., "hex": ...}
"""

_ENCODE_HELP = """Encode the metadata of subscriptions and assignments from JSON fields.

Each input line is an object with "kind", "version", "latest_supported" and "fields", as `assignor
decode --format json` prints them; missing fields take their defaults. Each output line has "hex" or
"error", and the "id" of the input line, if it has one. Give tasks as task_offset_sums, or as
prev_tasks and standby_tasks; if both are given, versions 7 and later use the sums.
"""
_ENCODE_EXAMPLES = """
PROGRAM encode --jsonl fields.jsonl
PROGRAM decode --jsonl blobs.jsonl | jq -c '{kind: "assignment"} + .' |
    PROGRAM encode --jsonl -
"""


class _BadQuestion(ValueError):
    """A line that is valid JSON, but not a valid request."""


def _jsonl_option(*, required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "--jsonl",
        type=click.File("rb"),
        required=required,
        metavar="FILE|-",
        help="JSON requests, one per line; - is stdin.",
    )


@click.command(
    "decode",
    cls=Command,
    help=_DECODE_HELP,
    short_help="Decode a subscription or assignment.",
    examples=_DECODE_EXAMPLES,
    exits={2: "the bytes are malformed (with --jsonl: 0, and an error object)"},
)
@click.option("--kind", type=click.Choice(_KINDS), help="Kind of the metadata.")
@click.option("--hex", "hex_text", metavar="HEX|-", help="The metadata, in hex; - is stdin.")
@click.option(
    "--file",
    type=click.File("rb"),
    metavar="FILE|-",
    help="The metadata, raw or in hex; - is stdin.",
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
        raise click.UsageError("give --kind subscription or --kind assignment")
    data = _blob(hex_text, file)
    try:
        if form == "json":
            click.echo(_json(_to_fields(kind, data)))
            return
        pieces = list(explain(kind, data))
        if pieces[0].value in KAFKA_VERSIONS:
            _to_fields(kind, data)  # also checks fields against each other
        _print_pieces(pieces)
    except DecodeError as error:
        raise BadInput(str(error)) from None


@click.command(
    "encode",
    cls=Command,
    help=_ENCODE_HELP,
    short_help="Encode subscription and assignment metadata.",
    examples=_ENCODE_EXAMPLES,
    exits={0: "success; an invalid line yields an error object"},
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
        raise _BadQuestion('give the metadata as a hex string in "hex"')
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
    """Return the default latest supported version: Kafka's for a Kafka version, else native."""
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
    """Yield the lines of the stream; ``None`` for a line that is too long, which is skipped."""
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
        # Not UTF-8, a number with thousands of digits, or brackets nested thousands deep.
        return {"error": f"line {number} column 1: not JSON: {error}"}
    if not isinstance(question, dict):
        return {"error": f"line {number} column 1: not a JSON object"}
    head = {"id": question["id"]} if "id" in question else {}
    try:
        return head | answer(question)
    except (RebalanceError, ValueError) as error:
        return head | {"error": str(error)}


def _json(value: object) -> str:
    # ASCII only: names from other members may contain lone surrogates, which cannot be printed.
    return json.dumps(value, ensure_ascii=True)


def _blob(hex_text: str | None, file: IO[bytes] | None) -> bytes:
    if hex_text is not None and hex_text != "-":
        return _unhex_or_refuse(hex_text)
    stream = file if file is not None else sys.stdin.buffer
    data = stream.read(LINE_LIMIT + 1)
    if len(data) > LINE_LIMIT:
        raise BadInput(f"the input has more than {LINE_LIMIT} bytes; it is not a metadata blob")
    # A raw blob starts with a zero byte, the high byte of its version; hex text never does.
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
