"""The Spark session: the active one, the one of `spark-submit`, or a new local one.

Settings made by `spark-submit` or a notebook are kept; only missing ones are added, and those of an
active session are as before when a command has ended. AQE and ANSI mode are enabled unless you
configured them. A local session uses all cores and no UI; output of the JVM goes to a temporary
file, so that stderr has only the messages of the command.
"""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from spark_assign.cli.jvm import start_context
from spark_assign.tables import BadTable, SparkUnavailable

JAVA_SINCE = 17
_MESSAGE_BYTES = 2_000
_MEMORY = re.compile(r"[1-9][0-9]*[kmgt]", re.IGNORECASE)
# Defaults of Spark 4, for sessions that do not configure them.
_RUNTIME = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}
_NO_CONF: Mapping[str, str] = MappingProxyType({})
# Several threads that collect garbage take processor time from the workers.
_QUICK_JVM = MappingProxyType(
    {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
)


def session(
    app_name: str,
    *,
    cores: int | None = None,
    driver_memory: str | None = None,
    conf: Mapping[str, str] = _NO_CONF,
    is_brief: bool = False,
) -> SparkSession:
    """The active session, or a new one.

    Args:
        app_name: name of a new application.
        cores: of the local machine; default: all. Ignored if Spark runs already.
        driver_memory: heap of the driver, such as "4g"; default: 1g. Ignored likewise.
        conf: Spark settings; they take precedence over those that are made here.
        is_brief: the JVM of a new local session compiles quickly rather than well. Best if workers
            do most of the work: optimizing takes the JVM ten seconds of processor time.

    Raises:
        SparkUnavailable: no Java, an old one, or a JVM that does not start.
        BadTable: the active session cannot change a setting of `conf` any more.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return _with_defaults(_changed(active, conf), conf)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        with _interrupts_kept():
            started = SparkSession.builder.appName(app_name).config(map=dict(conf)).getOrCreate()
        return _with_defaults(started, conf)
    quick = _QUICK_JVM if is_brief else _NO_CONF
    started = _local(app_name, cores=cores, driver_memory=driver_memory, conf={**quick, **conf})
    return _with_defaults(started, conf)


@contextmanager
def running(
    app_name: str,
    *,
    cores: int | None = None,
    driver_memory: str | None = None,
    conf: Mapping[str, str] = _NO_CONF,
    is_brief: bool = False,
) -> Iterator[SparkSession]:
    """The active session, or a new one that is stopped when the block ends (`session`).

    The settings of an active session are afterwards what they were before.
    """
    active = SparkSession.getActiveSession()
    before = {} if active is None else _settings_of(active)
    try:
        spark = session(
            app_name, cores=cores, driver_memory=driver_memory, conf=conf, is_brief=is_brief
        )
        yield spark
    finally:
        if active is not None:
            _restore(active, before)
        elif (own := SparkSession.getActiveSession()) is not None:
            own.stop()


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Provide a block after which Ctrl-C has the handler that it had before.

    PySpark's handler calls the JVM over a connection that is in use. It is not needed: stopping the
    session cancels its jobs.
    """
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def starts_here() -> bool:
    """Whether `running` starts a new Spark on this machine."""
    return SparkSession.getActiveSession() is None and "PYSPARK_GATEWAY_PORT" not in os.environ


def _settings_of(spark: SparkSession) -> dict[str, str]:
    return dict(spark.conf.getAll)


def _restore(spark: SparkSession, before: Mapping[str, str]) -> None:
    """Undo all changes of the session's settings."""
    # After Ctrl-C there may be no JVM to tell.
    with suppress(Py4JError, OSError):
        for key, value in _settings_of(spark).items():
            if key not in before:
                spark.conf.unset(key)
            elif before[key] != value:
                spark.conf.set(key, before[key])


def _changed(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """The session with other settings.

    Raises:
        BadTable: a setting cannot be changed while Spark runs.
    """
    for key, value in conf.items():
        if not spark.conf.isModifiable(key) and spark.conf.get(key, None) != value:
            raise BadTable(
                f"--conf {key} cannot be changed while Spark runs; give it where the session is "
                "started, as to spark-submit"
            )
    for key, value in conf.items():
        if spark.conf.isModifiable(key):
            spark.conf.set(key, value)
    return spark


def find_java() -> str:
    """The `java` that Spark starts: from JAVA_HOME, else from PATH.

    Raises:
        SparkUnavailable: there is no java, or it is older than Java 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME is {home} and" if home else "JAVA_HOME is not set and PATH"
        raise SparkUnavailable(f"{where} has no bin/java; install Java {JAVA_SINCE} or newer")
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', version)
    if found is None:
        raise SparkUnavailable(f"{java} -version prints no version; check that it is Java")
    if int(found[1]) < JAVA_SINCE:
        raise SparkUnavailable(
            f"{java} is Java {found[1]}, Spark needs {JAVA_SINCE} or newer; set JAVA_HOME to one"
        )
    return java


def _local(
    app_name: str, *, cores: int | None, driver_memory: str | None, conf: Mapping[str, str]
) -> SparkSession:
    if driver_memory is not None and not _MEMORY.fullmatch(driver_memory):
        raise SparkUnavailable(f"driver memory {driver_memory!r} is not a size; write 512m or 4g")
    find_java()
    # Spark logs a failed query as JSON before it raises; the error is enough.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # Workers run this interpreter, whether or not its environment is activated.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = _local_conf(app_name, cores=cores, driver_memory=driver_memory)
    settings.setAll(list(conf.items()))
    with tempfile.TemporaryFile() as jvm_output:
        try:
            with _interrupts_kept():
                start_context(settings, jvm_output)
        except (PySparkRuntimeError, OSError) as error:
            raise SparkUnavailable(f"Spark does not start: {_last_message(jvm_output)}") from error
    return SparkSession.builder.getOrCreate()


def _local_conf(app_name: str, *, cores: int | None, driver_memory: str | None) -> SparkConf:
    workers = cores or os.cpu_count() or 1
    conf = SparkConf().setAppName(app_name).setMaster(f"local[{workers}]")
    conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    conf.set("spark.sql.shuffle.partitions", str(4 * workers))
    conf.set("spark.log.level", "ERROR")
    conf.set("spark.python.daemon.module", "spark_assign.cli.daemon")
    if driver_memory is not None:
        conf.set("spark.driver.memory", driver_memory)
    return conf


def _with_defaults(spark: SparkSession, conf: Mapping[str, str]) -> SparkSession:
    """The session, with `_RUNTIME` set where neither it nor `conf` configures that."""
    given = spark.sparkContext.getConf()
    for key, value in _RUNTIME.items():
        if key not in conf and not given.contains(key):
            spark.conf.set(key, value)
    return spark


def _last_message(jvm_output: IO[bytes]) -> str:
    size = jvm_output.seek(0, os.SEEK_END)
    jvm_output.seek(max(0, size - _MESSAGE_BYTES))
    lines = jvm_output.read(_MESSAGE_BYTES).decode("utf-8", errors="replace").split("\n")
    messages = [line.strip() for line in lines if line.strip() and not line.startswith("\tat ")]
    return messages[-1] if messages else "the JVM exited without a message"
