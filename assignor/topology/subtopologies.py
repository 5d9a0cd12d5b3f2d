"""The topology builder, and the derivation of subtopologies from processing nodes.

A subtopology is a connected component of the graph of nodes. Two nodes are connected if one is the
parent of the other or if they use the same state store; topics do not connect nodes. Subtopologies
are numbered as in Kafka Streams, by their smallest source node name, so that Python and JVM members
of one application agree if they use the same node names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from assignor.errors import TopologyError
from assignor.topology.values import HIGHEST_VERSION, RepartitionTopic, Subtopology, is_topic_name
from encoding import shown


@dataclass(slots=True)
class _Store:
    name: str
    processors: tuple[str, ...]
    logged: bool
    source_topic: str | None
    retention_ms: int | None
    changelog_topic: str | None

    def changelog(self, application_id: str) -> str:
        """Return the changelog's full name; not for a store whose source topic serves as one."""
        return self.changelog_topic or f"{application_id}-{self.name}-changelog"


def _names(given: Iterable[str], *, node: str) -> tuple[str, ...]:
    """Return names as they were given; a string, which has letters, is refused."""
    if isinstance(given, str):
        raise TopologyError(f"{node!r} is given {given!r}, one string; give a list: [{given!r}]")
    return tuple(given)


@dataclass(slots=True)
class Topology:
    """Builder of a processing topology, with the terms of Kafka Streams' `Topology`.

    Add nodes after their parents. Methods that add something return the topology, for chaining.

    >>> topology = (
    ...     Topology()
    ...     .add_source("lines", topics=["lines"])
    ...     .add_processor("count", parents=["lines"])
    ...     .add_state_store("counts", processors=["count"])
    ... )
    >>> [s.changelog_topics for s in topology.subtopologies("word-count")]
    [('word-count-counts-changelog',)]

    Attributes:
        version: of the application's topology, from 1. Give each changed topology a higher one, so
            that a group can change from one to the other by a rolling bounce.

    Raises:
        TopologyError: the version is not a whole number from 1 to 2**31 - 1.
    """

    version: int = 1
    _nodes: dict[str, None] = field(init=False, default_factory=dict)
    _edges: list[tuple[str, str]] = field(init=False, default_factory=list)
    _topics_by_source: dict[str, tuple[str, ...]] = field(init=False, default_factory=dict)
    _topic_by_sink: dict[str, str] = field(init=False, default_factory=dict)
    _stores: dict[str, _Store] = field(init=False, default_factory=dict)
    _repartition: dict[str, int | None] = field(init=False, default_factory=dict)
    _copartitioned: list[tuple[str, ...]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        if type(self.version) is not int or not 1 <= self.version <= HIGHEST_VERSION:
            raise TopologyError(
                f"version={shown(repr(self.version))} of a topology is refused; give a whole number"
                f" from 1 to {HIGHEST_VERSION}"
            )

    def add_source(self, name: str, *, topics: Iterable[str]) -> "Topology":
        """Add a node that reads `topics`.

        Raises:
            TopologyError: the name is used, no topic is given, or another source reads a topic.
        """
        names = _names(topics, node=name)
        if not names:
            raise TopologyError(f"source {name!r} reads no topic; give it at least one")
        for topic in names:
            self._check_topic(topic, node=name)
            for other, read in self._topics_by_source.items():
                if topic in read:
                    raise TopologyError(
                        f"source {other!r} already reads topic {topic!r}; use {other!r} as the "
                        f"parent instead of adding {name!r}"
                    )
        self._add_node(name)
        self._topics_by_source[name] = names
        return self

    def add_processor(self, name: str, *, parents: Iterable[str]) -> "Topology":
        """Add a node that processes what its parents forward.

        Raises:
            TopologyError: the name is used, or a parent is missing, unknown or a sink.
        """
        self._add_child(name, _names(parents, node=name))
        return self

    def add_sink(self, name: str, *, topic: str, parents: Iterable[str]) -> "Topology":
        """Add a node that writes to `topic`; give a repartition topic's short name.

        Raises:
            TopologyError: as in `add_processor`, or the topic name is invalid.
        """
        self._check_topic(topic, node=name)
        self._add_child(name, _names(parents, node=name))
        self._topic_by_sink[name] = topic
        return self

    def add_repartition_topic(self, name: str, *, partitions: int | None = None) -> "Topology":
        """Declare an internal topic that sinks write and sources read.

        Its full name is `<application id>-<name>-repartition`. Without `partitions` it gets the
        largest partition count of its upstream topics.

        Raises:
            TopologyError: the name is declared twice, or `partitions` is below 1.
        """
        self._check_topic(name, node=name)
        if name in self._repartition:
            raise TopologyError(f"repartition topic {name!r} is declared twice; remove one")
        if partitions is not None and partitions < 1:
            raise TopologyError(
                f"repartition topic {name!r} has {partitions} partitions; give 1 or more"
            )
        self._repartition[name] = partitions
        return self

    def add_state_store(
        self,
        name: str,
        *,
        processors: Iterable[str],
        logged: bool = True,
        source_topic: str | None = None,
        retention_ms: int | None = None,
        changelog_topic: str | None = None,
    ) -> "Topology":
        """Add a state store that the given processors share.

        Args:
            name: name of the store; its changelog is `<application id>-<name>-changelog`.
            processors: nodes that use the store; they become one subtopology.
            logged: whether the store has a changelog, which makes its tasks stateful.
            source_topic: a source topic that serves as the changelog (an optimised table).
            retention_ms: retention of a windowed store; older windows may be deleted.
            changelog_topic: full name of the changelog, where another program named it. Kafka
                Streams members cannot share such a topology.

        Raises:
            TopologyError: the name is used, or cannot be part of its changelog's; no processor is
                given; a processor is unknown, a source or a sink; the retention is below 1 ms; or
                `changelog_topic` is invalid or given beside `source_topic`.
        """
        if not isinstance(name, str) or not name:
            raise TopologyError(f"state store {shown(repr(name))} has no name; give a text")
        users = _names(processors, node=name)
        if name in self._stores:
            raise TopologyError(f"state store {name!r} is added twice; remove one")
        if logged and changelog_topic is None and source_topic is None:
            self._check_topic(f"{name}-changelog", node=name)
        if not users:
            raise TopologyError(f"state store {name!r} has no processor; connect it to one")
        if retention_ms is not None and retention_ms < 1:
            raise TopologyError(
                f"state store {name!r} has a retention of {retention_ms} ms; give 1 or more"
            )
        for processor in users:
            is_plain = processor in self._nodes and processor not in self._topics_by_source
            if not is_plain or processor in self._topic_by_sink:
                raise TopologyError(
                    f"state store {name!r} is connected to {processor!r}, which is not a processor "
                    "of this topology; add the processor first"
                )
        if changelog_topic is not None:
            self._check_topic(changelog_topic, node=name)
            if source_topic is not None:
                raise TopologyError(
                    f"state store {name!r} has changelog_topic={changelog_topic!r} and "
                    f"source_topic={source_topic!r}; give one of them"
                )
        self._stores[name] = _Store(
            name, users, logged, source_topic, retention_ms, changelog_topic
        )
        self._edges += pairwise(users)
        return self

    def copartition(self, *topics: str) -> "Topology":
        """Require equal partition counts of topics that are joined with each other.

        Raises:
            TopologyError: fewer than two topics.
        """
        if len(set(topics)) < 2:  # noqa: PLR2004 a pair is the least that can agree
            raise TopologyError("a copartition group needs at least two topics")
        self._copartitioned.append(tuple(sorted(set(topics))))
        return self

    def subtopologies(self, application_id: str) -> tuple[Subtopology, ...]:
        """Return the subtopologies, numbered as in Kafka Streams.

        Raises:
            TopologyError: there is no source, no source reads a copartitioned topic, or different
                subtopologies read the topics of one copartition group.
        """
        if not self._topics_by_source:
            raise TopologyError("the topology has no source; add one with add_source")
        node_sets = self._components()
        first_source = {
            part: min(node for node in part if node in self._topics_by_source) for part in node_sets
        }
        ordered = sorted(node_sets, key=first_source.__getitem__)
        self._check_copartitioned(node_sets)
        return tuple(self._subtopology(i, part, application_id) for i, part in enumerate(ordered))

    def source_topics(self, application_id: str) -> tuple[str, ...]:
        """Return every topic that a member subscribes to, sorted, including internal topics."""
        parts = self.subtopologies(application_id)
        return tuple(sorted({topic for part in parts for topic in part.source_topics}))

    def logged_stores(self) -> tuple[str, ...]:
        """Return the names of state stores with a changelog named after them, sorted."""
        found = self._stores.values()
        return tuple(
            sorted(s.name for s in found if s.logged and not (s.source_topic or s.changelog_topic))
        )

    def store_topics(self, store: str, application_id: str) -> tuple[str, ...]:
        """Return the source topics of a state store's subtopology, sorted.

        Raises:
            TopologyError: there is no store with this name.
        """
        known = self._stores.get(store)
        if known is None:
            listed = ", ".join(sorted(self._stores)) or "none"
            raise TopologyError(f"there is no state store {store!r}; choose from {listed}")
        parts = self.subtopologies(application_id)
        [topics] = [part.source_topics for part in parts if known.processors[0] in part.nodes]
        return topics

    def _subtopology(self, index: int, nodes: frozenset[str], application_id: str) -> Subtopology:
        full = self._full_names(application_id)
        declared = [t for n in nodes for t in self._topics_by_source.get(n, ())]
        written = [self._topic_by_sink[n] for n in nodes if n in self._topic_by_sink]
        stores = [s for s in self._stores.values() if s.logged and s.processors[0] in nodes]
        changelogs = {
            full.get(s.source_topic, s.source_topic)
            if s.source_topic
            else s.changelog(application_id)
            for s in stores
        }
        sources = {full.get(t, t) for t in declared}
        return Subtopology(
            id=index,
            nodes=tuple(sorted(nodes)),
            source_topics=tuple(sorted(sources)),
            sink_topics=tuple(sorted(full.get(t, t) for t in written)),
            repartition_topics=tuple(
                RepartitionTopic(name=full[t], partitions=self._repartition[t])
                for t in sorted(declared)
                if t in self._repartition
            ),
            changelog_topics=tuple(sorted(changelogs)),
            source_changelogs=tuple(sorted(changelogs & sources)),
            copartition_groups=tuple(
                tuple(sorted(full.get(t, t) for t in group))
                for group in sorted(self._copartitioned)
                if set(group) <= set(declared)
            ),
            changelog_retention_ms=tuple(
                sorted(
                    (s.changelog(application_id), s.retention_ms)
                    for s in stores
                    if s.retention_ms is not None and not s.source_topic
                )
            ),
        )

    def _full_names(self, application_id: str) -> Mapping[str, str]:
        return {name: f"{application_id}-{name}-repartition" for name in self._repartition}

    def _components(self) -> set[frozenset[str]]:
        # Not by networkx: every member would load it, in a fifth of a second, for nothing else.
        component = {node: frozenset({node}) for node in self._nodes}
        for parent, child in self._edges:
            if component[parent] is not component[child]:
                joined = component[parent] | component[child]
                component |= dict.fromkeys(joined, joined)
        return set(component.values())

    def _check_copartitioned(self, node_sets: set[frozenset[str]]) -> None:
        for group in self._copartitioned:
            readers = {
                source: topics
                for source, topics in self._topics_by_source.items()
                if set(topics) & set(group)
            }
            read = {t for topics in readers.values() for t in topics}
            unread = sorted(set(group) - read)
            if unread:
                raise TopologyError(
                    f"no source reads the copartitioned topics {', '.join(unread)}; add one"
                )
            parts = [part for part in node_sets if not part.isdisjoint(readers)]
            if len(parts) > 1:
                raise TopologyError(
                    f"copartitioned topics {', '.join(group)} are read by different "
                    "subtopologies; join them through one processor or state store"
                )

    def _add_child(self, name: str, parents: tuple[str, ...]) -> None:
        if not parents:
            raise TopologyError(f"node {name!r} has no parent; give at least one")
        for parent in parents:
            if parent not in self._nodes:
                raise TopologyError(f"parent {parent!r} of {name!r} is unknown; add it first")
            if parent in self._topic_by_sink:
                raise TopologyError(
                    f"parent {parent!r} of {name!r} is a sink; sinks forward nothing"
                )
        self._add_node(name)
        self._edges += [(parent, name) for parent in parents]

    def _add_node(self, name: str) -> None:
        if not name:
            raise TopologyError("a node has an empty name; give it a name")
        if name in self._nodes:
            raise TopologyError(f"node {name!r} is added twice; choose another name")
        self._nodes[name] = None

    @staticmethod
    def _check_topic(topic: str, *, node: str) -> None:
        if not is_topic_name(topic):
            raise TopologyError(
                f"{topic!r} (node {node!r}) is not a valid topic name: use 1 to 249 characters of "
                "a-z A-Z 0-9 . _ -"
            )
