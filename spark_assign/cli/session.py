"""One Spark session: the one that is there, the one `spark-submit` asks for, or a local one.

Where `spark-submit` (or a notebook) has said how Spark is to run, nothing it said is overruled;
only what it left open is filled in. Alone, the driver is this machine: every core, no UI, and the
JVM's own chatter in a temporary file, so that stderr holds our sentences only.
"""

import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from spark_assign.tables import SparkUnavailable

JAVA_SINCE = 17
_LAST_WORDS = 2_000
_MEMORY = re.compile(r"[1-9][0-9]*[kmgt]", re.IGNORECASE)
# Set where nobody set them: the job is written for both, and they are Spark 4's own defaults.
_RUNTIME = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
}


def session(
    app_name: str, *, cores: int | None = None, driver_memory: str | None = None
) -> SparkSession:
    """The active session, or a new one.

    Args:
        app_name: name of the application, where this starts it.
        cores: of the local machine; all by default. Ignored where Spark runs already.
        driver_memory: heap of the driver, such as "4g"; Spark's 1g by default. Likewise.

    Raises:
        SparkUnavailable: no Java, an old one, or a JVM that does not start.
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return _filled_in(active)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _filled_in(SparkSession.builder.getOrCreate())
    return _filled_in(_local(app_name, cores=cores, driver_memory=driver_memory))


@contextmanager
def running(
    app_name: str, *, cores: int | None = None, driver_memory: str | None = None
) -> Iterator[SparkSession]:
    """As `session`; a session that this started is stopped at the end."""
    is_ours = SparkSession.getActiveSession() is None
    spark = session(app_name, cores=cores, driver_memory=driver_memory)
    try:
        yield spark
    finally:
        if is_ours:
            spark.stop()


def find_java() -> str:
    """The `java` that Spark will start: of JAVA_HOME, else of PATH.

    Raises:
        SparkUnavailable: there is none, or it is older than Java 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None or not Path(java).is_file():
        where = f"JAVA_HOME is {home} and" if home else "JAVA_HOME is not set and PATH"
        raise SparkUnavailable(f"{where} has no bin/java; install Java {JAVA_SINCE} or newer")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found is None:
        raise SparkUnavailable(f"{java} -version does not say a version; is it a Java?")
    if int(found[1]) < JAVA_SINCE:
        raise SparkUnavailable(
            f"{java} is Java {found[1]}, Spark needs {JAVA_SINCE} or newer; set JAVA_HOME to one"
        )
    return java


def _local(app_name: str, *, cores: int | None, driver_memory: str | None) -> SparkSession:
    if driver_memory is not None and not _MEMORY.fullmatch(driver_memory):
        raise SparkUnavailable(f"driver memory {driver_memory!r} is no size; write 512m or 4g")
    find_java()
    # Spark prints failed queries as a page of JSON before it raises; the error says it all.
    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    # Workers run this interpreter, whether or not its environment is activated.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    conf = _local_conf(app_name, cores=cores, driver_memory=driver_memory)
    with tempfile.TemporaryFile() as chatter:
        quiet = {"stdout": chatter, "stderr": chatter}
        try:
            # Where a JVM is left from an earlier session, it is used again as it is.
            gateway = (
                None
                if SparkContext._gateway is not None  # noqa: SLF001 Spark has no public word for it
                else launch_gateway(conf, quiet)  # type: ignore[no-untyped-call]  # has no types
            )
            SparkContext(conf=conf, gateway=gateway)
        except (PySparkRuntimeError, OSError) as error:
            raise SparkUnavailable(f"Spark does not start: {_last_words(chatter)}") from error
    return SparkSession.builder.getOrCreate()


def _local_conf(app_name: str, *, cores: int | None, driver_memory: str | None) -> SparkConf:
    workers = cores or os.cpu_count() or 1
    conf = SparkConf().setAppName(app_name).setMaster(f"local[{workers}]")
    conf.set("spark.ui.enabled", "false").set("spark.ui.showConsoleProgress", "false")
    conf.set("spark.driver.host", "127.0.0.1").set("spark.driver.bindAddress", "127.0.0.1")
    conf.set("spark.sql.shuffle.partitions", str(4 * workers))
    conf.set("spark.log.level", "ERROR")
    if driver_memory is not None:
        conf.set("spark.driver.memory", driver_memory)
    return conf


def _filled_in(spark: SparkSession) -> SparkSession:
    """Settings that nobody made; in a session that somebody made, theirs win."""
    given = spark.sparkContext.getConf()
    for key, value in _RUNTIME.items():
        if not given.contains(key):
            spark.conf.set(key, value)
    return spark


def _last_words(chatter: IO[bytes]) -> str:
    size = chatter.seek(0, os.SEEK_END)
    chatter.seek(max(0, size - _LAST_WORDS))
    lines = chatter.read(_LAST_WORDS).decode("utf-8", errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip() and not line.startswith("\tat ")]
    return said[-1] if said else "the JVM exited without a word"
