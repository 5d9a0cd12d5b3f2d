"""The few things that a log does to a folder, each one whole or not done after a power cut.

`FolderDisk` is the real one. A log takes any other with the same methods, so that tests cut the
power after each byte of each of them.
"""

import os
from pathlib import Path
from typing import Protocol

from assignor.stores.errors import StoreError
from assignor.stores.reading import check_links, read_limited
from assignor.stores.replacing import replace_file, sync_folder


class Disk(Protocol):
    """A flat folder of small files; every method raises `StoreError` where the disk refuses."""

    def names(self) -> list[str]:
        """Names of all files, sorted."""
        ...

    def read(self, name: str, limit: int) -> bytes:
        """All bytes of a file; more than `limit` are refused."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Put a file there at once: before, after and in between there is the old one or this."""
        ...

    def append(self, name: str, data: bytes) -> None:
        """Add to a file; when this returns the bytes are there for good, before any part may be."""
        ...

    def remove(self, name: str) -> None:
        """Take a file away."""
        ...


class FolderDisk:
    """A folder; made with the first write.

    Args:
        folder: where.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def names(self) -> list[str]:
        """Names of all files, sorted; none where there is no folder."""
        try:
            with os.scandir(self.folder) as entries:
                return sorted(entry.name for entry in entries if _is_file(entry))
        except FileNotFoundError as error:
            check_links(self.folder, error)
            return []
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be listed: {error.strerror}") from error

    def read(self, name: str, limit: int) -> bytes:
        """All bytes of a file.

        Raises:
            StoreError: it is too large, or the disk refused.
        """
        path = self.folder / name
        data = read_limited(path, limit=limit)
        if data is None:
            raise StoreError(f"{path} cannot be read: it does not exist")
        return data

    def replace(self, name: str, data: bytes) -> None:
        """Put a file there at once, surely on the disk.

        Raises:
            StoreError: the disk refused.
        """
        replace_file(self.folder / name, data)

    def append(self, name: str, data: bytes) -> None:
        """Add to a file, surely on the disk.

        Raises:
            StoreError: the disk refused; a part of the bytes may be there.
        """
        path = self.folder / name
        check_links(path)
        try:
            is_new = not path.exists()
            with path.open("ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if is_new:
                sync_folder(self.folder)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror}") from error

    def remove(self, name: str) -> None:
        """Take a file away; where there is none that is done.

        Raises:
            StoreError: the disk refused.
        """
        path = self.folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{path} cannot be removed: {error.strerror}") from error


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a file; a link that leads nowhere is an error, not a gap."""
    if entry.is_symlink():
        check_links(Path(entry.path))
    return entry.is_file()
