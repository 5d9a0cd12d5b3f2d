"""Start the JVM of a local Spark; it ends with this process, however this process ends.

By itself, a JVM whose parent was killed runs Spark's shutdown hooks, which takes seconds, and one
that is starting may never end. So a guard (`spark_assign.cli.end_jvm`) kills the JVM and what
starts it, and removes their temporary files. The Python workers end with the JVM.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

_PROGRAM: Final = Path(__file__).with_name("end_jvm.py")
_JVM_OPTIONS: Final = "SPARK_SUBMIT_OPTS"  # Spark's scripts give them to the JVM
_DIRECTORIES: Final = "SPARK_LOCAL_DIRS"  # takes precedence over this setting:
_DIRECTORIES_SETTING: Final = "spark.local.dir"
_GUARDS: Final[list["_Guard"]] = []  # of the JVMs that this process has started


def start_context(settings: SparkConf, output: IO[bytes]) -> None:
    """Start the active Spark context; a JVM of an earlier session is used again.

    Args:
        settings: of the context, and of the JVM if one is started.
        output: a file for what the JVM prints.

    Raises:
        PySparkRuntimeError: the JVM has ended.
        OSError: the system has no more processes or files.
    """
    gateway = SparkContext._gateway  # noqa: SLF001 no public API
    if gateway is None:
        with _guarded() as group:
            popen = {"stdout": output, "stderr": output, **group}
            gateway = launch_gateway(settings, popen)  # type: ignore[no-untyped-call]  # has no types
    defaults = gateway.jvm.org.apache.spark.SparkConf()
    configured = settings.get(_DIRECTORIES_SETTING) or defaults.get(_DIRECTORIES_SETTING, "")
    if configured and _GUARDS:
        settings.set(_DIRECTORIES_SETTING, _GUARDS[-1].own_directories(configured))
    SparkContext(conf=settings, gateway=gateway)


@contextmanager
def _guarded() -> Iterator[dict[str, Any]]:
    """Start a guard for a block that starts a JVM; it ends the JVM if the block fails.

    The block's temporary files and those of the JVM are in directories that the guard removes.

    Yields:
        Arguments of `subprocess.Popen`, which put the JVM into the guard's process group, and give
        it one end of a pipe that tells the guard when it has ended.
    """
    if os.name != "posix":
        yield {}
        return
    jvm_reads, jvm_writes = os.pipe()
    try:
        guard = _Guard(jvm_reads)
    except BaseException:
        os.close(jvm_writes)
        raise
    finally:
        os.close(jvm_reads)
    _GUARDS.append(guard)
    before, directory = tempfile.tempdir, guard.own_directories(tempfile.gettempdir())
    Path(directory).mkdir(mode=0o700)
    options = [os.environ.get(_JVM_OPTIONS, ""), shlex.quote(f"-Djava.io.tmpdir={directory}")]
    changes = {_JVM_OPTIONS: " ".join(options)}
    if configured := os.environ.get(_DIRECTORIES):
        changes[_DIRECTORIES] = guard.own_directories(configured)
    environment = dict(os.environ)
    os.environ.update(changes)
    tempfile.tempdir = directory
    try:
        yield {"process_group": guard.process.pid, "pass_fds": (jvm_writes,)}
    except BaseException:
        _GUARDS.remove(guard)
        guard.end()
        raise
    finally:
        os.close(jvm_writes)
        tempfile.tempdir = before
        for name in changes:
            del os.environ[name]
        os.environ.update(environment)


class _Guard:
    """The guard of a JVM.

    Args:
        jvm: one end of a pipe whose other end the JVM will hold.

    Attributes:
        process: it leads the process group of the JVM.
    """

    def __init__(self, jvm: int) -> None:
        self._name = f"spark-assign-{uuid.uuid4().hex}"
        reads, self._pipe = os.pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_PROGRAM), str(jvm)],
                pass_fds=(jvm,),
                stdin=reads,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,
            )
        except BaseException:
            self.close()
            raise
        finally:
            os.close(reads)

    def own_directories(self, parents: str) -> str:
        """Return a path below each of these directories; at the end the guard removes it.

        Args:
            parents: paths, separated by commas, as those returned.
        """
        own = [str(Path(name.strip(), self._name).absolute()) for name in parents.split(",")]
        with suppress(BrokenPipeError):  # the guard was killed
            os.write(self._pipe, b"".join(os.fsencode(name) + b"\0" for name in own))
        return ",".join(own)

    def close(self) -> None:
        """Close the pipe: if this was the last copy, the JVM ends."""
        os.close(self._pipe)

    def end(self) -> None:
        """End the JVM and what starts it."""
        self.close()
        self.process.wait()


def _close_copies() -> None:
    """In a forked process, close its copies of the pipes."""
    while _GUARDS:
        _GUARDS.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_copies)
