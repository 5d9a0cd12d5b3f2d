"""What an embedded broker is made of: nodes, topics, limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from system_tests.coordinator import CoordinatorConfig

# Short enough for tests: no wait for the first members, sessions from a tenth of a second on.
TEST_COORDINATOR = CoordinatorConfig(initial_rebalance_delay_ms=0, min_session_timeout_ms=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Settings of an embedded broker.

    Args:
        host: Address to listen on; loopback unless said otherwise.
        nodes: How many brokers to start, with node ids 1 to `nodes`.
        ports: One port per node, 0 for any free one; missing ones count as 0.
        racks: Rack names given to the nodes in turn; empty for none.
        topics: Topic name to number of partitions, created at the start.
        bootstrap_listener: Listen on one more port that belongs to no node, as a load balancer in
            front of the cluster does; clients are pointed at it, and it outlives every node.
        bootstrap_port: Port of that listener, 0 for any free one.
        auto_create_topics: Create a topic when a client asks for it by name.
        default_partitions: Partitions of a topic that is created without a number.
        coordinator: Settings of group coordination.
        kafka_release: Series of Kafka whose feature levels the nodes support.
        metadata_version: Level that the cluster begins with; None takes the highest.
        newest_versions: API name to the newest version that is advertised and served, as an older
            broker has it; APIs that are not named are served in every version known here.
        max_frame_bytes: Greatest request (`socket.request.max.bytes`).
        max_batch_bytes: Greatest record batch (`message.max.bytes`).
        requests_kept: How many requests the record of requests holds.
        events_kept: How many events the record of events holds.

    Raises:
        ValueError: a number makes no sense; the message says which.
    """

    host: str = "127.0.0.1"
    nodes: int = 1
    ports: tuple[int, ...] = ()
    racks: tuple[str, ...] = ()
    topics: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    bootstrap_listener: bool = False
    bootstrap_port: int = 0
    auto_create_topics: bool = False
    default_partitions: int = 1
    coordinator: CoordinatorConfig = TEST_COORDINATOR
    kafka_release: str = "4.3"
    metadata_version: int | None = None
    cluster_id: str = "embedded-cluster-00001"
    newest_versions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    max_frame_bytes: int = 104_857_600
    max_batch_bytes: int = 1_048_588
    requests_kept: int = 20_000
    events_kept: int = 100_000

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        if self.nodes < 1:
            raise ValueError(f"nodes={self.nodes}: a cluster has at least one node; give 1 or more")
        if len(self.ports) > self.nodes:
            raise ValueError(f"{len(self.ports)} ports for {self.nodes} nodes; give one per node")
        for topic, partitions in self.topics.items():
            if partitions < 1:
                raise ValueError(f"topic {topic!r} with {partitions} partitions; give 1 or more")

    def port_of(self, node_id: int) -> int:
        """The port that a node asks for; 0 means any."""
        return self.ports[node_id - 1] if node_id <= len(self.ports) else 0

    def rack_of(self, node_id: int) -> str | None:
        """The node's rack, if racks are configured."""
        return self.racks[(node_id - 1) % len(self.racks)] if self.racks else None
