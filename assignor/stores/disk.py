"""The file operations that a log needs; after a power cut each is either complete or not done.

`FolderDisk` is the implementation for a real directory. Tests pass other implementations, which
simulate a power cut after each byte.
"""

import os
from pathlib import Path
from typing import Final, Protocol

from assignor.stores.errors import StoreError
from assignor.stores.reading import check_links, check_no_link, read_limited
from assignor.stores.replacing import NO_LINK, replace_file, sync_folder

# Without O_NONBLOCK, opening a named pipe waits for its other end.
_APPEND: Final = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | NO_LINK
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class Disk(Protocol):
    """A directory of small files; every method raises `StoreError` if the disk fails."""

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""
        ...

    def read(self, name: str, limit: int) -> bytes:
        """Return all bytes of a file; a file of more than `limit` bytes is an error."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file atomically: a reader sees the old content or the new."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Append to a file durably; if it fails, a part of the bytes may have been written."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file."""
        ...


class FolderDisk:
    """A directory in the file system; the first `replace` creates it.

    Args:
        folder: path of the directory.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def names(self) -> list[str]:
        """Return the names of all files, sorted; empty if the directory does not exist."""
        try:
            with os.scandir(self.folder) as entries:
                return sorted(entry.name for entry in entries if _is_file(entry))
        except FileNotFoundError as error:
            check_links(self.folder, error)
            return []
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be listed: {error.strerror}") from error

    def read(self, name: str, limit: int) -> bytes:
        """Return all bytes of a file.

        Raises:
            StoreError: the file does not exist, is too large, or cannot be read.
        """
        path = self.folder / name
        data = read_limited(path, limit=limit)
        if data is None:
            raise StoreError(f"{path} cannot be read: it does not exist")
        return data

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file atomically and durably.

        Raises:
            StoreError: the file cannot be written.
        """
        replace_file(self.folder / name, data)

    def append(self, name: str, data: bytes) -> None:
        """Append to a file durably.

        Raises:
            StoreError: the file is a symbolic link, or cannot be written; a part of the bytes may
                have been written.
        """
        path = self.folder / name
        check_links(path)
        check_no_link(path)
        try:
            is_new = not path.exists()
            with os.fdopen(os.open(path, _APPEND, 0o666), "ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_folder(self.folder)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error

    def remove(self, name: str) -> None:
        """Remove a file, if it exists.

        Raises:
            StoreError: the file cannot be removed.
        """
        path = self.folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} cannot be removed: {error.strerror}") from error


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file; a dangling symbolic link raises `StoreError`."""
    if entry.is_symlink():
        check_links(Path(entry.path))
    return entry.is_file()
