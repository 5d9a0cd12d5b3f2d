"""The topology of a Quix Streams application: its topics, streams and stores, as Quix has them.

Quix names and creates its changelogs and repartition topics itself. A repartition topic is an input
topic here, and every store names its changelog, so that no further topic is created.
"""

from typing import Any

from assignor.errors import TopologyError
from assignor.topology import Topology


def quix_topology(app: Any) -> Topology:
    """Return the topology of an `Application` whose dataframes are complete.

    Topics that a stream joins or concatenates are in one subtopology, so that their partitions of
    one number are on one member, as Quix requires. A store is `STREAM/STORE` in the topology, as in
    `hosts_for_key("orders/default", key)`.

    Args:
        app: a `quixstreams.Application`.

    Raises:
        TopologyError: the application has no dataframe.
    """
    registry, changelogs = app._dataframe_registry, app._topic_manager.changelog_topics
    topics = sorted(topic.name for topic in registry.consumer_topics)
    if not topics:
        raise TopologyError(
            "the Quix application consumes no topic; create its dataframes before it runs"
        )
    topology = Topology()
    for topic in topics:
        topology.add_source(topic, topics=[topic])
    streams = {stream for topic in topics for stream in registry.get_stream_ids(topic)}
    for stream in sorted(streams):
        inputs = sorted({*registry.get_topics_for_stream_id(stream)} & {*topics})
        processor = f"stream {stream}"
        topology.add_processor(processor, parents=inputs)
        stores = app._state_manager.stores.get(stream, {})
        for store in sorted(stores):
            changelog = changelogs.get(stream, {}).get(store)
            topology.add_state_store(
                f"{stream}/{store}",
                processors=[processor],
                logged=changelog is not None,
                changelog_topic=None if changelog is None else changelog.name,
            )
        if stores and len(inputs) > 1:
            topology.copartition(*inputs)
    return topology
