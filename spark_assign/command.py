"""What the subcommands share: options, the session, and errors as one sentence with a status."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import click
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from assignor import ConfigError, setting_value
from encoding import RebalanceError
from spark_assign.errors import SparkUnavailable
from spark_assign.progress import progress
from spark_assign.session import running

BAD_INPUT, SURROUNDINGS = 2, 3
STATUS = """Exit status: 0 done, 1 the answer is "no", 2 wrong usage or bad input, 3 the
surroundings failed (no Java, disk)."""
_WIDTH = 400
# Raised by our code in a worker, for what it was given.
_OUR_FAULTS = {"ProblemError", "ConfigError", "TaskAssignmentError", "BadTable", "StoreError"}
_Command = TypeVar("_Command", bound=Callable[..., Any])
# Spark's conditions that are the input's fault, and what they mean to the user.
_INPUT_FAULTS = (
    ("PATH_NOT_FOUND", "there is no {path}; give a file, a directory or a glob"),
    ("UNABLE_TO_INFER_SCHEMA", "{path} holds no file that Spark can read; see --in-format"),
    ("CANNOT_READ_FILE_FOOTER", "{path} is no whole Parquet file (cut off?); write it again"),
    (
        "FAILED_READ_FILE",
        "{path} cannot be read as what it claims to be (cut off?); write it again",
    ),
    ("MALFORMED_RECORD", "{path} holds a line that is no JSON; mend it"),
)
_PATH = re.compile(r"(?:file:|hdfs:|s3a:|abfss?:|gs:)/+[^\s,;'\"]+?(?=[\s,;'\"]|\.?\s|\.?$)")
_TASK_ERROR = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|Refused|Table)): (.+)$", re.MULTILINE)


def spark_options(command: _Command) -> _Command:
    """--cores and --driver-memory, for a session that the command starts itself."""
    for option in (
        click.option(
            "--driver-memory",
            metavar="SIZE",
            help="Heap of the driver, as 4g (Spark's own: 1g); ignored under spark-submit.",
        ),
        click.option(
            "--cores",
            type=click.IntRange(1),
            help="Of this machine; all by default. Ignored under spark-submit.",
        ),
    ):
        command = option(command)
    return command


def in_format_option(command: _Command) -> _Command:
    """--in-format, beside --in."""
    return click.option(
        "--in-format",
        "in_form",
        type=click.Choice(["auto", "parquet", "jsonl"]),
        default="auto",
        show_default=True,
        help="What it is.",
    )(command)


def on_error_option(command: _Command) -> _Command:
    """--on-error, where rejects can be set apart."""
    return click.option(
        "--on-error",
        type=click.Choice(["fail", "reject"]),
        default="fail",
        show_default=True,
        help="What becomes of input that makes no sense.",
    )(command)


def config_option(command: _Command) -> _Command:
    """--config, as often as it is given."""
    return click.option(
        "--config",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting by Kafka's name; wins over a group's own.",
    )(command)


def output_options(command: _Command) -> _Command:
    """--out, --overwrite and --format."""
    for option in (
        click.option(
            "--format",
            "style",
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help="Of the summary on stdout.",
        ),
        click.option("--overwrite", is_flag=True, help="Replace an output that exists."),
        click.option("--out", required=True, metavar="DIR", help="Where to write."),
    ):
        command = option(command)
    return command


@contextmanager
def job(
    name: str, label: str, *, cores: int | None, driver_memory: str | None
) -> Iterator[SparkSession]:
    """A session for a command; what goes wrong inside ends the command with a sentence."""
    try:
        with (
            running(name, cores=cores, driver_memory=driver_memory) as spark,
            progress(spark, label),
        ):
            yield spark
    except SparkUnavailable as error:
        fail(str(error), SURROUNDINGS)
    except RebalanceError as error:
        fail(str(error), BAD_INPUT)
    except (PySparkException, Py4JError) as error:
        fail(*sentence_of(str(error)))
    except OSError as error:
        fail(f"{error.filename or 'the disk'}: {error.strerror}", SURROUNDINGS)


def fail(sentence: str, status: int) -> NoReturn:
    """End the command: one sentence on stderr."""
    click.echo(f"spark-assign: {sentence.rstrip('.')}.", err=True)
    sys.exit(status)


def sentence_of(text: str) -> tuple[str, int]:
    """What a Spark error means, and the exit status.

    >>> sentence_of("[PATH_NOT_FOUND] Path does not exist: file:/data/x. SQLSTATE: 42K03")
    ('there is no /data/x; give a file, a directory or a glob', 2)
    """
    for condition, sentence in _INPUT_FAULTS:
        if condition in text:
            found = _PATH.search(text)
            path = re.sub(r"^file:/+", "/", found[0]).rstrip(".") if found else "the input"
            return sentence.format(path=path), BAD_INPUT
    if "No space left on device" in text:
        return "the disk is full; free space, or point spark.local.dir at another", SURROUNDINGS
    raised = _TASK_ERROR.findall(text)
    if raised and raised[-1][0] in _OUR_FAULTS:
        return raised[-1][1], BAD_INPUT
    first = ": ".join(raised[-1]) if raised else text.strip().split("\n", maxsplit=1)[0]
    return f"Spark failed: {first[:_WIDTH]}", SURROUNDINGS


def settings_of(given: tuple[str, ...]) -> tuple[tuple[str, object], ...]:
    """KEY=VALUE of --config, in a form that can be a key itself.

    Raises:
        ConfigError: one has no value.
    """
    settings = []
    for text in given:
        key, sign, value = text.partition("=")
        if not sign:
            raise ConfigError(f"--config {text} has no value; write KEY=VALUE")
        read = setting_value(key, value)
        settings.append((key, tuple(read) if isinstance(read, list) else read))
    return tuple(settings)
