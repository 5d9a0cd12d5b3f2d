"""How all commands end: one sentence on stderr and an exit status, whatever went wrong.

```
  0  done
  1  the answer is "no"
  2  wrong usage or bad input
  3  the surroundings failed
130  interrupted (Ctrl-C)
141  whoever read stdout has left (`| head`), which is nobody's fault: nothing is said
```
The last two are what a shell reports of a program that SIGINT or SIGPIPE ended.
"""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NoReturn

import click

from encoding import shown

EXIT_NO: Final = 1
EXIT_USAGE: Final = 2
EXIT_SURROUNDINGS: Final = 3
EXIT_INTERRUPTED: Final = 130
EXIT_READER_LEFT: Final = 141
_SENTENCE_LIMIT: Final = 4000


class AnswerIsNo(click.ClickException):
    """The answer is no: exit status 1."""

    exit_code = EXIT_NO


class BadInput(click.ClickException):
    """What was given makes no sense: exit status 2."""

    exit_code = EXIT_USAGE


class SurroundingsFailed(click.ClickException):
    """No broker, no Java, no disk: exit status 3."""

    exit_code = EXIT_SURROUNDINGS


class Interrupted(click.ClickException):
    """Somebody pressed Ctrl-C: exit status 130."""

    exit_code = EXIT_INTERRUPTED


def failure(sentence: str, status: int) -> click.ClickException:
    """Return what ends a command with this sentence on stderr and this exit status, none but ours.

    >>> failure("no broker answers", EXIT_SURROUNDINGS)
    SurroundingsFailed('no broker answers')
    """
    kinds = (AnswerIsNo, BadInput, SurroundingsFailed, Interrupted)
    return {kind.exit_code: kind for kind in kinds}[status](sentence)


def end(name: str, run: Callable[[], object]) -> NoReturn:
    """Run a command, and leave the process with its status.

    Args:
        name: the program, which begins the sentence on stderr.
        run: does everything; what it raises ends the command.

    Raises:
        SystemExit: always; an exception that is not expected here goes on, as it is a defect.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 for good
    if sys.stdout is None:
        say(name, "standard output is closed; send it somewhere, for example to /dev/null")
        sys.exit(EXIT_SURROUNDINGS)
    for stream in (sys.stdout, sys.stderr):
        # Names of a peer may hold halves of surrogate pairs, and a terminal may not know a bar.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            is_utf8 = stream.encoding.lower().startswith("utf")
            stream.reconfigure(errors="backslashreplace" if is_utf8 else "replace")
    try:
        status = _status_of(name, run)
        sys.stdout.flush()
    except BrokenPipeError:
        status = EXIT_READER_LEFT
        _drop_the_rest()
    except OSError as error:
        say(name, f"cannot write to standard output: {error.strerror or error}")
        status = EXIT_SURROUNDINGS
        _drop_the_rest()
    sys.exit(status)


def say(name: str, sentence: str) -> None:
    """Print a sentence on stderr, behind the name of the program, as one printable line."""
    text = shown(sentence.strip(), limit=_SENTENCE_LIMIT)
    click.echo(f"{name}: {text}" + ("" if text.endswith((".", "?", "!")) else "."), err=True)


def warn(sentence: str) -> None:
    """Print what is to be known besides the answer, on stderr, as one printable line."""
    click.echo(f"warning: {shown(sentence, limit=_SENTENCE_LIMIT)}", err=True)


def _status_of(name: str, run: Callable[[], object]) -> int:
    try:
        run()
    except click.exceptions.Exit as error:
        return error.exit_code
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except (KeyboardInterrupt, EOFError, click.Abort):
        ends: click.ClickException = Interrupted("interrupted")
    except click.ClickException as error:
        ends = error
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        ends = SurroundingsFailed(f"{where}{error.strerror or error}")
    else:
        return 0
    sys.stdout.flush()
    say(*_told(name, ends))
    return ends.exit_code


def _told(name: str, ends: click.ClickException) -> tuple[str, str]:
    """Who says what; wrong usage names the command whose `--help` says more."""
    sentence = ends.format_message()
    if not isinstance(ends, click.UsageError) or ends.ctx is None:
        return name, sentence
    command = ends.ctx.command_path
    sentence = " ".join(sentence.split())  # click lists choices on lines of their own
    if isinstance(ends, click.NoSuchOption):
        near = get_close_matches(ends.option_name, ends.possibilities or (), n=1, cutoff=0)
        advice = f"; did you mean {near[0]}?" if near else "."
        return command, f"no such option {ends.option_name}{advice} See `{command} --help`"
    first = sentence[:1].lower() + sentence[1:]
    mark = "" if first.endswith((".", "?", "!")) else "."
    return command, f"{first}{mark} See `{command} --help`"


def _drop_the_rest() -> None:
    """Let the interpreter's last flush go nowhere; it would complain once more."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
