"""First and last offsets of partitions that do not exist, and of those without a leader."""

import threading
from contextlib import closing

import pytest
from kafka.errors import LeaderNotAvailableError, NotLeaderForPartitionError

from assignor.adapters.kafka_python import KafkaChangelogs, bounded
from assignor.adapters.threads import LOOP_END
from assignor.embedding import ClusterUnavailable
from encoding import TopicPartition
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.embedding.clusters import until

KNOWN = [TopicPartition("known", number) for number in range(2)]


@pytest.fixture
def broker(clock):
    with running_broker(BrokerConfig(topics={"known": 2})) as running:
        yield running


@pytest.fixture
def changelogs(broker):
    with closing(KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)) as made:
        yield made


def asked(broker):
    return len(broker.requests("ListOffsets"))


def test_a_changelog_that_does_not_exist_is_a_reason_to_try_again(broker, changelogs):
    """Also after a deletion: kafka-python alone asks for it until `request_timeout_ms` is over."""
    new = TopicPartition("app-new-changelog", 0)
    for _ in range(2):
        before = asked(broker)
        with pytest.raises(ClusterUnavailable, match=r"app-new-changelog \[0\] does not exist"):
            changelogs.end_offsets([KNOWN[0], new])
        assert asked(broker) == before + 1
        broker.create_topic(new.topic, 1)
        assert changelogs.end_offsets([new, KNOWN[0]])[new] == 0
        broker.call(lambda embedded: embedded.cluster.delete_topic(new.topic))


def test_input_that_is_deleted_while_it_is_compared_is_asked_for_once(broker, changelogs):
    gone, client = TopicPartition("read-before", 0), changelogs._reader._consumer
    broker.create_topic(gone.topic, 1)

    async def delete_and_ask(wanted):
        client._fetcher._send_list_offsets_requests = ask
        broker.call(lambda embedded: embedded.cluster.delete_topic(gone.topic))
        return await ask(wanted)

    ask, client._fetcher._send_list_offsets_requests = (
        client._fetcher._send_list_offsets_requests,
        delete_and_ask,
    )
    before = asked(broker)
    with pytest.raises(ClusterUnavailable, match=r"read-before \[0\] does not exist"):
        changelogs.input_state("app", [gone])
    assert asked(broker) == before + 1
    assert changelogs.input_state("app", [gone]) == {}


def test_an_election_is_waited_for(broker, changelogs):
    changelogs.end_offsets(KNOWN)
    for error in (NotLeaderForPartitionError, LeaderNotAvailableError):
        broker.inject(Fault(api="ListOffsets", error=error.errno))
    assert changelogs.end_offsets(KNOWN).keys() == {*KNOWN}


def test_a_loop_that_is_to_end_waits_for_no_answer(broker, changelogs, monkeypatch):
    """Looks at the changelogs of idle tasks are under way most of the time of an outage."""
    monkeypatch.setattr(bounded, "_LAST_S", 0.2)
    changelogs.end_offsets(KNOWN)
    broker.inject(Fault(api="ListOffsets", delay_ms=60_000))
    ended = threading.Event()
    threading.Thread(target=lambda: (until(lambda: asked(broker) > 1), ended.set())).start()
    LOOP_END.set(ended)
    try:
        with pytest.raises(ClusterUnavailable, match="no broker has answered within"):
            changelogs.end_offsets(KNOWN)
    finally:
        LOOP_END.set(None)
        broker.clear_faults()
