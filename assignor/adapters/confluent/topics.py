"""Which topics a consumer of a topology subscribes to."""

from typing import Any

from confluent_kafka import KafkaError

from assignor.adapters.confluent.errors import refused
from assignor.topology import Topology
from encoding import shown


def subscribed_topics(topology: Topology, application_id: str, topics: Any) -> tuple[str, ...]:
    """Return all source topics, if the given ones are those of the topology.

    Repartition topics may be left out, since their names are internal.

    Raises:
        TypeError: this is no list of names.
        KafkaException: a topic is a pattern, is not in the topology, or one of its source topics
            is missing.
    """
    if not isinstance(topics, list):
        raise TypeError("expected list of topic unicode strings")
    if not all(isinstance(name, str) for name in topics):
        raise TypeError("expected list of unicode strings")
    sources = topology.source_topics(application_id)
    internal = {
        topic.name
        for part in topology.subtopologies(application_id)
        for topic in part.repartition_topics
    }
    pattern = next((name for name in topics if name.startswith("^")), None)
    if pattern is not None:
        raise refused(
            KafkaError._INVALID_ARG,
            f"Failed to set subscription: {shown(repr(pattern))} is a pattern, and the group "
            f"assigns tasks of the topology's source topics; name them: {', '.join(sources)}",
        )
    strange = sorted({*topics} - {*sources})
    if strange:
        raise refused(
            KafkaError._INVALID_ARG,
            f"Failed to set subscription: topic {shown(repr(strange[0]))} is not a source topic of "
            f"the topology ({', '.join(sources)}); add it to the topology, or read its partitions "
            "with incremental_assign",
        )
    missing = sorted({*sources} - internal - {*topics})
    if missing:
        raise refused(
            KafkaError._INVALID_ARG,
            f"Failed to set subscription: topic {shown(repr(missing[0]))} of the topology is "
            "missing, and the group assigns tasks of all its topics; subscribe to it, too",
        )
    return sources
