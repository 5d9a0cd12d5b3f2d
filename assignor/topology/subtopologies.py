"""From processing nodes to subtopologies.

Only this module knows how nodes hang together. A subtopology is a connected component of the graph
whose edges are "is the parent of" and "uses the same state store"; topics do not connect. The ids
follow Kafka Streams: components are numbered in the order of their smallest source node name, so a
Python member and a JVM member of one application agree when they name their nodes alike.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from assignor.errors import TopologyError

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def is_topic_name(text: str) -> bool:
    """Whether Kafka takes this as a topic name, and so as a `group.instance.id`."""
    return _TOPIC_NAME.fullmatch(text) is not None and text not in {".", ".."}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepartitionTopic:
    """A topic that the application writes and reads again to change the key of its records.

    Attributes:
        name: full name, `<application id>-<name>-repartition`.
        partitions: the number asked for, or None to take the largest upstream source's.
    """

    name: str
    partitions: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtopology:
    """One connected component: the unit of which each partition number becomes a task.

    Attributes:
        id: position among the subtopologies, from 0.
        nodes: names of its nodes, sorted.
        source_topics: topics it reads, sorted; repartition topics included.
        sink_topics: topics it writes, sorted; repartition topics included.
        repartition_topics: those of its source topics that the application writes itself.
        changelog_topics: topics that back its state stores, sorted. Not empty: it is stateful.
        source_changelogs: changelogs that are source topics as well (optimised tables).
        copartition_groups: source topics that must have equal partition counts, each sorted.
        changelog_retention_ms: (changelog, milliseconds) of windowed stores, sorted.
    """

    id: int
    nodes: tuple[str, ...]
    source_topics: tuple[str, ...]
    sink_topics: tuple[str, ...] = ()
    repartition_topics: tuple[RepartitionTopic, ...] = ()
    changelog_topics: tuple[str, ...] = ()
    source_changelogs: tuple[str, ...] = ()
    copartition_groups: tuple[tuple[str, ...], ...] = ()
    # Not in the text that fingerprints are made of: how long state is kept moves no task.
    changelog_retention_ms: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    @property
    def is_stateful(self) -> bool:
        """Whether its tasks have a changelog (unlogged stores do not count, as in Kafka)."""
        return bool(self.changelog_topics)


@dataclass(slots=True)
class _Store:
    name: str
    processors: tuple[str, ...]
    logged: bool
    source_topic: str | None
    retention_ms: int | None


@dataclass(slots=True)
class Topology:
    """Builder of a processing topology, in the words of Kafka Streams' `Topology`.

    Nodes are added after their parents. Every method returns the topology, so calls can be chained.

    >>> topology = (
    ...     Topology()
    ...     .add_source("lines", topics=["lines"])
    ...     .add_processor("count", parents=["lines"])
    ...     .add_state_store("counts", processors=["count"])
    ... )
    >>> [s.changelog_topics for s in topology.subtopologies("word-count")]
    [('word-count-counts-changelog',)]
    """

    _nodes: dict[str, None] = field(init=False, default_factory=dict)
    _edges: list[tuple[str, str]] = field(init=False, default_factory=list)
    _topics_by_source: dict[str, tuple[str, ...]] = field(init=False, default_factory=dict)
    _topic_by_sink: dict[str, str] = field(init=False, default_factory=dict)
    _stores: dict[str, _Store] = field(init=False, default_factory=dict)
    _repartition: dict[str, int | None] = field(init=False, default_factory=dict)
    _copartitioned: list[tuple[str, ...]] = field(init=False, default_factory=list)

    def add_source(self, name: str, *, topics: Iterable[str]) -> "Topology":
        """Add a node that reads `topics`.

        Raises:
            TopologyError: the name is taken, no topic is given, or a topic has a reader already.
        """
        names = tuple(topics)
        if not names:
            raise TopologyError(f"source {name!r} reads no topic; give it at least one")
        for topic in names:
            self._check_topic(topic, node=name)
            for other, read in self._topics_by_source.items():
                if topic in read:
                    raise TopologyError(
                        f"topic {topic!r} is read by source {other!r} already; "
                        f"make {other!r} the parent instead of adding {name!r}"
                    )
        self._add_node(name)
        self._topics_by_source[name] = names
        return self

    def add_processor(self, name: str, *, parents: Iterable[str]) -> "Topology":
        """Add a node that processes what its parents forward.

        Raises:
            TopologyError: the name is taken, or a parent is missing, unknown or a sink.
        """
        self._add_child(name, tuple(parents))
        return self

    def add_sink(self, name: str, *, topic: str, parents: Iterable[str]) -> "Topology":
        """Add a node that writes to `topic`; a repartition topic is named without its prefix.

        Raises:
            TopologyError: as for `add_processor`, or the topic name is not one of Kafka's.
        """
        self._check_topic(topic, node=name)
        self._add_child(name, tuple(parents))
        self._topic_by_sink[name] = topic
        return self

    def add_repartition_topic(self, name: str, *, partitions: int | None = None) -> "Topology":
        """Declare `name` an internal topic that sinks write and sources read.

        The real topic is `<application id>-<name>-repartition`. Without `partitions` it gets the
        largest partition count of the topics that feed it.

        Raises:
            TopologyError: declared twice, or `partitions` is below 1.
        """
        self._check_topic(name, node=name)
        if name in self._repartition:
            raise TopologyError(f"repartition topic {name!r} is declared twice; drop one")
        if partitions is not None and partitions < 1:
            raise TopologyError(f"repartition topic {name!r} with {partitions} partitions; need 1+")
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
    ) -> "Topology":
        """Add a store that the given processors share.

        Args:
            name: name of the store; its changelog is `<application id>-<name>-changelog`.
            processors: nodes that use it; they end up in one subtopology.
            logged: False: no changelog, so the store does not make its tasks stateful.
            source_topic: a source topic that serves as changelog (an optimised table).
            retention_ms: of a windowed store: state older than this is not needed any more.

        Raises:
            TopologyError: the name is taken, a processor is missing, unknown, or no processor, or
                the retention is below 1 ms.
        """
        users = tuple(processors)
        if name in self._stores:
            raise TopologyError(f"state store {name!r} is added twice; drop one")
        if not users:
            raise TopologyError(f"state store {name!r} has no processor; connect it to one")
        if retention_ms is not None and retention_ms < 1:
            raise TopologyError(f"state store {name!r} keeps windows {retention_ms} ms; need 1+")
        for processor in users:
            is_plain = processor in self._nodes and processor not in self._topics_by_source
            if not is_plain or processor in self._topic_by_sink:
                raise TopologyError(
                    f"state store {name!r} is connected to {processor!r}, which is no processor; "
                    "add the processor first"
                )
        self._stores[name] = _Store(name, users, logged, source_topic, retention_ms)
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
        """The connected components, numbered as Kafka Streams numbers them.

        Raises:
            TopologyError: no source, or a copartition group spans topics that nobody reads.
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
        """Every topic that a member has to subscribe to, sorted; internal ones included."""
        parts = self.subtopologies(application_id)
        return tuple(sorted({topic for part in parts for topic in part.source_topics}))

    def store_topics(self, store: str, application_id: str) -> tuple[str, ...]:
        """Source topics of the subtopology that has a state store, sorted: what its keys come from.

        Raises:
            TopologyError: there is no store of that name.
        """
        known = self._stores.get(store)
        if known is None:
            listed = ", ".join(sorted(self._stores)) or "none"
            raise TopologyError(f"there is no state store {store!r}; known: {listed}")
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
            else f"{application_id}-{s.name}-changelog"
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
                    (f"{application_id}-{s.name}-changelog", s.retention_ms)
                    for s in stores
                    if s.retention_ms is not None and not s.source_topic
                )
            ),
        )

    def _full_names(self, application_id: str) -> Mapping[str, str]:
        return {name: f"{application_id}-{name}-repartition" for name in self._repartition}

    def _components(self) -> set[frozenset[str]]:
        # Loading networkx takes as long as all of the assignor; most processes never need it.
        import networkx as nx  # noqa: PLC0415 see above

        graph = nx.Graph()
        graph.add_nodes_from(self._nodes)
        graph.add_edges_from(self._edges)
        return {frozenset(part) for part in nx.connected_components(graph)}

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
                    f"copartitioned topics {', '.join(unread)} are read by no source; add one"
                )
            parts = [part for part in node_sets if not part.isdisjoint(readers)]
            if len(parts) > 1:
                raise TopologyError(
                    f"copartitioned topics {', '.join(group)} are read by different "
                    "subtopologies; join them through one processor or state store"
                )

    def _add_child(self, name: str, parents: tuple[str, ...]) -> None:
        if not parents:
            raise TopologyError(f"node {name!r} has no parent; name at least one")
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
            raise TopologyError("a node needs a name that is not empty")
        if name in self._nodes:
            raise TopologyError(f"node {name!r} is added twice; choose another name")
        self._nodes[name] = None

    @staticmethod
    def _check_topic(topic: str, *, node: str) -> None:
        if not is_topic_name(topic):
            raise TopologyError(
                f"{topic!r} (node {node!r}) is no topic name: use 1 to 249 of a-z A-Z 0-9 . _ -"
            )
