"""Atomic output: a job that is killed leaves no partial output.

A job writes into `_NAME.partial` beside the output and commits by renaming it. A directory with a
file `_SUCCESS` is complete. The next job that writes the same output deletes what a killed job
left. Paths are Hadoop's (`hdfs://`, `s3a://`, plain). On object stores a rename is not atomic:
readers there should wait for `_SUCCESS`.

Readers of Spark and Arrow skip names that start with `_`; rejects and summaries have such names.
"""

import json
import os
import re
import socket
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from encoding import shown
from spark_assign.tables.errors import BadTable, OutputInTheWay
from spark_assign.tables.files import Files

_OWNER = "_owner.json"
_SUCCESS = "_SUCCESS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The temporary directory of a job that has not committed.

    Attributes:
        path: of the directory; it exists.
        files: the file system it lies on.
    """

    path: str
    files: Files

    def write(
        self,
        frame: DataFrame,
        name: str = "",
        *,
        form: str = "parquet",
        folders: Sequence[str] = (),
    ) -> None:
        """Add rows to the directory, or to a folder of it that starts with `_`.

        Args:
            frame: the rows.
            name: of the folder; "" for the directory itself.
            form: parquet or json.
            folders: columns; rows go to a folder `COLUMN=VALUE` for each of their values.
        """
        path = f"{self.path}/{name}" if name else self.path
        frame.write.format(form).mode("append").partitionBy(*folders).save(path)

    def write_text(self, name: str, text: str) -> None:
        """Write a small file."""
        self.files.write(f"{self.path}/{name}", text)


@contextmanager
def staged(
    spark: SparkSession, out: str, *, overwrite: bool = False, reads: Collection[str] = ()
) -> Iterator[Stage]:
    """A temporary directory; renamed to `out` when the block ends, deleted when it raises.

    Args:
        spark: the session.
        out: the output directory.
        overwrite: replace an output that exists; it stays until the new one is complete.
        reads: paths of inputs, which an output must not replace.

    Raises:
        BadTable: `out` is a root directory, or no path.
        OutputInTheWay: the output exists, and is not to be replaced or no output; or it has
            appeared when the block ends (then the temporary directory stays, complete), or a
            running job of this machine is writing it.
    """
    below = re.sub(r"^[A-Za-z][\w+.-]*:(//[^/]*)?", "", out)
    if out and below.rstrip("/").rpartition("/")[2] in {"", ".", ".."}:
        raise BadTable(f"{shown(out)} is not the name of a directory; give one that has a name")
    out = out.rstrip("/")
    files = Files(spark, out)
    partial, old = _beside(out, "partial"), _beside(out, "old")
    if overwrite or not files.exists(out):  # a job that is refused changes nothing
        _recover(files, out, old)
    if files.exists(out):
        _check_replaced(files, out, reads, overwrite=overwrite)
    _clear(files, out, partial)
    files.make(partial)
    files.write(f"{partial}/{_OWNER}", json.dumps(_me()))
    try:
        yield Stage(path=partial, files=files)
    except BaseException:
        spark.sparkContext.cancelAllJobs()  # of an interrupted command, which would write again
        files.delete(partial)
        raise
    files.delete(f"{partial}/{_OWNER}")
    if not files.exists(f"{partial}/{_SUCCESS}"):
        files.write(f"{partial}/{_SUCCESS}", "")
    if files.exists(out):
        if not overwrite:
            raise OutputInTheWay(
                f"{out} did not exist when this job began, and exists now; it is not replaced: the"
                f" output of this job is complete in {partial}, move it to another place"
            )
        files.rename(out, old)
    files.rename(partial, out)
    files.delete(old)


def _check_replaced(files: Files, out: str, reads: Collection[str], *, overwrite: bool) -> None:
    """Check that an output that exists is to be replaced, and can be.

    Raises:
        OutputInTheWay: it is not.
    """
    if not overwrite:
        raise OutputInTheWay(f"{out} exists; give another --out, or --overwrite to replace it")
    if not files.is_empty(out) and not files.exists(f"{out}/{_SUCCESS}"):
        raise OutputInTheWay(
            f"{out} has no file {_SUCCESS}, so it is no output of a job, and is not replaced; give "
            "another --out, or remove it"
        )
    for path in reads:
        if files.is_within(path, out):
            raise OutputInTheWay(
                f"{out} has the input {path} in it, which would be replaced; give another --out"
            )


def _beside(out: str, what: str) -> str:
    parent, slash, name = out.rpartition("/")
    return f"{parent}{slash}_{name}.{what}"


def _recover(files: Files, out: str, old: str) -> None:
    """Complete a replacement that was killed between its renames, or restore the old output."""
    if not files.exists(old):
        return
    if files.exists(out):
        files.delete(old)
    else:
        files.rename(old, out)


def _clear(files: Files, out: str, partial: str) -> None:
    """Delete what a killed job left.

    Raises:
        OutputInTheWay: the job that writes it is still running on this machine.
    """
    if not files.exists(partial):
        return
    if files.exists(f"{partial}/{_OWNER}"):
        owner = _owner(files.read(f"{partial}/{_OWNER}"))
        if owner.get("host") == socket.gethostname() and _is_alive(owner.get("pid")):
            raise OutputInTheWay(
                f"process {owner['pid']} of this machine is writing {out}; "
                f"wait for it, or delete {partial} if it is not such a job"
            )
    files.delete(partial)


def _me() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid()}


def _owner(text: str) -> dict[str, Any]:
    try:
        owner = json.loads(text)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _is_alive(pid: object) -> bool:
    """Whether another process with this id is running, as far as the system tells."""
    if not isinstance(pid, int) or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return Path(f"/proc/{pid}").exists()
    return True
