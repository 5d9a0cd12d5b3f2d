"""File operations on any Hadoop file system, for reading inputs and committing outputs."""

from typing import Any

from pyspark.sql import SparkSession

from spark_assign.tables.errors import OutputInTheWay

_LISTED = 1_000
_DEPTH = 8


class Files:
    """The file system that a path lies on (`hdfs://`, `s3a://`, plain)."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        """Open the file system that `path` lies on."""
        self.spark = spark
        # PySpark has no file system API; this is the JVM's, which Spark itself uses.
        self._jvm: Any = spark._jvm  # noqa: SLF001 see above
        conf = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 see above
        self._fs = self._path(path).getFileSystem(conf)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        return bool(self._fs.exists(self._path(path)))

    def make(self, path: str) -> None:
        """Make a directory and its parents."""
        self._fs.mkdirs(self._path(path))

    def delete(self, path: str) -> None:
        """Delete a file or a directory with its content, if it exists."""
        self._fs.delete(self._path(path), True)  # noqa: FBT003 a Java method has no keywords

    def data_files(self, path: str) -> list[str]:
        """Sorted names of data files under a path or glob, about 1,000 at most.

        Files and directories whose names start with `_` or `.` are skipped.
        """
        found: list[str] = []
        todo = [(status, 0) for status in self._fs.globStatus(self._path(path)) or ()]
        while todo and len(found) < _LISTED:
            status, depth = todo.pop()
            name = str(status.getPath().getName())
            if depth and name.startswith(("_", ".")):
                continue
            if status.isFile():
                found.append(name)
            elif depth < _DEPTH:
                todo += [(inner, depth + 1) for inner in self._fs.listStatus(status.getPath())]
        return sorted(found)

    def move_all(self, path: str, target: str) -> None:
        """Move everything in a directory to another one, and remove it."""
        for status in self._fs.listStatus(self._path(path)):
            name = str(status.getPath().getName())
            self.rename(f"{path}/{name}", f"{target}/{name}")
        self.delete(path)

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory; never overwrites.

        Raises:
            OutputInTheWay: the new name exists, or the file system failed to rename.
        """
        # Hadoop would move `old` into an existing `new`.
        if self.exists(new) or not self._fs.rename(self._path(old), self._path(new)):
            raise OutputInTheWay(f"{old} cannot become {new}; is another job writing it?")

    def write(self, path: str, text: str) -> None:
        """Write a small text file; replaces an existing one."""
        stream = self._fs.create(self._path(path), True)  # noqa: FBT003 as above
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def read(self, path: str, limit: int = 1 << 16) -> str:
        """The start of a small text file, `limit` bytes at most."""
        stream = self._fs.open(self._path(path))
        try:
            return bytes(stream.readNBytes(limit)).decode("utf-8", errors="replace")
        finally:
            stream.close()
