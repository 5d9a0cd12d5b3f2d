"""Members of a group in which one member writes invalid bytes, for tests."""

import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from kafka import KafkaConsumer
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.errors import KafkaError
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor import (
    MemberIdentity,
    StreamsMember,
    TasksListener,
    Topology,
    sticky,
)
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.wire import owned_entries
from assignor.observe import Observation
from encoding import (
    RUNNING,
    DecodeError,
    FutureSubscription,
    PartitionRange,
    Subscription,
    TaskId,
    TaskOffsetSums,
    TopicPartition,
    decode_subscription,
    encode_subscription,
)
from probing import find_release
from system_tests.support.stock_consumer import StockConsumer

TOPIC = "orders"
PARTITIONS = 6
GROUP = "app"
_POLL_MS = 200
_TOPOLOGY = (
    Topology()
    .add_source("orders", topics=[TOPIC])
    .add_processor("count", parents=["orders"])
    .add_state_store("counts", processors=["count"])
)
_KINDS = ("native", "3.9", "2.4")
_CLIENT = {
    "group_id": GROUP,
    "session_timeout_ms": 60_000,
    "heartbeat_interval_ms": 100,
    "retry_backoff_ms": 20,
    "metrics_enabled": False,
    "enable_auto_commit": False,
}


class _Errors(TasksListener):
    def __init__(self) -> None:
        self.sentences: list[str] = []

    def on_error(self, why: str) -> None:
        self.sentences.append(why)


