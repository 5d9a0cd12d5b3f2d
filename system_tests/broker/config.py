"""Settings of an embedded broker: nodes, topics, limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from system_tests.coordinator import CoordinatorConfig

# Short times for tests: no initial rebalance delay, session timeouts from 100 ms.
TEST_COORDINATOR = CoordinatorConfig(initial_rebalance_delay_ms=0, min_session_timeout_ms=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """Settings of an embedded broker.

    Args:
        host: Address to listen on; default: loopback.
        nodes: How many brokers to start, with node ids 1 to `nodes`.
        ports: One port per node, 0 for any free one; missing ones count as 0.
        racks: Rack names, assigned to the nodes in turn; empty for none.
        topics: Topic name to number of partitions, created at the start.
        bootstrap_listener: Listen on one more port that belongs to no node, like a load balancer;
            clients bootstrap from it, and it does not stop with a node.
        bootstrap_port: Port of that listener, 0 for any free one.
        auto_create_topics: Create a topic when a client asks for it by name.
        default_partitions: Partitions of a topic that is created without a number.
        coordinator: Settings of group coordination.
        kafka_release: Series of Kafka whose feature levels the nodes support.
        metadata_version: Initial level of the cluster; None: the highest.
        newest_versions: API name to the newest version that is advertised and served, to emulate
            an older broker; other APIs are served in all implemented versions.
        max_frame_bytes: Greatest request (`socket.request.max.bytes`).
        max_batch_bytes: Greatest record batch (`message.max.bytes`).
        max_fetch_wait_ms: A fetch without records is answered after this time at the latest, though
            it may ask for a longer one, after which a client reads partitions that are new to it.
        requests_kept: Number of last requests that are kept.
        events_kept: Number of last events that are kept.

    Raises:
        ValueError: a number is out of range; the message says which.
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
    kafka_release: str = "4.4"
    metadata_version: int | None = None
    cluster_id: str = "embedded-cluster-00001"
    newest_versions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    max_frame_bytes: int = 104_857_600
    max_batch_bytes: int = 1_048_588
    max_fetch_wait_ms: int = 50
    requests_kept: int = 20_000
    events_kept: int = 100_000

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.nodes < 1:
            raise ValueError(f"nodes={self.nodes}: a cluster has at least one node; give 1 or more")
        if len(self.ports) > self.nodes:
            raise ValueError(f"{len(self.ports)} ports for {self.nodes} nodes; give one per node")
        for topic, partitions in self.topics.items():
            if partitions < 1:
                raise ValueError(f"topic {topic!r} with {partitions} partitions; give 1 or more")

    def port_of(self, node_id: int) -> int:
        """Return the configured port of a node; 0 means any free port."""
        return self.ports[node_id - 1] if node_id <= len(self.ports) else 0

    def rack_of(self, node_id: int) -> str | None:
        """The node's rack, if racks are configured."""
        return self.racks[(node_id - 1) % len(self.racks)] if self.racks else None
