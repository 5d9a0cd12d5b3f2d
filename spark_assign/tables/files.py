"""File operations on any Hadoop file system, for reading inputs and committing outputs."""

import re
from collections.abc import Callable, Iterable
from functools import wraps
from glob import iglob
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from encoding import shown
from spark_assign.tables.errors import BadTable, OutputInTheWay

_LISTED = 1_000
_SIZED = 5_000
_DEPTH = 8
_BUFFER = 1 << 16
_LONGEST = 2**31 - 1
_BREAK = b"\n"
# Exceptions of Java, by the ends of their names, that a wrong path causes.
_WRONG_PATH = (
    "IllegalArgumentException",
    "PatternSyntaxException",
    "UnsupportedFileSystemException",
    "URISyntaxException",
)
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _named(
    method: Callable[Concatenate["Files", str, _P], _T],
) -> Callable[Concatenate["Files", str, _P], _T]:
    """Let errors of Hadoop name the path, which is the first argument of a method.

    Raises:
        BadTable: the text is no path, or of a file system that Spark does not know.
        OSError: the file system failed.
    """

    @wraps(method)
    def checked(self: "Files", path: str, /, *others: _P.args, **more: _P.kwargs) -> _T:
        try:
            return method(self, path, *others, **more)
        except IllegalArgumentException as error:  # PySpark translates this one
            raise _wrong(path, *str(error).splitlines()[:1]) from None
        except Py4JJavaError as error:
            kind, text = _innermost(error.java_exception)
            if kind.endswith(_WRONG_PATH):
                raise _wrong(path, text) from None
            raise OSError(0, f"{kind}: {text}", shown(path)) from None

    return checked


def _innermost(raised: Any) -> tuple[str, str]:
    """The class of the first cause of an exception of Java, and its text on one line."""
    for _ in range(_DEPTH):
        cause = raised.getCause()
        if cause is None:
            break
        raised = cause
    return str(raised.getClass().getSimpleName()), shown(str(raised.getMessage()))


def _wrong(path: str, *text: str) -> BadTable:
    why = shown("".join(text).removeprefix("java.net."))
    return BadTable(f"{shown(repr(path))} is no path that Spark can open: {why}")


