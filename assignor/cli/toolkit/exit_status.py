"""The exit status of all commands; every failure prints one sentence on stderr.

```
  0  success
  1  the answer is "no": refused, not found, not settled
  2  wrong usage or invalid input
  3  environment failure (no broker, no Java, disk, network)
130  interrupted (Ctrl-C); within two seconds, at any moment (`assignor/interrupts.py`)
141  the reader of stdout has closed it (`| head`); nothing is printed
```
A program that is called without a subcommand prints its help on stderr instead, with status 2. 130
and 141 are what a shell reports for a program that SIGINT or SIGPIPE ended.
"""

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NoReturn

import click

from assignor.interrupts import EXIT_INTERRUPTED, claim_report, was_interrupted
from encoding import shown

EXIT_NO: Final = 1
EXIT_USAGE: Final = 2
EXIT_ENVIRONMENT: Final = 3
EXIT_READER_LEFT: Final = 141
_SENTENCE_LIMIT: Final = 4000


class AnswerIsNo(click.ClickException):
    """The answer is "no": exit status 1."""

    exit_code = EXIT_NO


class BadInput(click.ClickException):
    """Invalid input: exit status 2."""

    exit_code = EXIT_USAGE


class EnvironmentFailed(click.ClickException):
    """An environment failure (no broker, no Java, disk, network): exit status 3."""

    exit_code = EXIT_ENVIRONMENT


class Interrupted(click.ClickException):
    """The user pressed Ctrl-C: exit status 130."""

    exit_code = EXIT_INTERRUPTED


def failure(sentence: str, status: int) -> click.ClickException:
    """Return the exception that ends a command with this sentence and an exit status.

    >>> failure("no broker answers", EXIT_ENVIRONMENT)
    EnvironmentFailed('no broker answers')
    """
    kinds = (AnswerIsNo, BadInput, EnvironmentFailed, Interrupted)
    return {kind.exit_code: kind for kind in kinds}[status](sentence)


def end(name: str, run: Callable[[], object]) -> NoReturn:
    """Run a command and end the process with its exit status.

    Args:
        name: name of the program, the first word of an error message.
        run: the command; an exception that it raises ends the command.

    Raises:
        SystemExit: always, except after an unexpected exception, which is a defect and is raised.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 for good
    if sys.stdout is None:
        say(name, "standard output is closed; redirect it, for example to /dev/null")
        sys.exit(EXIT_ENVIRONMENT)
    for stream in (sys.stdout, sys.stderr):
        # Names may contain lone surrogates; the encoding may lack block characters.
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
        status = EXIT_ENVIRONMENT
        _drop_the_rest()
    sys.exit(status)


def say(name: str, sentence: str) -> None:
    """Print `name: sentence` on stderr, as one printable line."""
    text = shown(sentence.strip(), limit=_SENTENCE_LIMIT)
    click.echo(f"{name}: {text}" + ("" if text.endswith((".", "?", "!")) else "."), err=True)


def warn(sentence: str) -> None:
    """Print a warning on stderr, as one printable line."""
    click.echo(f"warning: {shown(sentence, limit=_SENTENCE_LIMIT)}", err=True)


def _status_of(name: str, run: Callable[[], object]) -> int:
    try:
        _run_or_interrupt(run)
    except click.exceptions.Exit as error:
        return error.exit_code
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except (KeyboardInterrupt, EOFError, click.Abort):
        ends: click.ClickException = Interrupted("interrupted")
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()  # the help, on stderr
        return EXIT_USAGE
    except click.ClickException as error:
        ends = error
    except BrokenPipeError:
        raise
    except OSError as error:
        ends = EnvironmentFailed(_sentence_of(error))
    else:
        return 0
    sys.stdout.flush()
    if not isinstance(ends, Interrupted) or claim_report():
        say(*_program_and_sentence(name, ends))
    return ends.exit_code


def _sentence_of(error: OSError) -> str:
    """Return what failed and where; a file that gets no descriptor is not the cause."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "this process has no file descriptors left; raise its limit (ulimit -n)"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _run_or_interrupt(run: Callable[[], object]) -> None:
    """Run a command; a failure after an interrupt is a consequence of it.

    Raises:
        KeyboardInterrupt: the command was interrupted.
    """
    try:
        run()
    except (click.exceptions.Exit, SystemExit, Interrupted):
        raise
    except BaseException:
        if was_interrupted():
            raise KeyboardInterrupt from None
        raise


def _program_and_sentence(name: str, ends: click.ClickException) -> tuple[str, str]:
    """Return the program's name and the sentence; wrong usage points to the command's `--help`."""
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
    """Redirect stdout to the null device; the interpreter's last flush would fail again."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
