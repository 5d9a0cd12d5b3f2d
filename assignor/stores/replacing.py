"""Replacing a file at once, by any number of writers, in any number of containers.

A writer fills a file of its own beside the target (`.NAME.PID.RANDOM.partial`, created exclusively
and locked), puts it on the disk and renames it. Readers see the old file or a new one, always
whole; of two writers the one that renames last wins. What a killed writer left is removed by a
later one, when it is an hour old by the file system's clock and its lock is free (on a disk without
locks: when it is an hour old; a writer that was suspended for so long writes again).
"""

import errno
import os
import re
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from assignor.stores.errors import StoreError
from assignor.stores.reading import check_links

if sys.platform != "win32":
    import fcntl

PARTIAL: Final = ".partial"
"""Last part of the name of a file that is not whole yet."""

LEFTOVER_S: Final = 3600
"""Age in seconds from which an unfinished file may be removed."""

_ATTEMPTS: Final = 3
_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def replace_file(path: Path, data: bytes) -> None:
    """Put bytes in place of a file at once; when this returns, they are on the disk.

    A symbolic link is followed: what it points to is replaced, and the link stays.

    Raises:
        StoreError: the disk refused, or the path is a link that leads nowhere.
    """
    try:
        check_links(path)
        target = path.resolve() if path.is_symlink() else path
        target.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(_ATTEMPTS):
            try:
                _replace(target, data)
                break
            except FileNotFoundError:
                # A writer that was suspended for an hour, on a disk without locks.
                if attempt == _ATTEMPTS - 1:
                    raise
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk: a new file is there only when its name is."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _replace(target: Path, data: bytes) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(8)}{PARTIAL}")
    try:
        with os.fdopen(os.open(partial, _CREATE, 0o666), "wb") as file:
            with suppress(OSError):  # a disk without locks; then only age protects the file
                _lock(file.fileno())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            written_s = os.fstat(file.fileno()).st_mtime
            partial.replace(target)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)
    _remove_leftovers(target, before_s=written_s - LEFTOVER_S)


def _remove_leftovers(target: Path, *, before_s: float) -> None:
    """Remove old unfinished files of one target that no living writer holds."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9]+(\.[0-9a-f]{{16}})?{re.escape(PARTIAL)}")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if not name.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                continue
            # First its age: a lock that is tried would be in the way of a writer that begins.
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < before_s:
                    _remove_unheld(Path(entry.path))


def _remove_unheld(path: Path) -> None:
    """Remove an unfinished file unless a living writer holds its lock.

    Raises:
        OSError: a writer holds it, or it is gone.
    """
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    try:
        try:
            _lock(descriptor)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        path.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Take the lock of an opened file; it ends with the descriptor, or with the process.

    Raises:
        OSError: somebody else holds it, or the disk knows no locks.
    """
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
