"""An application in one object: consumer, assignor, state stores and changelogs."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Unpack

from kafka import KafkaConsumer

from assignor.adapters.application import (
    ApplicationPlan,
    ApplicationPort,
    BlockingApplication,
    application_options,
)
from assignor.adapters.consumer_options import ConsumerOptions, ProducerSettings
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.changelogs import KafkaChangelogs
from assignor.adapters.kafka_python.consumer import (
    CLIENT_SETTINGS,
    StreamsConsumer,
    connected_consumer,
)
from assignor.adapters.kafka_python.port import check_closing_thread
from assignor.adapters.kafka_python.processing import run_tasks
from assignor.adapters.kafka_python.settings import ConsumerSettings
from assignor.adapters.membership import ApplicationMemberKeywords, documented
from assignor.embedding import StateStore, TaskState
from assignor.embedding.bad_records import BadRecordAction, OnBadRecord
from assignor.topology import Topology


class ApplicationKeywords(
    ApplicationMemberKeywords, ConsumerSettings, ProducerSettings, total=False
):
    """Keywords of `StreamsApplication`: options of the member, and settings of the clients."""


def open_changelogs(options: ConsumerOptions) -> KafkaChangelogs:
    """Return the changelogs of an application, with those settings that kafka-python has."""
    known = KafkaConsumer.DEFAULT_CONFIG
    settings: Any = {name: value for name, value in options.client.items() if name in known}
    return KafkaChangelogs(**settings, **options.producer)


PORT: Final = ApplicationPort(
    options=partial(application_options, CLIENT_SETTINGS),
    open_changelogs=open_changelogs,
    new_consumer=connected_consumer,
    run_tasks=run_tasks,
    check_may_close=check_closing_thread,
)


class StreamsApplication(BlockingApplication):
    """A member of a group that processes records into state stores; close it, or use it in `with`.

    It is `streams_consumer`, `TaskStores`, `KafkaChangelogs`, `run_tasks` and `ServedMember`
    together.
    """

    consumer: StreamsConsumer

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
        plan = ApplicationPlan(
            PORT, given, topology, handle, stores=stores, tell=tell, on_bad_record=on_bad_record
        )
        super().__init__(plan)

    @property
    def assignor(self) -> StreamsAssignor:
        """The member: its tasks, and the hosts of a key."""
        return self.consumer.assignor
