"""A progress bar while Spark runs, on terminals only."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from assignor.cli import text_console

_EVERY_S = 0.3


@contextmanager
def progress(spark: SparkSession, label: str) -> Iterator[None]:
    """Show the completed tasks of the running stages until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("Spark tasks"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=text_console(stderr=True), transient=True) as bar:
        watcher = threading.Thread(target=_watch, args=(spark, bar, label, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()


def _watch(spark: SparkSession, bar: Progress, label: str, done: threading.Event) -> None:
    # Ctrl-C stops the JVM too; the command reports it, this thread must not.
    with suppress(Py4JError, OSError):
        _show(spark, bar, label, done)


def _show(spark: SparkSession, bar: Progress, label: str, done: threading.Event) -> None:
    row = bar.add_task(label, total=None)
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(_EVERY_S):
        running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        stages = [stage for stage in running if stage is not None]
        if stages:
            total = sum(stage.numTasks for stage in stages)
            completed = sum(stage.numCompletedTasks for stage in stages)
            name = " and ".join(sorted({str(stage.stageId) for stage in stages}))
            bar.update(row, description=f"{label}, stage {name}", total=total, completed=completed)
