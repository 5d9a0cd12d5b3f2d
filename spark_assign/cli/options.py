"""Options, session and error handling of all subcommands."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from assignor.cli import (
    EXIT_ENVIRONMENT,
    EXIT_USAGE,
    BadInput,
    Command,
    EnvironmentFailed,
    all_of,
    complete_path,
    failure,
    format_option,
    settings_of,
)
from encoding import RebalanceError, shown
from spark_assign.cli.progress import progress
from spark_assign.cli.session import running
from spark_assign.tables import (
    REJECTS,
    BadTable,
    Form,
    Groups,
    OutOfMemory,
    SparkUnavailable,
    read_groups,
    read_table,
    step,
)

_WIDTH = 400
_ENVIRONMENT_FAULTS = {
    ("No space left on device", "File too large", "Disk quota exceeded"): (
        "the disk of --out, or that of spark.local.dir, is full, or a quota or a limit of file "
        "sizes is reached; free space, raise the limit, or give another disk"
    ),
    ("Python worker exited unexpectedly",): (
        "a Python worker was killed, or crashed in a strategy; if the system had too little "
        "memory, give fewer --cores, or a --huge-tasks below the largest number of tasks"
    ),
}
# Of a Java stack trace; the last one is what happened first.
_CAUSE = re.compile(r"^Caused by: (.+)", re.MULTILINE)
# Errors that workers raise for invalid input.
_INVALID_INPUT = {"ProblemError", "ConfigError", "TaskAssignmentError", "BadTable", "StoreError"}
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
# Error conditions of Spark for invalid input, and messages for the user.
_INPUT_FAULTS = (
    ("PATH_NOT_FOUND", "there is no {path}; give a file, a directory or a glob"),
    ("UNABLE_TO_INFER_SCHEMA", "{path} has no file that Spark can read; see --in-format"),
    (
        "CANNOT_READ_FILE_FOOTER",
        "{path} is not a complete Parquet file (truncated?); write it again",
    ),
    (
        "FAILED_READ_FILE",
        "{path} does not have the format of its name (truncated?); write it again",
    ),
    ("MALFORMED_RECORD", "{path} has a line that is not JSON; correct it"),
)
_PATH = re.compile(r"(?:file:|hdfs:|s3a:|abfss?:|gs:)/+[^\s,;'\"]+?(?=[\s,;'\"]|\.?\s|\.?$)")
_TASK_ERROR = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Refused|Table)): (.+)$", re.MULTILINE)


def subcommand(
    name: str, short: str, text: str, examples: str, exits: Mapping[int, str]
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a subcommand of `spark-assign`; `exits` describes its statuses 0, 1 and 2."""
    return click.command(
        name,
        cls=Command,
        help=text,
        short_help=short,
        examples=examples,
        exits={**exits, 3: "no Java, or the disk cannot be read or written"},
    )


spark_options: Decorator = all_of(
    (
        click.option(
            "--cores",
            type=click.IntRange(1),
            metavar="N",
            help="Cores of this machine to use; default: all. Ignored under spark-submit.",
        ),
        click.option(
            "--driver-memory",
            metavar="SIZE",
            help="Heap of the driver, such as 4g; default: 1g. Ignored under spark-submit.",
        ),
        click.option(
            "--conf",
            multiple=True,
            metavar="KEY=VALUE",
            help="A setting of Spark, spark.KEY=VALUE; may be repeated.",
        ),
    )
)
"""--cores and --driver-memory, for a session that the command starts itself, and --conf."""


in_option: Decorator = all_of(
    (
        click.option(
            "--in",
            "path",
            metavar="PATH",
            shell_complete=complete_path("file"),
            help="Input file, directory or glob.",
        ),
        click.option(
            "--in-format",
            "in_form",
            type=click.Choice(["auto", "parquet", "jsonl"]),
            default="auto",
            show_default=True,
            help="Input format.",
        ),
        click.option(
            "--table",
            metavar="NAME",
            help="Input table of a catalog, in place of --in; its catalog is set up by --conf.",
        ),
    )
)
"""--in, --in-format and --table, as `path`, `in_form` and `table`."""


def groups_of(
    spark: SparkSession,
    given: Mapping[str, Any],
    *,
    keep: Sequence[str] = (),
    line_limit: int | None = None,
) -> Groups:
    """The groups that `in_option` names.

    Args:
        spark: the session.
        given: the options of the command.
        keep: other columns to read.
        line_limit: as for `read_groups`.

    Raises:
        BadTable: neither --in nor --table is given, or both; or as for `read_groups`.
    """
    path, table = given["path"], given["table"]
    if (path is None) == (table is None):
        raise BadTable("give either --in PATH or --table NAME")
    if table is not None:
        return read_table(spark, table, keep=keep)
    form: Form = given["in_form"]
    return read_groups(spark, path, form=form, keep=keep, line_limit=line_limit)


