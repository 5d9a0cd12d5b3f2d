"""What a consumer is called with: its settings, options, topology, and topics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

from confluent_kafka import KafkaError

from assignor.adapters.confluent.errors import refused
from assignor.adapters.confluent.events import Mailbox
from assignor.adapters.confluent.handover import DeferredListener
from assignor.adapters.confluent.settings import (
    WITH_DOTS,
    CommitCallback,
    Settings,
    rebalance_protocol,
)
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.adapters.membership import MemberKeywords, member_options
from assignor.errors import ConfigError
from assignor.rebalance import TasksListener
from assignor.topology import Topology
from encoding import shown


class ReaderKeywords(TypedDict, total=False):
    """Settings of a consumer of confluent-kafka whose names have no dot."""

    debug: str
    error_cb: Callable[[KafkaError], object]
    log_level: str | int
    oauth_cb: Callable[[str], tuple[Any, ...]]
    on_commit: CommitCallback
    stats_cb: Callable[[str], object]
    throttle_cb: Callable[[Any], object]


class SettingKeywords(ReaderKeywords, total=False):
    """Settings of confluent-kafka that can be keywords of a call: those whose names have no dot."""

    acks: str | int
    partitioner: str
    retries: str | int


class ConsumerKeywords(MemberKeywords, SettingKeywords, total=False):
    """Keywords of `Consumer`: options of the member, and settings of the client."""


def check_options(names: Iterable[str], *, application_id: str | None, group_id: str) -> None:
    """Check that no option is a setting of librdkafka, and that the application is the group.

    Raises:
        ConfigError: a setting is given with underscores; `application_id` is unlike the group id.
    """
    if application_id not in {None, group_id}:
        raise ConfigError(
            f"application_id={shown(repr(application_id))} is unlike "
            f"group.id={shown(repr(group_id))}; leave application_id out"
        )
    for name in sorted(names):
        if (dotted := name.replace("_", ".")) in WITH_DOTS:
            raise ConfigError(f"{name} is no option; give {dotted!r} in the configuration")


def with_keyword_settings(
    config: Mapping[str, Any] | None, options: dict[str, Any]
) -> Mapping[str, Any]:
    """Return a configuration with the settings among keywords.

    confluent-kafka takes them, too: `Consumer(**config)`. Names with a dot are settings, and those
    of `SettingKeywords`.

    Args:
        config: as a user gave it.
        options: keywords; settings are removed.

    Raises:
        TypeError: there is no configuration, or it is no dict.
    """
    dotless = SettingKeywords.__annotations__
    given = [name for name in options if "." in name or name in dotless]
    keywords = {name: options.pop(name) for name in given}
    if config is None and keywords:
        return keywords
    if not isinstance(config, Mapping):
        raise TypeError("expected configuration dict")
    return {**config, **keywords}


def new_assignor(
    topology: Topology | None,
    topologies: Sequence[Topology] | None,
    options: MemberKeywords,
    settings: Settings,
    mailbox: Mailbox,
) -> StreamsAssignor:
    """Return the assignor of a consumer, whose listener is called by `poll`.

    Args:
        topology: of the consumer.
        topologies: its versions instead.
        options: of `StreamsAssignor`, as a user gave them.
        settings: of the consumer.
        mailbox: of the application's thread.

    Raises:
        KafkaException: `rebalance_protocol` does not fit the other assignors of the group.
        TypeError, TopologyError, ConfigError, StateDirectoryLocked, StoreError: as
            `StreamsAssignor`.
    """
    # Checked as given: the assignor sees a listener of this package.
    checked = member_options(topology, settings.group_id, options, topologies=topologies)
    protocol = rebalance_protocol(options.get("rebalance_protocol"), settings.other_assignors)
    listener = DeferredListener(checked.callbacks.listener or TasksListener(), mailbox)
    given: dict[str, Any] = {**options, "rebalance_protocol": protocol, "listener": listener}
    if settings.client_rack:
        given.setdefault("rack", settings.client_rack)
    assignor = StreamsAssignor(
        topology, application_id=settings.group_id, topologies=topologies, **given
    )
    assignor.client_id = settings.member["client_id"]  # for what is served before it has joined
    assignor.poll_limit_s = settings.max_poll_interval_s
    assignor.not_attached = "the consumer has not joined its group; subscribe it, and poll"
    return assignor


def subscribed_topics(
    topologies: Sequence[Topology], application_id: str, topics: Any
) -> tuple[str, ...]:
    """Return the source topics of all versions of a topology, if the given ones are these.

    Repartition topics may be left out, since their names are internal.

    Raises:
        TypeError: this is no list of names.
        KafkaException: a topic is given twice, is a pattern or not in the topology, or one of its
            source topics is missing.
    """
    if isinstance(topics, str) or not isinstance(topics, Sequence):
        raise TypeError("expected list of topic unicode strings")
    if not all(isinstance(name, str) for name in topics):
        raise TypeError("expected list of unicode strings")
    sources = sorted({name for each in topologies for name in each.source_topics(application_id)})
    internal = {
        topic.name
        for each in topologies
        for part in each.subtopologies(application_id)
        for topic in part.repartition_topics
    }
    repeated = next((name for name in topics if topics.count(name) > 1), None)
    if repeated is not None:
        raise refused(
            KafkaError._INVALID_ARG,
            f"Failed to set subscription: topic {shown(repr(repeated))} is given twice; remove one",
        )
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
    return tuple(sources)
