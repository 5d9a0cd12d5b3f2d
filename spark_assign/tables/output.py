"""Output that is there whole or not at all, whenever the job is killed.

A job writes into `_NAME.partial` beside the output and commits by renaming it; a directory with
`_SUCCESS` in it is complete. What a killed job left is cleared away by the next one that writes the
same output. Paths are Hadoop's (`hdfs://`, `s3a://`, plain); on object stores a rename is no atomic
step, so there readers should wait for `_SUCCESS`.

Names that start with `_` are invisible to Spark's and Arrow's readers: rejects and summaries lie
beside the rows under such names.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_assign.tables.errors import OutputInTheWay
from spark_assign.tables.files import Files

_OWNER = "_owner.json"
_SUCCESS = "_SUCCESS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a job writes before it commits.

    Attributes:
        path: the temporary directory; it exists.
        files: the file system it lies on.
    """

    path: str
    files: Files

    def write(self, frame: DataFrame, name: str = "", *, form: str = "parquet") -> None:
        """Write a table into the directory, or into a folder of it that starts with `_`."""
        path = f"{self.path}/{name}" if name else self.path
        # The directory exists, and holds no rows.
        frame.write.format(form).mode("append").save(path)

    def write_text(self, name: str, text: str) -> None:
        """Write a small file."""
        self.files.write(f"{self.path}/{name}", text)


@contextmanager
def staged(spark: SparkSession, out: str, *, overwrite: bool = False) -> Iterator[Stage]:
    """A temporary directory that becomes `out` when the block ends well, and goes when it does not.

    Args:
        spark: whose file systems are used.
        out: the output directory.
        overwrite: replace an output that exists; it stays until the new one is complete.

    Raises:
        OutputInTheWay: the output exists, or a running job of this machine is writing it.
    """
    out = out.rstrip("/")
    files = Files(spark, out)
    partial, old = _beside(out, "partial"), _beside(out, "old")
    _recover(files, out, old)
    if files.exists(out) and not overwrite:
        raise OutputInTheWay(f"{out} exists; give another --out, or --overwrite to replace it")
    _clear(files, out, partial)
    files.make(partial)
    files.write(f"{partial}/{_OWNER}", json.dumps(_me()))
    try:
        yield Stage(path=partial, files=files)
    except BaseException:
        files.delete(partial)
        raise
    files.delete(f"{partial}/{_OWNER}")
    if not files.exists(f"{partial}/{_SUCCESS}"):
        files.write(f"{partial}/{_SUCCESS}", "")
    if files.exists(out):
        files.rename(out, old)
    files.rename(partial, out)
    files.delete(old)


def _beside(out: str, what: str) -> str:
    parent, slash, name = out.rpartition("/")
    return f"{parent}{slash}_{name}.{what}"


def _recover(files: Files, out: str, old: str) -> None:
    """Undo a replacement that was killed between its two renames, or end it."""
    if not files.exists(old):
        return
    if files.exists(out):
        files.delete(old)
    else:
        files.rename(old, out)


def _clear(files: Files, out: str, partial: str) -> None:
    """Remove what a killed job left.

    Raises:
        OutputInTheWay: the job that writes it is alive on this machine.
    """
    if not files.exists(partial):
        return
    if files.exists(f"{partial}/{_OWNER}"):
        owner = _owner(files.read(f"{partial}/{_OWNER}"))
        if owner.get("host") == socket.gethostname() and _is_alive(owner.get("pid")):
            raise OutputInTheWay(
                f"process {owner['pid']} of this machine is writing {out}; "
                f"wait for it, or delete {partial} if that is no job of yours"
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
    """Whether another process of that number runs (where that can be told)."""
    if not isinstance(pid, int) or pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return Path(f"/proc/{pid}").exists()
    return True