def inputs_of(given: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths that a command reads: --in and --store."""
    return tuple(given[name] for name in ("path", "store") if given.get(name) is not None)


on_error_option: Decorator = click.option(
    "--on-error",
    type=click.Choice(["fail", "reject"]),
    default="fail",
    show_default=True,
    help="What to do with invalid input.",
)
"""--on-error, for commands that can reject a part of the input."""

output_options: Decorator = all_of(
    (
        click.option(
            "--out",
            required=True,
            metavar="DIR",
            shell_complete=complete_path("dir"),
            help="Output directory.",
        ),
        click.option("--overwrite", is_flag=True, help="Replace an existing output."),
        format_option(help_suffix=", the summary on stdout"),
        spark_options,
    )
)
"""--out, --overwrite, --format and `spark_options`."""


def print_rejects(count: str, first: Sequence[str], out: str) -> None:
    """Print the number of rejects, their folder and the first few sentences."""
    click.echo(f"{count} rejected, see {out.rstrip('/')}/{REJECTS}; the first:")
    for sentence in first:
        click.echo(f"  {sentence}")


@contextmanager
def job(command: str, given: Mapping[str, Any], *, label: str = "") -> Iterator[SparkSession]:
    """A Spark session for a command; an error in the block ends the command with a sentence.

    Args:
        command: name of the subcommand.
        given: its options, `spark_options` among them.
        label: describes the Spark jobs of no other step; the command's name by default.
    """
    settings = {name: given[name] for name in ("cores", "driver_memory")}
    try:
        with (
            running(
                f"spark-assign {command}",
                **settings,
                conf=_conf(given["conf"]),
                is_brief=command != "group",
            ) as spark,
            step(spark, label or command),
            progress(spark),
        ):
            yield spark
    except (SparkUnavailable, OutOfMemory) as error:
        raise EnvironmentFailed(str(error)) from None
    except RebalanceError as error:
        raise BadInput(str(error)) from None
    except (PySparkException, Py4JError) as error:
        raise failure(*sentence_of(str(error))) from None
    except BrokenPipeError:  # the reader of stdout has closed it
        raise
    except ConnectionError as error:
        raise EnvironmentFailed(
            f"the JVM of Spark has ended ({error.strerror}); if it had too little memory, give a "
            "larger --driver-memory"
        ) from None
    except OSError as error:
        where = error.filename or "the disk"
        raise EnvironmentFailed(f"{where}: {error.strerror}") from None


def _conf(given: Sequence[str]) -> dict[str, str]:
    """The settings of --conf.

    Raises:
        BadTable: a text is no setting of Spark.
    """
    settings = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not (equals and key.startswith("spark.")):
            raise BadTable(
                f"--conf {shown(text)} is not a setting of Spark; write spark.KEY=VALUE, and "
                "settings of assignment as --config KEY=VALUE"
            )
        settings[key.strip()] = value.strip()
    return settings


def sentence_of(text: str) -> tuple[str, int]:
    """The message for a Spark error, and the exit status.

    >>> sentence_of("[PATH_NOT_FOUND] Path does not exist: file:/data/x. SQLSTATE: 42K03")
    ('there is no /data/x; give a file, a directory or a glob', 2)
    """
    for condition, sentence in _INPUT_FAULTS:
        if condition in text:
            found = _PATH.search(text)
            path = re.sub(r"^file:/+", "/", found[0]).rstrip(".") if found else "the input"
            return sentence.format(path=path), EXIT_USAGE
    for conditions, sentence in _ENVIRONMENT_FAULTS.items():
        if any(condition in text for condition in conditions):
            return sentence, EXIT_ENVIRONMENT
    raised = _TASK_ERROR.findall(text)
    if raised and raised[-1][0] in _INVALID_INPUT:
        return raised[-1][1], EXIT_USAGE
    if raised and raised[-1][0] == "MemoryError":
        return raised[-1][1], EXIT_ENVIRONMENT
    causes = _CAUSE.findall(text)
    first = ": ".join(raised[-1]) if raised else (*text.strip().splitlines()[:1], *causes)[-1]
    return f"Spark failed: {first[:_WIDTH]}", EXIT_ENVIRONMENT


def frozen_settings(given: tuple[str, ...]) -> tuple[tuple[str, object], ...]:
    """The settings of --config, hashable.

    Raises:
        ConfigError: a setting has no value.
    """
    return tuple(
        (key, tuple(value) if isinstance(value, list) else value)
        for key, value in settings_of(given).items()
    )
