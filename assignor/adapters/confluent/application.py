"""An application in one object: consumer, assignor, state stores and changelogs.

Its settings have the names that kafka-python and aiokafka have, so that one program runs on each
client; librdkafka's other settings have their own names.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Unpack

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Message
from kafka.consumer.fetcher import ConsumerRecord

from assignor.adapters.application import (
    ApplicationPlan,
    ApplicationPort,
    BlockingApplication,
    application_options,
)
from assignor.adapters.client_settings import SharedSettings
from assignor.adapters.confluent.consumer import Consumer
from assignor.adapters.confluent.processing import MAX_RECORDS, run_tasks
from assignor.adapters.confluent.settings import divided
from assignor.adapters.confluent.topics import ReaderKeywords
from assignor.adapters.consumer_options import (
    ClientSettings,
    ConsumerOptions,
    ProducerSettings,
)
from assignor.adapters.kafka_python import KafkaChangelogs, StreamsAssignor
from assignor.adapters.membership import ApplicationMemberKeywords, documented
from assignor.adapters.processing import check_may_close
from assignor.embedding import ChangelogAccess, Handler, StateStore, TaskState, TaskStores
from assignor.embedding.bad_records import BadRecordAction, OnBadRecord
from assignor.topology import Topology


class ConsumerSettings(SharedSettings, total=False):
    """Settings of the consumer, by the names that kafka-python has for them."""

    client_rack: str
    key_deserializer: Callable[[Any], Any] | None
    value_deserializer: Callable[[Any], Any] | None
    max_poll_records: int
    sasl_mechanism: str
    ssl_cafile: str | None
    ssl_certfile: str | None
    ssl_keyfile: str | None
    ssl_crlfile: str | None
    ssl_password: str | None


class ApplicationKeywords(
    ApplicationMemberKeywords, ConsumerSettings, ProducerSettings, ReaderKeywords, total=False
):
    """Keywords of `StreamsApplication`: options of the member, and settings of the clients."""


# Names here -> librdkafka's, of settings that it calls otherwise; else a dot is an underscore.
_NAMES: Final = MappingProxyType(
    {
        "fetch_max_wait_ms": "fetch.wait.max.ms",
        "metadata_max_age_ms": "topic.metadata.refresh.interval.ms",
        "request_timeout_ms": "socket.timeout.ms",
        "sasl_plain_password": "sasl.password",
        "sasl_plain_username": "sasl.username",
        "ssl_cafile": "ssl.ca.location",
        "ssl_certfile": "ssl.certificate.location",
        "ssl_crlfile": "ssl.crl.location",
        "ssl_keyfile": "ssl.key.location",
        "ssl_password": "ssl.key.password",
    }
)
_DEFAULTS: Final = MappingProxyType(
    {
        **dict.fromkeys(ConsumerSettings.__annotations__),
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 3000,
        "max_poll_interval_ms": 300_000,
        "max_poll_records": MAX_RECORDS,
        "session_timeout_ms": 45_000,
    }
)
_NO_TIME, _UNKNOWN = -1, -1
_RESETS: Final = MappingProxyType({"none": "error"})
_SETTINGS: Final = ClientSettings(
    defaults=_DEFAULTS,
    fixed={"enable.auto.commit": "records are committed when they are processed"},
    has_scheme=True,
)
_RENAMED: Final = frozenset({*ConsumerSettings.__annotations__, "group_id", "bootstrap_servers"})
# Of the application, not of librdkafka.
_OWN: Final = frozenset(
    {"enable_auto_commit", "key_deserializer", "max_poll_records", "value_deserializer"}
)


def _options(keywords: dict[str, Any], **arguments: Any) -> ConsumerOptions:
    """Return the checked options; settings by librdkafka's names are among the client's."""
    portable = dict(keywords)
    own = {name for name in keywords if "." in name} - _SETTINGS.fixed.keys()
    own |= ReaderKeywords.__annotations__.keys() & keywords.keys()
    named = {name: portable.pop(name) for name in own}
    given = application_options(_SETTINGS, portable, **arguments)
    options = replace(given, client={**named, **given.client})
    divided(_config(options))
    return options


def _config(options: ConsumerOptions) -> dict[str, Any]:
    """Return the configuration of a `Consumer`."""
    given = dict(options.client)
    reset, servers = given.get("auto_offset_reset", "earliest"), given["bootstrap_servers"]
    given["auto_offset_reset"] = _RESETS.get(reset, reset)
    given["bootstrap_servers"] = servers if isinstance(servers, str) else ",".join(servers)
    config = {
        _NAMES.get(name, name.replace("_", ".") if name in _RENAMED else name): value
        for name, value in given.items()
        if name not in _OWN and value is not None
    }
    return config | {"enable.auto.commit": False}


def _open_changelogs(options: ConsumerOptions) -> ChangelogAccess:
    settings = divided(_config(options))
    recovery = settings.rebootstrap or {"metadata_recovery_strategy": "none"}
    given: dict[str, Any] = {**settings.member, **recovery, **options.producer}
    return KafkaChangelogs(**given)


def _new_consumer(topology: Topology, options: ConsumerOptions) -> Consumer:
    return Consumer(_config(options), topology=topology, **options.member)


def _run_tasks(
    max_records: int, consumer: Consumer, stores: TaskStores, handle: Handler, **options: Any
) -> None:
    def process(message: Message, state: TaskState) -> object:
        return handle(record_of(message), state)

    run_tasks(consumer, stores, process, max_records=max_records, **options)


def _check_may_close(consumer: Consumer, stores: TaskStores) -> None:
    check_may_close(stores)
    consumer._member.check_may_wait()


def record_of(message: Message) -> ConsumerRecord:
    """Return a message as a record of kafka-python, for the same functions as with that client."""
    kind, time_ms = message.timestamp()
    key, value = message.key(), message.value()
    has_time = kind != TIMESTAMP_NOT_AVAILABLE
    return ConsumerRecord(
        topic=message.topic(),
        partition=message.partition(),
        leader_epoch=message.leader_epoch(),
        offset=message.offset(),
        timestamp=time_ms if has_time else _NO_TIME,
        timestamp_type=kind - TIMESTAMP_CREATE_TIME if has_time else None,
        key=key,
        value=value,
        headers=message.headers() or [],
        checksum=None,
        serialized_key_size=_UNKNOWN if key is None else len(key),
        serialized_value_size=_UNKNOWN if value is None else len(value),
        serialized_header_size=_UNKNOWN,
    )


PORT: Final = ApplicationPort(
    options=_options,
    open_changelogs=_open_changelogs,
    new_consumer=_new_consumer,
    run_tasks=partial(_run_tasks, MAX_RECORDS),
    check_may_close=_check_may_close,
    reads_bytes=True,
)


class StreamsApplication(BlockingApplication):
    """A member of a group that processes records into state stores; close it, or use it in `with`.

    `handle` gets records as with kafka-python. Settings have the names of kafka-python, or those of
    librdkafka: `**{"fetch.queue.backoff.ms": 100}`. What librdkafka refuses is a `KafkaException`.
    """

    consumer: Consumer

    @documented(rest="options", without=("listener",))
    def __init__(
        self,
        topology: Topology,
        handle: Callable[[Any, TaskState], object],
        *,
        group_id: str,
        bootstrap_servers: str | Sequence[str],
        stores: Sequence[StateStore[Any, Any]] = (),
        tell: Callable[[str], object] = lambda _: None,
        on_bad_record: OnBadRecord = BadRecordAction.FAIL,
        **options: Unpack[ApplicationKeywords],
    ) -> None:
        given = PORT.options(options, group_id=group_id, bootstrap_servers=bootstrap_servers)
        max_records = given.client.get("max_poll_records", MAX_RECORDS)
        port = replace(PORT, run_tasks=partial(_run_tasks, max_records))
        plan = ApplicationPlan(
            port, given, topology, handle, stores=stores, tell=tell, on_bad_record=on_bad_record
        )
        super().__init__(plan)

    @property
    def assignor(self) -> StreamsAssignor:
        """The member: its tasks, and the hosts of a key."""
        return self.consumer.assignor
