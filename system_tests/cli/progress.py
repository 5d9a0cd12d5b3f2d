"""Progress of long commands on stderr: a bar on a terminal, elsewhere a line every ten seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

from assignor.cli import say

LINE_EVERY_S: Final = 10.0


@contextmanager
def counted(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show on stderr how many of `total` are done, until the block ends.

    Args:
        what: that is counted, in the plural.
        total: how many there are.

    Yields:
        A function to call with the number of those that are done since the last call. Where one
        takes long, call it with 0 meanwhile: it starts no thread, as workers are forked later.
    """
    if sys.stderr.isatty():
        with click.progressbar(length=total, label=what, file=sys.stderr) as bar:
            yield bar.update
        return
    done = 0
    say_line = lines_every(LINE_EVERY_S)

    def add(count: int) -> None:
        nonlocal done
        done += count
        say_line(lambda seconds: f"{what}, {done:,} of {total:,}, {seconds:.0f} s")

    yield add


def lines_every(interval_s: float) -> Callable[[Callable[[float], str]], None]:
    """Return a function that prints the text of its argument at most once an interval.

    Args:
        interval_s: seconds between two lines, and before the first one.

    Returns:
        A function of a function that makes the text from the seconds since this call.
    """
    began = shown = time.monotonic()

    def say_line(text: Callable[[float], str]) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= interval_s:
            shown = now
            say("rolling-bounce", text(now - began))

    return say_line