class Files:
    """The file system that a path lies on (`hdfs://`, `s3a://`, plain)."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        """Open the file system that `path` lies on.

        Raises:
            BadTable: the text is no path, or of a file system that Spark does not know.
            OSError: the file system cannot be reached.
        """
        self.spark = spark
        # PySpark has no file system API; this is the JVM's, which Spark itself uses.
        self._jvm: Any = spark._jvm  # noqa: SLF001 see above
        self._fs = self._file_system(path)

    @_named
    def _file_system(self, path: str) -> Any:
        conf = self.spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 as above
        return self._path(path).getFileSystem(conf)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    @_named
    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        return bool(self._fs.exists(self._path(path)))

    def is_within(self, path: str, folder: str) -> bool:
        """Whether a path is a directory, or lies in it; a glob is the directory that it is in."""
        fixed, *rest = re.split(r"[\[{}*?]", path, maxsplit=1)
        if rest:
            above, slash, _ = fixed.rpartition("/")
            fixed = above or slash or "."
        inner, outer = (self._whole(each) for each in (fixed, folder))
        return f"{inner}/".startswith(f"{outer}/")

    def _whole(self, path: str) -> str:
        # Of its own file system: input and output may lie on two.
        uri = self._file_system(path).makeQualified(self._path(path)).toUri().normalize()
        return f"{uri.getScheme()}://{uri.getAuthority() or ''}{uri.getPath()}".rstrip("/")

    @_named
    def is_empty(self, path: str) -> bool:
        """Whether a path is a directory without anything in it."""
        status = self._fs.getFileStatus(self._path(path))
        return bool(status.isDirectory()) and not len(self._fs.listStatus(self._path(path)))

    @_named
    def make(self, path: str) -> None:
        """Make a directory and its parents."""
        self._fs.mkdirs(self._path(path))

    @_named
    def delete(self, path: str) -> None:
        """Delete a file or a directory with its content, if it exists."""
        self._fs.delete(self._path(path), True)  # noqa: FBT003 a Java method has no keywords

    def data_files(self, path: str) -> list[str]:
        """Sorted names of data files under a path or glob, about 1,000 at most.

        Files and directories whose names start with `_` or `.` are skipped.

        Raises:
            BadTable: there is a link to a file that does not exist.
        """
        return sorted(str(status.getPath().getName()) for status in self._data(path, _LISTED))

    def data_sizes(self, path: str) -> dict[str, int] | None:
        """Bytes of the data files under a path or glob, by their paths; None for over 5,000 files.

        Raises:
            BadTable: there is a link to a file that does not exist.
        """
        found = self._data(path, _SIZED + 1)
        if len(found) > _SIZED:
            return None
        return {str(status.getPath()): int(status.getLen()) for status in found}

    @_named
    def _data(self, path: str, most: int) -> list[Any]:
        found: list[Any] = []
        is_local = str(self._fs.getUri().getScheme()) == "file"
        if is_local:
            own_path = str(self._path(path).toUri().getPath())
            # `Path.glob` takes no absolute pattern.
            _check_links(map(Path, iglob(own_path)))  # noqa: PTH207 see above
        todo = [(status, 0) for status in self._fs.globStatus(self._path(path)) or ()]
        while todo and len(found) < most:
            status, depth = todo.pop()
            if depth and str(status.getPath().getName()).startswith(("_", ".")):
                continue
            if status.isFile():
                found.append(status)
            elif depth < _DEPTH:
                if is_local:
                    folder = Path(str(status.getPath().toUri().getPath()))
                    _check_links(sorted(folder.iterdir()))
                todo += [(inner, depth + 1) for inner in self._fs.listStatus(status.getPath())]
        return found

    def move_all(self, path: str, target: str) -> None:
        """Move everything in a directory to another one, and remove it."""
        for status in self._fs.listStatus(self._path(path)):
            name = str(status.getPath().getName())
            self.rename(f"{path}/{name}", f"{target}/{name}")
        self.delete(path)

    @_named
    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory; never overwrites.

        Raises:
            OutputInTheWay: the new name exists, or the file system failed to rename.
        """
        # Hadoop would move `old` into an existing `new`.
        if self.exists(new) or not self._fs.rename(self._path(old), self._path(new)):
            raise OutputInTheWay(f"{old} cannot become {new}; is another job writing it?")

    @_named
    def write(self, path: str, text: str) -> None:
        """Write a small text file; replaces an existing one."""
        stream = self._fs.create(self._path(path), True)  # noqa: FBT003 as above
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def read(self, path: str, limit: int = 1 << 16) -> str:
        """The start of a small text file, `limit` bytes at most."""
        return self.head(path, limit).decode("utf-8", errors="replace")

    @_named
    def head(self, path: str, size: int) -> bytes:
        """The first bytes of a file, at most `size`."""
        stream = self._fs.open(self._path(path))
        try:
            return bytes(stream.readNBytes(size))
        finally:
            stream.close()

    @_named
    def lines_of(self, path: str) -> "Lines":
        """Open a text file; close it."""
        return Lines(self._fs.open(self._path(path)), self._jvm)


def literal_path(path: str) -> str:
    """A path for readers that take globs, which finds this file only."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


class Lines:
    """Where the lines of an open file begin and end; the JVM passes none of them to Python."""

    def __init__(self, stream: Any, jvm: Any) -> None:
        """Take a stream of Hadoop that can seek."""
        self._stream, self._jvm = stream, jvm

    def end(self, at: int, most: int = _LONGEST) -> int:
        """Where the line ends that a byte is in, behind its line break.

        Args:
            at: the byte.
            most: stop after so many bytes, and some more.
        """
        self._stream.seek(at)
        hadoop = self._jvm.org.apache.hadoop
        reader = hadoop.util.LineReader(self._stream, _BUFFER, bytearray(_BREAK))
        return at + int(reader.readLine(hadoop.io.Text(), 0, most))

    def start(self, at: int) -> int:
        """Where the line begins that a byte is in."""
        while at > 0:
            low = max(0, at - _BUFFER)
            self._stream.seek(low)
            before = bytes(self._stream.readNBytes(at - low))
            found = before.rfind(_BREAK)
            if found >= 0:
                return low + found + 1
            at = low
        return 0

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _check_links(paths: Iterable[Path]) -> None:
    """Refuse a local link to a file that does not exist: Hadoop lists a directory without it.

    Raises:
        BadTable: a path is such a link.
    """
    for path in paths:
        is_data = not path.name.startswith(("_", "."))
        if is_data and path.is_symlink() and not path.exists():
            raise BadTable(
                f"{shown(str(path), limit=None)} is a link to "
                f"{shown(str(path.readlink()), limit=None)}, which does not exist; "
                "restore that file, or delete the link"
            )
