"""The supervisors' settings and the events for the machine, on clients that never connect."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.structs import BrokerMetadata
from kafka import KafkaConsumer
from kafka.cluster import ClusterMetadata
from kafka.net.manager import KafkaConnectionManager

from assignor.adapters.rebootstrap import aiokafka, kafka_python
from assignor.adapters.rebootstrap import supervisor as supervisors
from probing.rebootstrap import LinkState, RecoveryStrategy

NOBODY = "127.0.0.1:1"
REFRESH = "metadata"
FIVE_MINUTES_MS = 300_000


@pytest.fixture
def now(monkeypatch):
    """The time of the supervisors, in ms, which passes when a test says so."""
    time = SimpleNamespace(ms=1_000_000)
    for module in (aiokafka, kafka_python, supervisors):
        monkeypatch.setattr(module, "monotonic_ms", lambda: time.ms)
    return time


class Net:
    """An event loop that runs work at once and never fires a timer."""

    def call_soon_with_future(self, work, *args):
        work(*args)
        return SimpleNamespace(add_both=lambda callback: callback(None))

    def __getattr__(self, name):
        return lambda *_args, **_kwargs: None


def kafka_python_consumer(**settings):
    """A consumer of kafka-python that knows only its bootstrap server."""
    consumer = KafkaConsumer.__new__(KafkaConsumer)
    consumer._manager = KafkaConnectionManager(Net(), bootstrap_servers=NOBODY, **settings)
    consumer._coordinator = None
    return consumer


def on_aiokafka(work, **settings):
    """Run `work(client, supervisor)` on the client of a consumer that knows two brokers."""

    async def run():
        consumer = AIOKafkaConsumer(bootstrap_servers=NOBODY)
        client = consumer._client
        client.cluster._brokers = {
            node_id: BrokerMetadata(node_id, host, 9, None) for node_id, host in enumerate("bc")
        }
        supervisor = aiokafka.supervise(consumer, **settings)
        try:
            return await work(client, supervisor)
        finally:
            supervisor.close()
            consumer._closed = True

    return asyncio.run(run())


async def config_of(client, supervisor):
    return supervisor.state.config


@pytest.mark.kip("1102-1", "core")
def test_both_supervisors_rebootstrap_unless_the_strategy_is_none():
    consumer = kafka_python_consumer()
    config = kafka_python.supervise(consumer).state.config
    assert config.strategy is RecoveryStrategy.REBOOTSTRAP
    assert on_aiokafka(config_of).strategy is RecoveryStrategy.REBOOTSTRAP
    other = kafka_python_consumer()
    asked = kafka_python.supervise(other, metadata_recovery_strategy="none").state.config
    assert asked.strategy is RecoveryStrategy.NONE
    changed = on_aiokafka(config_of, metadata_recovery_strategy="none")
    assert changed.strategy is RecoveryStrategy.NONE


@pytest.mark.kip("1102-2", "core")
def test_both_supervisors_wait_five_minutes_for_metadata_by_default():
    setting = {"metadata_recovery_rebootstrap_trigger_ms": 7}
    config = kafka_python.supervise(kafka_python_consumer()).state.config
    assert config.trigger_ms == FIVE_MINUTES_MS
    assert on_aiokafka(config_of).trigger_ms == FIVE_MINUTES_MS
    config = kafka_python.supervise(kafka_python_consumer(), **setting).state.config
    assert config.trigger_ms == 7
    assert on_aiokafka(config_of, **setting).trigger_ms == 7


@pytest.mark.kip("1102-2", "core")
@pytest.mark.parametrize("attempt", ["request", "no node to ask"])
def test_with_kafka_python_the_clock_runs_from_the_first_attempt_to_an_answer_with_a_broker(
    attempt, now, monkeypatch
):
    monkeypatch.setattr(ClusterMetadata, "update_metadata", lambda *_: None)
    consumer = kafka_python_consumer()
    supervisor, manager = kafka_python.supervise(consumer), consumer._manager
    assert supervisor.state.attempt_started_ms is None
    started_ms = now.ms
    if attempt == "request":
        manager.cluster.metadata_request()
    else:
        manager.update_backoff(REFRESH)
    assert supervisor.state.attempt_started_ms == started_ms
    now.ms += 7
    manager.cluster.metadata_request()
    manager.cluster.update_metadata(SimpleNamespace(brokers=[]))
    assert supervisor.state.attempt_started_ms == started_ms
    manager.cluster.update_metadata(SimpleNamespace(brokers=[(1, "b", 9, None)]))
    assert supervisor.state.attempt_started_ms is None


@pytest.mark.kip("1102-2", "core")
def test_with_aiokafka_the_clock_runs_from_the_first_attempt_to_an_answer_with_a_broker(
    now, monkeypatch
):
    async def unanswered(self, cluster, topics):
        return False

    monkeypatch.setattr(AIOKafkaClient, "_metadata_update", unanswered)

    async def work(client, supervisor):
        assert supervisor.state.attempt_started_ms is None
        started_ms = now.ms
        await client._metadata_update(client.cluster, [])
        assert supervisor.state.attempt_started_ms == started_ms
        now.ms += 7
        await client._metadata_update(client.cluster, [])
        assert supervisor.state.attempt_started_ms == started_ms
        for listener in list(client.cluster._listeners):
            listener(client.cluster)
        assert supervisor.state.attempt_started_ms is None

    on_aiokafka(work)


@pytest.mark.kip("1102-2", "core")
def test_with_kafka_python_the_clock_runs_for_a_request_that_is_under_way_already():
    consumer = kafka_python_consumer()
    consumer._manager.cluster._refresh_future = SimpleNamespace(is_done=False)
    assert kafka_python.supervise(consumer).state.attempt_started_ms is not None


@pytest.mark.kip("1102-2", "core")
def test_with_aiokafka_the_clock_runs_for_a_request_that_is_under_way_already(monkeypatch):
    init = AIOKafkaClient.__init__

    def asking(self, **settings):
        init(self, **settings)
        self.force_metadata_update()

    monkeypatch.setattr(AIOKafkaClient, "__init__", asking)

    async def work(client, supervisor):
        return supervisor.state.attempt_started_ms

    assert on_aiokafka(work) is not None


@pytest.mark.kip("1102-8", "core")
def test_kafka_python_keeps_its_own_back_off_and_set_up_timeout(now, monkeypatch):
    monkeypatch.setattr(kafka_python.KafkaPythonSupervisor, "_look_up", lambda _: None)
    # The client's own jitter is 0.8 to 1.2.
    monkeypatch.setattr(KafkaConnectionManager, "jitter_pct", lambda _: 1)
    settings = {
        "reconnect_backoff_ms": 11,
        "reconnect_backoff_max_ms": 22,
        "socket_connection_setup_timeout_ms": 33,
        "socket_connection_setup_timeout_max_ms": 44,
    }
    consumer = kafka_python_consumer(**settings)
    supervisor = kafka_python.supervise(consumer)
    config = supervisor.state.config
    assert (config.reconnect_backoff_ms, config.reconnect_backoff_max_ms) == (11, 22)
    assert (config.connection_setup_timeout_ms, config.connection_setup_timeout_max_ms) == (33, 44)
    (node,) = consumer._manager.cluster._bootstrap_brokers
    # After a rebootstrap, the next failure is the first in a row.
    consumer._manager.reset_backoff(node)
    for own_back_off_ms in (11, 22, 22):
        assert consumer._manager.update_backoff(node) == own_back_off_ms
        (link,) = supervisor.state.nodes.values()
        assert link.until_ms == now.ms + own_back_off_ms


@pytest.mark.kip("1102-8", "core")
def test_a_connection_of_kafka_python_is_given_up_a_second_after_its_own_timeout(now, monkeypatch):
    def connecting(self, node_id):
        return SimpleNamespace(
            init_future=SimpleNamespace(add_callback=lambda _: None),
            close_future=SimpleNamespace(add_both=lambda _: None),
        )

    monkeypatch.setattr(KafkaConnectionManager, "get_connection", connecting)
    consumer = kafka_python_consumer(socket_connection_setup_timeout_ms=3_000)
    supervisor = kafka_python.supervise(consumer)
    (node,) = consumer._manager.cluster._bootstrap_brokers
    consumer._manager.get_connection(node)
    (link,) = supervisor.state.nodes.values()
    assert link.state is LinkState.CONNECTING
    assert link.until_ms == now.ms + 4_000


def set_up_of(now, monkeypatch, failures=0, **settings):
    """Connection set-up timeout and back-off in ms after this number of failures."""
    found = []

    async def work(client, supervisor):
        async def refused(self, node_id, *, group=0, no_hint=False):
            found.append(supervisor.state.nodes["b:9"].until_ms - now.ms)

        monkeypatch.setattr(supervisor, "_its_get_conn", refused.__get__(client))
        for _ in range(failures + 1):
            assert await client._get_conn(0) is None
            found.append(supervisor.state.nodes["b:9"].until_ms - now.ms)
            now.ms += 1_000  # the back-off is over
        return found[-2:]

    return on_aiokafka(work, **settings)


@pytest.mark.kip("1102-8", "core")
def test_aiokafka_gets_the_set_up_timeout_and_the_back_off_of_kafkas_clients(now, monkeypatch):
    limit_ms, back_off_ms = set_up_of(now, monkeypatch)
    assert 8_000 <= limit_ms <= 12_000
    assert 40 <= back_off_ms <= 60
    limit_ms, _ = set_up_of(now, monkeypatch, failures=1)
    assert 16_000 <= limit_ms <= 24_000
    limit_ms, back_off_ms = set_up_of(
        now,
        monkeypatch,
        socket_connection_setup_timeout_ms=5_000,
        socket_connection_setup_timeout_max_ms=5_000,
        reconnect_backoff_ms=3_000,
        reconnect_backoff_max_ms=3_000,
    )
    assert (limit_ms, back_off_ms) == (5_000, 3_000)
