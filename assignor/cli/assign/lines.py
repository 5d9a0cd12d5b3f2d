"""Read the lines of a problem file, one by one or as many as arrive together."""

from collections.abc import Iterator
from typing import IO

from assignor.cli.toolkit.exit_status import BadInput
from encoding import RebalanceError

LINE_LIMIT = 1 << 30
_BLOCK = 1 << 18


def problem_lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines that are not blank.

    Raises:
        BadInput: a line is too long; the lines before it have been yielded.
    """
    while line := stream.readline(LINE_LIMIT):
        _check(len(line))
        if line.strip():
            yield line


def line_blocks(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that are not blank, in lists of those that one read completes.

    A line is thus yielded as soon as it arrives. Of a file, a list has some hundred kilobytes, or
    one long line. Reads without a lock, so that a process can end while a thread waits for input.

    Raises:
        BadInput: a line is too long; the lines before it have been yielded.
    """
    source = getattr(stream, "raw", stream)
    begun: list[bytes] = []
    while block := source.read(_BLOCK):
        head, newline, tail = block.rpartition(b"\n")
        if newline:
            lines = b"".join((*begun, head)).split(b"\n")
            begun = []
            yield from _checked(lines)
        begun.append(tail)
        _check(sum(map(len, begun)))
    yield from _checked([b"".join(begun)])


def _checked(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that are not blank as one list, if there are any, up to one too long."""
    sizes = [len(line) + 1 for line in lines]
    too_long = next((index for index, size in enumerate(sizes) if size >= LINE_LIMIT), len(lines))
    if found := [line for line in lines[:too_long] if line.strip()]:
        yield found
    _check(max(sizes))


def _check(size: int) -> None:
    if size >= LINE_LIMIT:
        raise BadInput(f"a line is longer than {LINE_LIMIT} bytes; split the groups")


def line_error(number: int, error: RebalanceError | str, group: str = "") -> str:
    """Return the message for an invalid line, which names its number once.

    Args:
        number: the line's number, from 1.
        error: what is wrong with the line; broken JSON names the line itself.
        group: the group of the line, for the message; empty to leave it out.
    """
    if str(error).startswith(f"line {number}"):
        return str(error)
    return f"line {number}, {group}: {error}" if group else f"line {number}: {error}"
