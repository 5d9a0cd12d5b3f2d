"""What a command is doing: the description of its Spark jobs, and of its progress lines.

Without a description, Spark's UI shows the name of an internal function for every job.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"
# Application id -> the step that began last; the thread that shows progress reads it.
_STEP_BY_APPLICATION: dict[str, str] = {}


@contextmanager
def step(spark: SparkSession, text: str) -> Iterator[None]:
    """Describe the Spark jobs that this thread starts in the block.

    Args:
        spark: the session.
        text: what the jobs are for, such as "batch: count the groups by size".
    """
    context = spark.sparkContext
    application = context.applicationId
    before = context.getLocalProperty(_DESCRIPTION)
    outer = _STEP_BY_APPLICATION.get(application, "")
    context.setJobDescription(text)
    _STEP_BY_APPLICATION[application] = text
    try:
        yield
    finally:
        _STEP_BY_APPLICATION[application] = outer
        # After Ctrl-C there may be no JVM to tell.
        with suppress(Py4JError, OSError):
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None clears


def current_step(spark: SparkSession) -> str:
    """The step that is running, or "" between steps."""
    return _STEP_BY_APPLICATION.get(spark.sparkContext.applicationId, "")
