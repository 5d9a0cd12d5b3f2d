"""Progress while Spark runs: a bar on a terminal, elsewhere a line every ten seconds."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from assignor.cli import say, text_console
from spark_assign.tables import current_step

BAR_EVERY_S = 0.3
LINE_EVERY_S = 10.0
Show = Callable[[str, int, int], None]


@contextmanager
def progress(spark: SparkSession) -> Iterator[None]:
    """Show the current step and the completed tasks of its stages until the block ends."""
    if sys.stderr.isatty():
        with _bar() as bar:
            row = bar.add_task("", total=None)

            def show(text: str, done: int, of: int) -> None:
                bar.update(row, description=text, total=of, completed=done)

            with _watched(spark, show, BAR_EVERY_S):
                yield
        return
    began = time.monotonic()

    def say_line(text: str, done: int, of: int) -> None:
        seconds = time.monotonic() - began
        say("spark-assign", f"{text}, {done} of {of} Spark tasks, {seconds:.0f} s")

    with _watched(spark, say_line, LINE_EVERY_S):
        yield


def _bar() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("Spark tasks"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=text_console(stderr=True), transient=True)


@contextmanager
def _watched(spark: SparkSession, show: Show, every_s: float) -> Iterator[None]:
    """Call `show` with the running stages, again and again, on a thread of its own."""
    ended = threading.Event()
    arguments = (spark, show, every_s, ended)
    watcher = threading.Thread(target=_watch, args=arguments, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(spark: SparkSession, show: Show, every_s: float, ended: threading.Event) -> None:
    # Ctrl-C stops the JVM too; the command reports it, this thread must not.
    with suppress(Py4JError, OSError):
        tracker = spark.sparkContext.statusTracker()
        while not ended.wait(every_s):
            running = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [stage for stage in running if stage is not None]
            if stages:
                done = sum(stage.numCompletedTasks for stage in stages)
                show(current_step(spark), done, sum(stage.numTasks for stage in stages))
