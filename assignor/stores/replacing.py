"""Atomic replacement of a file, by any number of writers in any number of containers.

A writer creates and locks a temporary file beside the target (`.NAME.PID.RANDOM.partial`), syncs it
to the disk and renames it. Readers always see a complete file, the old or the new one; of two
writers the last rename wins. A later writer removes the temporary file of a killed writer when it
is an hour old by the file system's clock and its lock is free. On a disk without locks the age
alone decides; a writer that was suspended for an hour then writes again.
"""

import errno
import os
import re
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from assignor.stores.errors import StoreError
from assignor.stores.reading import check_links, check_no_link

if sys.platform != "win32":
    import fcntl

PARTIAL: Final = ".partial"
"""Suffix of a temporary file."""

LEFTOVER_S: Final = 3600
"""Age in seconds from which a temporary file may be removed."""

NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
"""Flag of `os.open`: a symbolic link is an error, also one that appears after a check."""

_ATTEMPTS: Final = 3
_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically and durably; its directory is created if needed.

    Its permissions stay; a new file has those that the umask allows.

    Raises:
        StoreError: the file cannot be written, is a symbolic link, or the path has a dangling one.
    """
    try:
        check_links(path)
        check_no_link(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(_ATTEMPTS):
            try:
                _replace(path, data)
                break
            except FileNotFoundError:
                # A writer that was suspended for an hour, on a disk without locks.
                if attempt == _ATTEMPTS - 1:
                    raise
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def sync_folder(folder: Path) -> None:
    """Sync a directory to the disk; only then is the name of a new file durable."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _replace(target: Path, data: bytes) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(8)}{PARTIAL}")
    kept = _permissions(target)
    try:
        with os.fdopen(os.open(partial, _CREATE, 0o666 if kept is None else 0o600), "wb") as file:
            if kept is not None and sys.platform != "win32":
                os.fchmod(file.fileno(), kept)
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


def _permissions(path: Path) -> int | None:
    """Return the permissions of a file; None if there is none."""
    try:
        return stat.S_IMODE(path.lstat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def _remove_leftovers(target: Path, *, before_s: float) -> None:
    """Remove old temporary files of one target that no running writer has locked."""
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9]+(\.[0-9a-f]{{16}})?{re.escape(PARTIAL)}")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if not name.fullmatch(entry.name) or not entry.is_file(follow_symlinks=False):
                continue
            # Check the age first: trying the lock would disturb a writer that has just started.
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime < before_s:
                    _remove_unheld(Path(entry.path))


def _remove_unheld(path: Path) -> None:
    """Remove a temporary file unless a running writer has locked it.

    Raises:
        OSError: the file does not exist any more, or cannot be opened or removed.
    """
    descriptor = os.open(path, os.O_RDWR | NO_LINK | getattr(os, "O_CLOEXEC", 0))
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
    """Lock an open file until its descriptor is closed or the process ends.

    Raises:
        OSError: another process has the lock, or the file system has no locks.
    """
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