class HonestMember:
    """A native consumer in a thread; it commits what it has processed.

    Attributes:
        observations: events of its assignor.
        offsets: partition -> offset after the last processed record.
        records: number of processed records by partition.
        ended: error of its last poll, or None.
    """

    def __init__(
        self, servers: Sequence[str], number: int, protocol: Literal["eager", "cooperative"]
    ) -> None:
        self.observations: list[Observation] = []
        self.listener = _Errors()
        self.offsets: dict[int, int] = {}
        self.records: Counter[int] = Counter()
        self.ended: str | None = None
        self.assignor = StreamsAssignor(
            _TOPOLOGY,
            application_id=GROUP,
            process_id=UUID(int=number + 1),
            rebalance_protocol=protocol,
            endpoint=f"honest-{number}:80",
            listener=self.listener,
            observer=self.observations.append,
            internal_topics=None,
            strategy=sticky,  # changelogs are not read, so lags are unknown
        )
        self._consumer = KafkaConsumer(
            TOPIC,
            **_CLIENT,
            bootstrap_servers=list(servers),
            client_id=f"honest-{number}",
            auto_offset_reset="earliest",
            partition_assignment_strategy=[self.assignor],
        )
        self.assignor.attach(self._consumer)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def errors(self) -> list[str]:
        """Sentences passed to `on_error`."""
        return self.listener.sentences

    def close(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self._thread.join(120)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._step()
                except KafkaError as error:
                    self.ended = f"{type(error).__name__}: {error}"
                else:
                    self.ended = None
        except Exception as error:
            self.ended = f"{type(error).__name__}: {error}"
            raise
        finally:
            self._consumer.close()
            self.assignor.close()

    def _step(self) -> None:
        batches = self._consumer.poll(timeout_ms=_POLL_MS)
        for where, records in sorted(batches.items()):
            self.records[where.partition] += len(records)
            self.offsets[where.partition] = records[-1].offset + 1
        if batches:
            self._consumer.commit()


class _Writer(AbstractPartitionAssignor):  # type: ignore[misc] # the client is untyped
    """Writes the given metadata, and accepts every assignment."""

    name = "stream"

    def __init__(self, *, claims_all: bool) -> None:
        self.blob = b""
        self.taken = 0
        self._claims_all = claims_all

    def metadata(self, topics: set[str]) -> ConsumerProtocolSubscription:
        claimed = range(PARTITIONS if self._claims_all else 0)
        return ConsumerProtocolSubscription(
            version=1,
            topics=sorted(topics),
            user_data=self.blob,
            owned_partitions=owned_entries([TopicPartition(TOPIC, p) for p in claimed]),
        )

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:  # noqa: ARG002 the client's signature
        raise RuntimeError("a hostile member was made leader; the test is about honest leaders")

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:  # noqa: ARG002 as above
        self.taken += 1


class HostileMember:
    """A consumer in a thread that joins with given metadata.

    Args:
        servers: addresses of the cluster.
        claims_all: it claims to own every partition, in the consumer protocol.
    """

    def __init__(self, servers: Sequence[str], *, claims_all: bool) -> None:
        self._writer = _Writer(claims_all=claims_all)
        self._servers, self._stopping = list(servers), threading.Event()
        self._consumer: Any = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def write(self, blob: bytes) -> None:
        """Join, or rejoin, with these bytes."""
        self._writer.blob = blob
        if self._consumer is None:
            self._consumer = StockConsumer(
                TOPIC,
                **_CLIENT,
                bootstrap_servers=self._servers,
                client_id="hostile",
                partition_assignment_strategy=[self._writer],
            )
            self._thread.start()
        else:
            self._consumer._coordinator.request_rejoin()  # noqa: SLF001 there is no public call

    @property
    def answers(self) -> int:
        """Number of assignments that it received."""
        return self._writer.taken

    def close(self) -> None:
        """Leave the group."""
        self._stopping.set()
        self._thread.join(120)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._consumer.poll(timeout_ms=_POLL_MS)
                except KafkaError:
                    self._stopping.wait(0.1)
        finally:
            self._consumer.close()


def hostile_blobs(count: int, *, seed: int = 1) -> Iterator[bytes]:
    """Yield subscriptions that Kafka Streams never writes: chosen ones, then mutated ones."""
    values = [
        StreamsMember(
            find_release(kind),
            MemberIdentity(process_id=UUID(int=99), user_endpoint="hostile:80"),
            subtopologies=_TOPOLOGY.subtopologies(GROUP),
        ).subscription({TaskId(0, 1): 900})[0]
        for kind in _KINDS
    ]
    chosen = [data for value in values for data in _chosen(value)]
    yield from chosen[:count]
    rng = random.Random(seed)  # noqa: S311 no secret
    plain = [encode_subscription(value) for value in values]
    left = count - len(chosen)
    while left > 0:
        data = _mutated(rng, rng.choice(plain))
        if not _stops_application(data):
            yield data
            left -= 1


def _chosen(value: Subscription) -> Iterator[bytes]:
    """Yield values that once stopped a leader or caused endless rebalances."""
    everything = TaskOffsetSums.from_mapping({TaskId(0, p): RUNNING for p in range(PARTITIONS)})
    for endpoint in ("h:" + "1" * 5_000, f"h:{2**31}", "é" * 20_000 + ":1", "localhost", "a\nb:1"):
        yield encode_subscription(replace(value, user_endpoint=endpoint))
    for offset_sum in (-(2**63), -4, 2**63 - 1):
        sums = TaskOffsetSums.from_mapping({TaskId(0, p): offset_sum for p in range(PARTITIONS)})
        yield encode_subscription(replace(value, task_offset_sums=sums))
    yield encode_subscription(replace(value, task_offset_sums=everything))
    if value.native is None:
        return
    for changed in (
        {"view_epoch": 2**63 - 1},
        {"adopted_levels": {"x": 1}, "adopted_epoch": 2**40},
        {"adopted_levels": {"x": 1}, "adopted_epoch": 2**40, "feature_ranges": {"x": (1, 1)}},
        {"owned_partitions": (PartitionRange(TOPIC, 0, 2**31 - 1),), "owned_generation": 2**31 - 1},
        {"owned_partitions": (PartitionRange(TOPIC, 0, 6),), "owned_generation": 1},
    ):
        native = replace(value.native, **changed)
        yield encode_subscription(replace(value, native=native, task_offset_sums=everything))
    # In Kafka's layouts it would exceed the size limit of the group's record.
    many = TaskOffsetSums.from_columns([0] * 80_000, range(80_000), [RUNNING] * 80_000)
    native = replace(value.native, sizes=(80_000,), latest_supported_version=101)
    value = replace(value, version=101, latest_supported_version=101)
    yield encode_subscription(replace(value, native=native, task_offset_sums=many))


def _mutated(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 8)):
        place = rng.randrange(len(changed))
        match rng.randrange(3):
            case 0:
                changed[place] = rng.randrange(256)
            case 1:
                changed.insert(place, rng.randrange(256))
            case _ if len(changed) > 1:
                del changed[place + 1 :]
    return bytes(changed)


def _stops_application(data: bytes) -> bool:
    """Whether it shuts the application down, which every member may do (KIP-671)."""
    try:
        value = decode_subscription(data)
    except DecodeError:
        return False
    return not isinstance(value, FutureSubscription) and value.error_code != 0
