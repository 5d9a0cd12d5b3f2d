"""What a process has on disk of a Quix application's state, and how far each copy is.

Quix keeps a RocksDB database for each store and partition, and in it the offset of the last
changelog record that it contains. It leaves the database on disk when a partition is revoked.
"""

import copy
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from quixstreams.state.metadata import METADATA_CF_NAME
from quixstreams.state.rocksdb import RocksDBOptions, RocksDBStore
from quixstreams.state.rocksdb.metadata import CHANGELOG_OFFSET_KEY
from rocksdict import AccessType, Rdict

from assignor.logs import line_logger
from assignor.topology import Subtopology
from encoding import TaskId, TopicPartition

_log = line_logger(__name__)

_OFFSET_BYTES: Final = 8


class QuixState:
    """Copies of an application's stores on this process's disk; callable on any thread.

    Stores in memory and stores without a changelog have no copies: nothing can follow them.

    Args:
        stores: as Quix's state manager has them: stream -> store name -> store.
        changelogs: stream -> store name -> the name of its changelog.
        subtopologies: of the application.

    Attributes:
        subtopologies: as given, by id.
    """

    def __init__(
        self,
        stores: Mapping[str, Mapping[str, Any]],
        changelogs: Mapping[str, Mapping[str, str]],
        subtopologies: Sequence[Subtopology],
    ) -> None:
        self.subtopologies = {part.id: part for part in subtopologies}
        self._by_topic = {t: part.id for part in subtopologies for t in part.source_topics}
        self._by_changelog = {t: part.id for part in subtopologies for t in part.changelog_topics}
        self._stores = {
            changelogs[stream][name]: store
            for stream, by_name in stores.items()
            for name, store in by_name.items()
            if isinstance(store, RocksDBStore) and name in changelogs.get(stream, {})
        }
        self._lock = threading.Lock()
        # Changelog partition -> offset of the next record that the copy needs.
        self._next: dict[TopicPartition, int] = {}

    def tasks(self, partitions: Iterable[TopicPartition]) -> frozenset[TaskId]:
        """Return the tasks of input partitions; other partitions are left out."""
        return frozenset(
            TaskId(self._by_topic[each.topic], each.partition)
            for each in partitions
            if each.topic in self._by_topic
        )

    def is_changelog(self, topic: str | None) -> bool:
        """Return whether a topic is a changelog of the application."""
        return topic in self._by_changelog

    def inputs(self, task: TaskId) -> tuple[TopicPartition, ...]:
        """Return a task's input partitions."""
        topics = self.subtopologies[task.subtopology].source_topics
        return tuple(TopicPartition(topic, task.partition) for topic in topics)

    def changelogs(self, tasks: Iterable[TaskId]) -> tuple[TopicPartition, ...]:
        """Return the changelog partitions of tasks, of all kinds of stores, sorted."""
        return tuple(
            sorted(
                TopicPartition(topic, task.partition)
                for task in tasks
                for topic in self.subtopologies[task.subtopology].changelog_topics
            )
        )

    def copies(self, task: TaskId) -> Mapping[TopicPartition, Any]:
        """Return changelog partition -> a store of Quix's class that produces nothing.

        The store has the files of the application's own store, so only one of the two may have a
        partition open.
        """
        return {
            TopicPartition(topic, task.partition): _silent(self._stores[topic])
            for topic in self.subtopologies[task.subtopology].changelog_topics
            if topic in self._stores
        }

    def offset_sums(self) -> Mapping[TaskId, int]:
        """Return task -> sum of the next changelog offsets of its copies here."""
        sums: dict[TaskId, int] = {}
        with self._lock:
            for partition, following in self._next.items():
                task = TaskId(self._by_changelog[partition.topic], partition.partition)
                sums[task] = sums.get(task, 0) + following
        return sums

    def note(self, partition: TopicPartition, following: int | None) -> None:
        """Remember how far a copy is.

        Args:
            partition: of the changelog.
            following: the next record that the copy needs; None: there is no copy.
        """
        with self._lock:
            if following is None:
                self._next.pop(partition, None)
            else:
                self._next[partition] = following

    def note_open(self, tasks: Iterable[TaskId]) -> None:
        """Remember how far the application's own stores are, while it has them open."""
        for partition in self.changelogs(tasks):
            store = self._stores.get(partition.topic)
            opened = None if store is None else store.partitions.get(partition.partition)
            if opened is not None:
                self.note(partition, following_offset(opened))

    def find(self) -> None:
        """Look for copies of former runs; call it before the application opens any."""
        for changelog, store in sorted(self._stores.items()):
            folder = Path(store._partitions_dir)
            for place in sorted(folder.iterdir()) if folder.is_dir() else ():
                if place.name.isascii() and place.name.isdecimal() and place.is_dir():
                    partition = TopicPartition(changelog, int(place.name))
                    self.note(partition, _following_on_disk(place, store._options))


def following_offset(opened: Any) -> int | None:
    """Return the next changelog offset of an open store partition; None: it has read nothing."""
    offset = opened.get_changelog_offset()
    return None if offset is None else int(offset) + 1


def _silent(store: Any) -> Any:
    """Return a store with the same files and class, without open partitions and producer."""
    silent = copy.copy(store)
    silent._partitions = {}
    silent._changelog_producer_factory = None
    silent._open_deadline = None
    return silent


def _following_on_disk(place: Path, options: Any) -> int | None:
    """Return the next changelog offset of a database that is closed; None: it cannot be used."""
    chosen = (options or RocksDBOptions()).to_options()
    try:
        families = dict.fromkeys(Rdict.list_cf(str(place), chosen), chosen)
        database = Rdict(
            str(place),
            options=chosen,
            column_families=families,
            access_type=AccessType.read_only(error_if_log_file_exist=False),
        )
    except Exception as error:  # noqa: BLE001 rocksdict raises no narrower class
        _log.info("state in %s is not counted: %s", place, error)
        return None
    try:
        if METADATA_CF_NAME not in families:
            return None
        value = database.get_column_family(METADATA_CF_NAME).get(CHANGELOG_OFFSET_KEY)
    finally:
        database.close()
    if not isinstance(value, bytes) or len(value) != _OFFSET_BYTES:
        return None
    return int.from_bytes(value, "big") + 1
