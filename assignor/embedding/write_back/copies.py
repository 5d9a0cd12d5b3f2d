"""The copies of tasks that are kept in a state directory."""

import heapq
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from assignor.embedding.kept import kept_notes, notes_of_task, read_note
from assignor.embedding.process_id import LockedDirectory
from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    NO_COMMIT,
    Commit,
    Owner,
    read_commit,
)
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import StateTable, has_whole_task
from assignor.stores import StoreError
from encoding import TaskId, TopicPartition, shown

_SUFFIX = ".db"


class KeptStore:
    """The copy of one store.

    Args:
        table: the copy, open.
        changelog: the partition that it is a copy of.
        file: of the table; None: the table is what the changelog has.

    Attributes:
        table, changelog, file: as given.
        commit: the last commit record of which the copy has the effect, but for its writes.
        writes: of commits, which the copy may not have.
    """

    def __init__(self, table: StateTable, changelog: TopicPartition, file: Path | None) -> None:
        self.table, self.changelog, self.file = table, changelog, file
        name = f"the last commit of {table.place}"
        self.commit = read_commit(table.progress.commit, name=name)
        self.writes: dict[bytes, bytes | None] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key with the writes of the commits; None without one."""
        return self.writes[key] if key in self.writes else self.table.get(key)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries with the writes of the commits, by key."""
        own = ((k, v) for k, v in sorted(self.writes.items()) if v is not None)
        return heapq.merge(((k, v) for k, v in self.table.items() if k not in self.writes), own)


@dataclass(kw_only=True)
class KeptTask:
    """A task whose copies are kept.

    Attributes:
        task: the task.
        application_id: the group id.
        stores: store -> its copy here.
        missing: store of the task without a copy here -> its changelog.
        topics: topics that the task reads, as far as they are known.
        why: the note.
        problem: why the copies cannot be written back; "": they can be.
    """

    task: TaskId
    directory: Path
    application_id: str = ""
    stores: dict[str, KeptStore] = field(default_factory=dict)
    missing: Mapping[str, TopicPartition] = field(default_factory=dict)
    topics: frozenset[str] = frozenset()
    why: str = ""
    problem: str = ""

    @property
    def owner(self) -> Owner:
        """The last owner of the task whose records the copies have."""
        return max(store.table.progress.owner for store in self.stores.values())

    @property
    def commit(self) -> Commit:
        """The last commit of the task."""
        commits = (store.commit for store in self.stores.values())
        return max(commits, key=lambda commit: commit.order, default=NO_COMMIT)

    def overlay(self) -> None:
        """Complete each copy: the last commits may not have become writes of all of them."""
        last = self.commit.writes
        for name, store in self.stores.items():
            store.writes = {**store.commit.writes.get(name, {}), **last.get(name, {})}
            store.writes.pop(COMMIT_KEY, None)


@contextmanager
def open_kept(state_dir: Path, *, is_read_only: bool = False) -> Iterator[list[KeptTask]]:
    """Yield the tasks of a state directory that have notes; close their copies afterwards.

    A task that cannot be read has a `problem`.

    Args:
        state_dir: the directory.
        is_read_only: the copies are not written.

    Raises:
        StateDirectoryLocked: a process uses the directory.
        StoreError: it cannot be locked.
    """
    with ExitStack() as opened:
        directory = opened.enter_context(closing(LockedDirectory(state_dir)))
        noted = {note.parent.name for note in kept_notes(directory.path)}
        yield [
            _open(task, directory.path / str(task), opened, is_read_only=is_read_only)
            for task in directory.tasks()
            if str(task) in noted
        ]


def _open(task: TaskId, directory: Path, opened: ExitStack, *, is_read_only: bool) -> KeptTask:
    found = KeptTask(task=task, directory=directory)
    try:
        for file in sorted(directory.glob(f"*{_SUFFIX}")):
            table = SqliteTable(file, None, is_read_only=is_read_only)
            opened.callback(table.close)
            found.stores[file.stem] = KeptStore(table, table.changelog, file)
        _describe(found)
        found.problem = _problem(found)
        found.overlay()
    except StoreError as error:
        found.problem = str(error)
    return found


def _describe(found: KeptTask) -> None:
    """Set what the changelogs and the notes say about a task.

    Raises:
        StoreError: there is no copy, or a copy is not of this task.
    """
    if not found.stores:
        raise StoreError(
            f"{found.directory} has notes and no copy: what was kept is gone; delete the directory,"
            " and set the offsets of the group back"
        )
    ids = set()
    for name, store in found.stores.items():
        topic, partition = store.changelog
        ids.add(topic.removesuffix(f"-{name}-changelog"))
        if not topic.endswith(f"-{name}-changelog") or partition != found.task.partition:
            raise StoreError(
                f"{store.file} is a copy of {shown(topic)}-{partition}, which is no changelog of "
                f"store {name} of task {found.task}; move the file to where it belongs"
            )
    if len(ids) > 1:
        raise StoreError(f"{found.directory} has copies of several applications: {sorted(ids)}")
    [found.application_id] = ids
    stores, topics = set[str](), {topic for topic, _ in found.commit.inputs}
    for note in notes_of_task(found.directory):
        try:
            noted = read_note(note)
        except StoreError:  # the copies are all the same what they are
            continue
        found.why = found.why or noted.why
        stores.update(noted.stores)
        topics.update(noted.topics)
    found.topics = frozenset(topics | found.commit.topic_ids.keys())
    found.missing = {
        name: TopicPartition(f"{found.application_id}-{name}-changelog", found.task.partition)
        for name in sorted(stores - found.stores.keys())
    }


def _problem(found: KeptTask) -> str:
    """Return why the copies do not have the whole state of their task at one moment."""
    stores = found.stores
    if not has_whole_task(store.table for store in stores.values()):
        return f"the copies in {found.directory} never had the whole state of the task"
    if not found.topics:
        return f"the copies in {found.directory} name no input topic; nothing was processed"
    behind = [n for n, store in stores.items() if not is_next_to(store.commit, found.commit)]
    if behind:
        return (
            f"of the copies in {found.directory}, {', '.join(behind)} lacks commits that others "
            f"have: it has {stores[behind[0]].commit.number}, the others {found.commit.number}; if "
            "the topology has no such store any more, move the file away"
        )
    return ""


def is_next_to(commit: Commit, last: Commit) -> bool:
    """Return whether a copy with a commit can be completed to the last commit of its task."""
    return commit.order == last.order or (
        commit.order < last.order and last.number - commit.number == 1
    )
