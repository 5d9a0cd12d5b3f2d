"""Input that changes under a group, on a real broker: lag of transactions, topics made anew."""

import time
import uuid
from contextlib import closing

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic

from tests.assignor.adapters.reports import background, logs

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

LIMIT_S = 60
INPUT = TopicPartition("in", 0)


class Cluster:
    """A real broker, and a group on it that reads the topic `in`."""

    def __init__(self, server, group):
        self.server, self.group = server, group
        self.bootstrap_servers = [server]
        self.admin = KafkaAdminClient(bootstrap_servers=server)

    def make_anew(self):
        """Delete the topic if it exists, and create it once that is done."""
        if "in" in self.admin.list_topics():
            self.admin.delete_topics(["in"])
            until(lambda: "in" not in self.admin.list_topics())
            until(lambda: self.committed() is None)
        self.admin.create_topics([NewTopic("in", 1, 1)])
        until(lambda: "in" in self.admin.list_topics())

    def write(self, records):
        with KafkaProducer(bootstrap_servers=self.server) as producer:
            for number in range(records):
                producer.send("in", b"%d" % number, partition=0)

    def transaction(self, values, *, is_commit):
        """Write a transaction and its marker."""
        settings = {"bootstrap.servers": self.server, "transactional.id": str(uuid.uuid4())}
        producer = Producer(settings)
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        for value in values:
            producer.produce("in", value, partition=0)
        producer.flush(LIMIT_S)  # else an abort would drop them
        end = producer.commit_transaction if is_commit else producer.abort_transaction
        end(LIMIT_S)

    def committed(self):
        settings = {"group_id": self.group, "enable_auto_commit": False}
        with closing(KafkaConsumer(bootstrap_servers=self.server, **settings)) as consumer:
            return consumer.committed(INPUT)


def until(holds):
    end_s = time.monotonic() + 2 * LIMIT_S
    while not holds():
        assert time.monotonic() < end_s, "the condition never held"
        time.sleep(0.1)


@pytest.fixture
def cluster(kafka_4, monkeypatch):
    group = f"input-{uuid.uuid4()}"
    for module in (background, logs):
        monkeypatch.setattr(module, "GROUP", group)
    made = Cluster(kafka_4.bootstrap_servers, group)
    made.make_anew()
    yield made
    made.admin.delete_topics(["in"])
    made.admin.close()


def lines(caplog):
    found = [each for each in caplog.records if each.name == "assignor.embedding.input_rules"]
    return [each.getMessage() for each in found]


@pytest.mark.parametrize("client", sorted(background.ALL))
def test_kafka_6607_lag_of_transactional_input_reaches_0_on_a_real_broker(cluster, client):
    cluster.transaction([b"a", b"b"], is_commit=True)
    with background.running(client, cluster, isolation_level=background.COMMITTED) as seen:
        until(lambda: cluster.committed() == 3)
        cluster.transaction([b"x"] * 3, is_commit=False)
        until(lambda: cluster.committed() == 7)
    assert seen.records == [(0, 0), (0, 1)]


@pytest.mark.parametrize("client", sorted(background.STORES))
def test_a_topic_made_anew_is_processed_whole_on_a_real_broker(cluster, client, caplog):
    """The broker deletes the committed offsets with the topic; the state has its own."""
    cluster.write(4)
    with background.running(client, cluster) as seen:
        until(lambda: cluster.committed() == 4)
    cluster.make_anew()
    cluster.write(6)
    with background.running(client, cluster) as again:
        until(lambda: cluster.committed() == 6)
    assert [offset for _, offset in seen.records + again.records] == [*range(4), *range(6)]
    [line] = lines(caplog)
    assert (
        "state has its former one up to offset 4; all records of the new one, offsets 0 to 6"
        in (line)
    )
