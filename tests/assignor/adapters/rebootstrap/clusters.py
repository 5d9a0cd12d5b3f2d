"""A group of kafka-python consumers, and waiting, for tests of both supervisors."""

import contextlib
import socket
import threading
import time
from uuid import uuid4

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from assignor import Topology, sticky
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.rebootstrap.kafka_python import supervise
from system_tests.broker import BrokerConfig

TOPIC = "words"
PARTITIONS = 6
LIMIT_S = 120
# Sessions must outlive the replacement of all brokers on a slow machine.
SESSION_MS = 60_000
BEHIND_ONE_ADDRESS = BrokerConfig(nodes=3, bootstrap_listener=True, topics={TOPIC: PARTITIONS})

# A member without side connections; lags are not known then.
ALONE = {"internal_topics": None, "strategy": sticky}

STARTED = []
"""Every member of a test; a client that is left over would go on in the tests after it."""


def until(condition, what):
    """Wait for a condition; the limit is for slow machines."""
    deadline = time.monotonic() + LIMIT_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {LIMIT_S} s: {what}"
        time.sleep(0.02)
    return value


def topology():
    made = Topology()
    made.add_source("words", topics=[TOPIC])
    made.add_processor("count", parents=["words"])
    made.add_state_store("counts", processors=["count"])
    return made


def consumer_of(servers, group, **settings):
    """A kafka-python consumer that connects again soon."""
    return KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=100,
        reconnect_backoff_max_ms=300,
        **settings,
    )


class Member(threading.Thread):
    """A consumer with a native assignor that reads and commits on a separate thread.

    Attributes:
        seen: values read.
        problems: errors that `poll` or `commit` raised.
    """

    def __init__(
        self, servers, group, *, release="native", process_id=None, embedding=ALONE, **supervision
    ):
        super().__init__(daemon=True)
        self.process_id = process_id or uuid4()
        self.assignor = StreamsAssignor(
            topology(),
            application_id=group,
            release=release,
            process_id=self.process_id,
            **embedding,
        )
        self.consumer = consumer_of(servers, group, partition_assignment_strategy=[self.assignor])
        self.assignor.attach(self.consumer)
        self.supervisor = supervise(self.consumer, **supervision) if supervision else None
        self.seen = set()
        self.problems = []
        self._stopping = threading.Event()
        STARTED.append(self)
        self.start()

    def run(self):
        # A leader that does not know the topic yet assigns nothing.
        self.consumer.partitions_for_topic(TOPIC)
        self.consumer.subscribe([TOPIC])
        while not self._stopping.is_set():
            try:
                for records in self.consumer.poll(timeout_ms=100).values():
                    self.seen.update(record.value for record in records)
                    self.consumer.commit()
            except KafkaError as error:
                self.problems.append(error)
        if self.supervisor is not None:
            self.supervisor.close()
        self.assignor.close()
        self.consumer.close(timeout_ms=10_000)

    @property
    def identity(self):
        """Member id and generation."""
        generation = self.consumer._coordinator._generation
        return generation.member_id, generation.generation_id

    @property
    def version(self):
        return self.assignor._driver.member.state.used_version

    @property
    def partitions(self):
        return {p.partition for p in self.consumer.assignment()}

    def rescued(self, values):
        """Add a supervisor that rebootstraps, and wait until the values were read."""
        if self.supervisor is not None:
            self.supervisor.close()
        self.supervisor = supervise(self.consumer)
        until(lambda: values <= self.seen, "a late supervisor helps too")

    def stop(self):
        self._stopping.set()
        self.join(LIMIT_S)
        assert not self.is_alive()


def settled(*members):
    """Whether all partitions are assigned to the members."""
    held = [p for member in members for p in member.partitions]
    return sorted(held) == list(range(PARTITIONS)) and all(m.partitions for m in members)


def calm(*members):
    """Whether the members are in one generation and none is about to rejoin."""
    coordinators = [member.consumer._coordinator for member in members]
    return (
        settled(*members)
        and all(c.stable() and not c.need_rejoin() for c in coordinators)
        and len({c._generation.generation_id for c in coordinators}) == 1
    )


def write(producer, prefix):
    """Write one record to each partition; return their values."""
    values = {f"{prefix}-{partition}".encode() for partition in range(PARTITIONS)}
    sent = [
        producer.send(TOPIC, value=value, partition=partition)
        for partition, value in enumerate(sorted(values))
    ]
    for future in sent:
        future.get(timeout=LIMIT_S)
    return values


class Names:
    """Replaces the resolver: one name with an address that the test sets; None: not found."""

    HOST = "kafka.example"
    SERVER = f"{HOST}:9092"

    def __init__(self, monkeypatch, address):
        self.address = address
        self.lookups = []
        self._real = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host, port, *rest, **more):
        if host != self.HOST:
            return self._real(host, port, *rest, **more)
        self.lookups.append(threading.current_thread().name)
        if self.address is None:
            raise socket.gaierror(socket.EAI_AGAIN, "the name server does not answer")
        where, number = self.address.rsplit(":", 1)
        return self._real(where, int(number), *rest, **more)


def close_all(*clients):
    for client in clients:
        with contextlib.suppress(KafkaError):
            client.close()
