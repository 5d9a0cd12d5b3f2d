"""The facade on a real Kafka: secured connections of both clients, and a group of processes."""

import json
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    OffsetSpec,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer

from assignor.adapters.confluent import Consumer
from system_tests.real import broker_release, running_real_broker
from tests.assignor.adapters.confluent.harness import (
    LIMIT_S,
    SHORT,
    TOPOLOGY,
    next_error,
    read,
)
from tests.assignor.embedding.clusters import until

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
PEM = Path("tests/assignor/adapters/admin/certificates")
PARTITIONS = 4
TRUST = {"ssl.ca.location": str(PEM / "certificate.pem")}
OWN = {
    "ssl.certificate.location": str(PEM / "certificate.pem"),
    "ssl.key.location": str(PEM / "key.pem"),
}
PLAIN = {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "plain-word"}
SCRAM = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "ann", "sasl.password": "scram-word"}


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """Kafka 4.3.1 with the listeners of all security protocols, and 40 records."""
    store = tmp_path_factory.mktemp("keys") / "store.pem"
    parts = [(PEM / f"{name}.pem").read_text(encoding="utf-8") for name in ("key", "certificate")]
    store.write_text("".join(parts), encoding="utf-8")
    with running_real_broker(
        broker_release("kafka:4.3.1"), users={"ann": PLAIN["sasl.password"]}, key_store=store
    ) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        made = admin.create_topics([NewTopic("words", PARTITIONS, 1)])
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        user = UserScramCredentialUpsertion("ann", info, SCRAM["sasl.password"].encode())
        for done in (*made.values(), *admin.alter_user_scram_credentials([user]).values()):
            done.result(LIMIT_S)
        write(broker, 40)
        yield broker


@pytest.fixture
def _brief_attempts(monkeypatch):
    """A member that is closed while it connects ends when its attempt is over."""
    brief = partial(KafkaConsumer, bootstrap_timeout_ms=1000)
    monkeypatch.setattr("assignor.adapters.confluent.member.KafkaConsumer", brief)


def write(broker, count):
    """Write records to the partitions in turn."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    for number in range(count):
        producer.produce("words", str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(LIMIT_S) == 0


def secured(broker, protocol, group, settings):
    address = {"bootstrap.servers": broker.servers(protocol), "security.protocol": protocol}
    return Consumer(SHORT | address | {"group.id": group} | settings, topology=TOPOLOGY)


@pytest.mark.parametrize(
    ("protocol", "settings"),
    [
        pytest.param("SASL_SSL", TRUST | PLAIN, id="plain"),
        pytest.param("SASL_SSL", TRUST | SCRAM, id="scram"),
        pytest.param("SASL_PLAINTEXT", SCRAM, id="scram-without-tls"),
        pytest.param("SSL", TRUST | OWN, id="certificates"),
    ],
)
def test_both_clients_connect(real, protocol, settings):
    """librdkafka reads; the member joins and commits."""
    group = f"{protocol}-{settings.get('sasl.mechanism')}"
    with secured(real, protocol, group, settings) as consumer:
        consumer.subscribe(["words"])
        assert len(read(consumer, 40)) >= 40
        assert consumer.memberid()
        offsets = consumer.commit(asynchronous=False)
        assert [each.error for each in offsets] == [None] * PARTITIONS
        found = consumer.committed(consumer.assignment(), timeout=LIMIT_S)
        assert sum(each.offset for each in found) >= 40


@pytest.mark.parametrize(
    ("protocol", "settings", "code", "why"),
    [
        pytest.param(
            "SASL_SSL",
            TRUST | SCRAM | {"sasl.password": "wrong"},
            KafkaError._AUTHENTICATION,
            "due to invalid credentials with SASL mechanism SCRAM-SHA-512",
            id="password",
        ),
        pytest.param(
            "SSL",
            OWN | {"ssl.ca.location": str(PEM / "other_authority.pem")},
            KafkaError._SSL,
            "broker certificate could not be verified, verify that ssl.ca.location is correct",
            id="authority",
        ),
    ],
)
@pytest.mark.usefixtures("_brief_attempts")
def test_what_a_broker_or_client_refuses_is_one_error(real, protocol, settings, code, why):
    with secured(real, protocol, "refused", settings) as consumer:
        consumer.subscribe(["words"])
        error = next_error(consumer)
        assert (error.code(), error.fatal()) == (code, False)
        assert why in error.str()
        assert "wrong" not in error.str()
        # Connections are tried again, and the same error is not returned again.
        assert [consumer.poll(0.1) for _ in range(20)] == [None] * 20


class Reading:
    """A process with a consumer, and what it has reported."""

    def __init__(self, broker):
        config = SHORT | {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "processes",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
        }
        self.owned, self.records = [], []
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.assignor.adapters.confluent.reading", json.dumps(config)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    def _take(self):
        for line in self._process.stdout:
            report = json.loads(line)
            self.owned = report.get("owned", self.owned)
            self.records += map(tuple, report.get("read", ()))

    def stop(self):
        self._ended()
        return self._process.returncode

    def kill(self):
        self._process.kill()
        self._ended()

    def _ended(self):
        self._process.stdin.close()
        self._process.wait(LIMIT_S)
        self._thread.join()
        self._process.stdout.close()


def test_a_group_of_processes_loses_nothing_when_a_member_is_killed(real):
    """One member, two, and one again after kill -9; the offsets are those of all records."""
    members = []
    admin = AdminClient({"bootstrap.servers": real.bootstrap_servers, "log_level": 0})
    try:
        members.append(Reading(real))
        until(lambda: members[0].owned == [0, 1, 2, 3])
        members.append(Reading(real))
        until(lambda: [len(member.owned) for member in members] == [2, 2])
        staying, killed_member = members
        killed = killed_member.owned
        assert sorted(staying.owned + killed) == [0, 1, 2, 3]
        write(real, 400)
        until(lambda: any(partition in killed for partition, _ in killed_member.records))
        killed_member.kill()
        write(real, 400)
        ends = ends_of(admin)
        written = {(partition, at) for partition in ends for at in range(ends[partition])}
        until(lambda: set(staying.records) | set(killed_member.records) == written)
        assert staying.owned == [0, 1, 2, 3]
        twice = {
            at
            for at, count in Counter(staying.records + killed_member.records).items()
            if count > 1
        }
        assert {partition for partition, _ in twice} <= {*killed}
        assert staying.stop() == 0
        assert committed(admin) == ends
    finally:
        for member in members:
            member.kill()


def ends_of(admin):
    wanted = {TopicPartition("words", each): OffsetSpec.latest() for each in range(PARTITIONS)}
    found = admin.list_offsets(wanted)
    return {each.partition: future.result(LIMIT_S).offset for each, future in found.items()}


def committed(admin):
    [future] = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions("processes")]
    ).values()
    return {each.partition: each.offset for each in future.result(LIMIT_S).topic_partitions}
