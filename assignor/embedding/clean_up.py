"""Removing the state of all tasks in a state directory, as `KafkaStreams.cleanUp()` does."""

import shutil
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from assignor.embedding.kept import check_none_kept
from assignor.embedding.process_id import LOCK_NAME, LockedDirectory
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.errors import ConfigError
from assignor.stores import ForeignFile, StoreError
from encoding import TaskId, shown


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTask:
    """What a state directory has of a task.

    Attributes:
        task: the task.
        directory: of the task.
        size: bytes of its files.
    """

    task: TaskId
    directory: Path
    size: int

    def remove(self) -> None:
        """Remove the directory of the task with all that is in it; links are not followed.

        Raises:
            StoreError: something cannot be removed; what was before it is gone.
        """
        try:
            shutil.rmtree(self.directory)
        except OSError as error:
            raise StoreError(
                f"{shown(error.filename or str(self.directory))} cannot be removed: "
                f"{error.strerror or error}; remove {shown(str(self.directory))}"
            ) from error


@contextmanager
def local_tasks(state_dir: Path, changelogs: Collection[str]) -> Iterator[list[LocalTask]]:
    """Yield the tasks of a state directory, sorted, and lock it meanwhile.

    Args:
        state_dir: the directory.
        changelogs: topics that its copies may be of. The others are of another application.

    Raises:
        CopiesKept: copies in the directory are kept for the operator.
        StateDirectoryLocked: a process uses the directory.
        ConfigError: no member of this project has used it, it has a copy of another changelog, a
            file of another program or release, or a link in place of a task's directory.
        StoreError: it cannot be read.
    """
    if not (state_dir / LOCK_NAME).is_file():
        raise ConfigError(
            f"{shown(str(state_dir))} is no state directory of a member of this project; the "
            "directory of a JVM member is removed by KafkaStreams.cleanUp() or by hand"
        )
    with closing(LockedDirectory(state_dir)) as directory:
        check_none_kept(directory.path)
        yield [_look(task, directory.path / str(task), changelogs) for task in directory.tasks()]


def _look(task: TaskId, directory: Path, changelogs: Collection[str]) -> LocalTask:
    size = 0
    try:
        if directory.is_symlink():
            raise ConfigError(f"{shown(str(directory))} is a link; remove it by hand")
        for file in sorted(directory.rglob("*")):
            size += file.lstat().st_size
            if file.suffix == ".db" and file.parent == directory:
                _check_owner(file, changelogs)
    except OSError as error:
        raise StoreError(
            f"{shown(error.filename or str(directory))}: {error.strerror or error}"
        ) from error
    return LocalTask(task=task, directory=directory, size=size)


def _check_owner(file: Path, changelogs: Collection[str]) -> None:
    """Check that a copy is of one of the changelogs; a damaged one may be of any.

    Raises:
        ConfigError: it is of another one, or of another program or release.
    """
    try:
        with closing(SqliteTable(file, None, is_read_only=True)) as table:
            topic = table.changelog.topic
    except ForeignFile as error:
        raise ConfigError(f"{error}; nothing was removed") from error
    except StoreError:
        return
    if topic not in changelogs:
        raise ConfigError(
            f"{shown(str(file))} is a copy of {shown(topic)}, which is not among the topics to "
            "delete: is it the directory of another application?"
        )
