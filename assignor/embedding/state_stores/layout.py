"""Which stores a task has, and which task has a store or reads a topic: from the topology."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from assignor.config import STATE_DIR_KIND, check_kind, refused
from assignor.embedding.state_stores.stores import StateStore
from assignor.errors import TopologyError
from assignor.option_fields import Kind, number
from assignor.topology import Topology
from encoding import TaskId, shown

AnyStore = StateStore[Any, Any]

_SECONDS: Final = number("seconds, 0 or more", lambda value: value >= 0)
_SETTINGS: Final[Mapping[str, Kind]] = {
    "state_dir": STATE_DIR_KIND,
    "restore_s": _SECONDS,
    "cleanup_delay_s": _SECONDS,
    "delete_retention_ms": number("milliseconds, 0 or more", lambda value: value >= 0),
}


def check_settings(**settings: object) -> None:
    """Check settings of `TaskStores`.

    Raises:
        ConfigError: a value is wrong; the message says what to give.
    """
    for name, value in settings.items():
        check_kind(name, value, _SETTINGS[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreLayout:
    """The stores of an application.

    Attributes:
        stores: store -> its declaration.
        changelogs: store -> its changelog topic.
        subtopologies: store -> number of its subtopology.
        readers: source topic -> number of the subtopology that reads it.
        expiring: stores whose changelogs lose old records, not only those of older values.
    """

    stores: Mapping[str, AnyStore]
    changelogs: Mapping[str, str]
    subtopologies: Mapping[str, int]
    readers: Mapping[str, int]
    expiring: frozenset[str]

    def stores_of(self, task: TaskId) -> Mapping[str, AnyStore]:
        """Return the stores of a task, by name."""
        return {
            name: store
            for name, store in self.stores.items()
            if self.subtopologies[name] == task.subtopology
        }

    def task_of_input(self, topic: str, partition: int) -> TaskId:
        """Return the task that reads a partition.

        Raises:
            TopologyError: no source reads the topic.
        """
        if topic not in self.readers:
            raise TopologyError(
                f"no source of the topology reads topic {topic!r}; subscribe to source_topics()"
            )
        return TaskId(self.readers[topic], partition)

    def task_of_store(self, store: AnyStore, partition: int) -> TaskId:
        """Return the task that has a partition of a store.

        Raises:
            TopologyError: the store was not given.
        """
        return TaskId(self.subtopologies[self.checked(store)], partition)

    def checked(self, store: AnyStore) -> str:
        """Return the name of a store that was given.

        Raises:
            TopologyError: the store was not given.
            TypeError: this is no store.
        """
        _check_kind(store)
        if self.stores.get(store.name) != store:
            listed = ", ".join(sorted(self.stores)) or "none"
            raise TopologyError(
                f"{store.name!r} is not among the given stores ({listed}); add it to `stores`"
            )
        return store.name


def store_layout(
    topology: Topology, application_id: str, stores: Sequence[AnyStore], *, expires: bool
) -> StoreLayout:
    """Return the layout of an application's stores.

    Args:
        topology: of the application.
        application_id: prefix of its changelogs.
        stores: those of the topology that are kept here.
        expires: the changelogs of all stores lose old records, not only those of windowed ones.

    Raises:
        TopologyError: a store is given twice, is not in the topology, or has no changelog of its
            own.
        ConfigError: this is no topology.
        TypeError: a value is no store.
    """
    check_kinds(topology, stores)
    parts = topology.subtopologies(application_id)
    windowed = {topic for part in parts for topic, _ in part.changelog_retention_ms}
    changelogs, subtopologies = {}, {}
    for store in stores:
        changelog = f"{application_id}-{store.name}-changelog"
        topology.store_topics(store.name, application_id)
        own = [p.id for p in parts if changelog in {*p.changelog_topics} - {*p.source_changelogs}]
        if store.name in changelogs:
            raise TopologyError(f"state store {store.name!r} is given twice; remove one")
        if not own:
            raise TopologyError(
                f"state store {store.name!r} has no changelog of its own (logged=False, or "
                "source_topic=), so its state cannot be restored here; remove that option"
            )
        changelogs[store.name], subtopologies[store.name] = changelog, own[0]
    return StoreLayout(
        stores={store.name: store for store in stores},
        changelogs=changelogs,
        subtopologies=subtopologies,
        readers={topic: part.id for part in parts for topic in part.source_topics},
        expiring=frozenset(n for n, topic in changelogs.items() if expires or topic in windowed),
    )


def check_kinds(topology: object, stores: object) -> None:
    """Check that this is a topology, and that all values are stores.

    Raises:
        ConfigError: this is no topology.
        TypeError: a value is no store.
    """
    if not isinstance(topology, Topology):
        raise refused("topology", topology, "an assignor.Topology")
    if isinstance(stores, StateStore):
        raise TypeError(f"stores is one store, {stores.name!r}; give a list of stores")
    if not isinstance(stores, Iterable):
        raise TypeError(f"stores is {shown(repr(stores), limit=80)}; give a list of stores")
    for store in stores:
        _check_kind(store)


def _check_kind(store: object) -> None:
    if not isinstance(store, StateStore):
        raise TypeError(
            f"{shown(repr(store), limit=80)} is of type {type(store).__name__}, no state store; "
            "make one, such as COUNTS = SqliteStore('counts', key=TEXT, value=JSON), give it in "
            "stores=[COUNTS], and use it as state[COUNTS]"
        )
