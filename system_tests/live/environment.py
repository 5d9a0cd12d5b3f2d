"""The broker and the topic of an experiment: an embedded, a real, or a given broker."""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from assignor.adapters.connecting import network_client
from system_tests.broker import BrokerConfig, RunningBroker, running_broker
from system_tests.errors import EnvironmentFailureError
from system_tests.live.options import LiveOptions

_TOPIC = "words"
_GROUP = "word-count"
_CONNECT_MS = 5_000
_STARTED_MS = 120_000  # of a broker that was started here: it answers, however slow the machine
_UNIQUE = 8
_REPLACED_NODES = 3
_Replace = Callable[[], Callable[[], frozenset[str]]]
_Brokers = tuple[str, _Replace | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A broker with an empty topic, and the names to use on it.

    Attributes:
        replace_brokers: replaces all brokers by new ones behind the same bootstrap servers, and
            returns a function that returns the members which have sent a heartbeat to the new ones;
            None if the brokers cannot be replaced.
    """

    bootstrap_servers: str
    group_id: str
    topic: str
    replace_brokers: _Replace | None = None


@contextmanager
def open_environment(options: LiveOptions) -> Iterator[Environment]:
    """Provide a broker and an empty topic, and clean up afterwards.

    Raises:
        EnvironmentFailureError: the broker cannot be reached or started, or refuses the topic.
    """
    if options.bootstrap_server is not None:
        # A shared broker: unique names, so that no other group or topic is touched.
        unique = uuid.uuid4().hex[:_UNIQUE]
        environment = Environment(
            bootstrap_servers=options.bootstrap_server,
            group_id=f"rolling-bounce-{_GROUP}-{unique}",
            topic=f"rolling-bounce-{_TOPIC}-{unique}",
        )
        with topic_of(environment, options.partitions, keep=False):
            yield environment
        return
    broker = _embedded_broker if options.broker is None else _real_broker
    with broker(options) as (bootstrap_servers, replace_brokers):
        environment = Environment(
            bootstrap_servers=bootstrap_servers,
            group_id=_GROUP,
            topic=_TOPIC,
            replace_brokers=replace_brokers,
        )
        with topic_of(environment, options.partitions, keep=True):
            yield environment


@contextmanager
def _embedded_broker(options: LiveOptions) -> Iterator[_Brokers]:
    config = BrokerConfig(ports=(options.port,))
    if options.replace_brokers:
        config = BrokerConfig(
            nodes=_REPLACED_NODES, bootstrap_listener=True, bootstrap_port=options.port
        )
    try:
        context = running_broker(config)
        broker = context.__enter__()
    except OSError as error:
        raise EnvironmentFailureError(
            f"the embedded broker cannot listen on port {options.port}: "
            f"{os.strerror(error.errno) if error.errno else error}; "
            "choose another --port, or 0 for a free one"
        ) from error
    try:
        yield ",".join(broker.bootstrap_servers), partial(_replace_nodes, broker)
    finally:
        context.__exit__(None, None, None)


def _replace_nodes(broker: RunningBroker) -> Callable[[], frozenset[str]]:
    new = frozenset(broker.replace_nodes())
    return lambda: frozenset(
        request.client_id for request in broker.requests("Heartbeat") if request.node_id in new
    )


@contextmanager
def _real_broker(options: LiveOptions) -> Iterator[_Brokers]:
    from system_tests.real import running_real_broker  # noqa: PLC0415 only a real broker needs Java

    with running_real_broker(options.broker or "", port=options.port) as broker:
        yield broker.bootstrap_servers, None


@contextmanager
def topic_of(
    environment: Environment,
    partitions: int,
    *,
    keep: bool,
    configs: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Create the empty topic of an environment, and delete it afterwards unless it is kept.

    It is kept on a broker that was started for this environment.

    Raises:
        EnvironmentFailureError: no broker answers, or it refuses the topic.
    """
    limit_ms = _STARTED_MS if keep else _CONNECT_MS
    try:
        with network_client() as kafka_client:
            admin = KafkaAdminClient(
                bootstrap_servers=environment.bootstrap_servers,
                client_id="rolling-bounce",
                request_timeout_ms=limit_ms,
                bootstrap_timeout_ms=limit_ms,
                kafka_client=kafka_client,
            )
    except (KafkaError, ValueError) as error:
        raise EnvironmentFailureError(
            f"no broker answers at {environment.bootstrap_servers} ({type(error).__name__}); "
            "start one or correct --bootstrap-server"
        ) from error
    try:
        try:
            admin.create_topics(
                [NewTopic(environment.topic, partitions, -1, topic_configs=dict(configs or {}))]
            )
        except KafkaError as error:
            raise EnvironmentFailureError(
                f"the broker at {environment.bootstrap_servers} refuses to create the topic "
                f"{environment.topic}: {error}"
            ) from error
        yield
        if not keep:
            with suppress(KafkaError):
                admin.delete_topics([environment.topic])
    finally:
        admin.close()
