"""The embedded broker: nodes that start and stop, with one shared cluster state."""

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from system_tests.broker.cluster import Cluster
from system_tests.broker.config import BrokerConfig
from system_tests.broker.faults import Fault, RecordedRequest
from system_tests.broker.node import Node
from system_tests.coordinator import CommittedOffset, GroupDescription, GroupEvent, OffsetKey

BOOTSTRAP_NODE = 0


class EmbeddedBroker:
    """A Kafka cluster in this process, on the running event loop.

    ```
    async with EmbeddedBroker(BrokerConfig(topics={"in": 4})) as broker:
        consumer = AIOKafkaConsumer("in", bootstrap_servers=broker.bootstrap_servers)
    ```

    Call it from its own loop only; from other threads use `running_broker`.
    """

    def __init__(self, config: BrokerConfig | None = None) -> None:
        self.config = config or BrokerConfig()
        self.cluster = Cluster(self.config)
        self._nodes: dict[int, Node] = {}
        self._port_by_node: dict[int, int] = {}
        # Ports of stopped nodes, bound but without a listener: no other process gets one, where
        # clients of this broker, which still ask it, would find a cluster that is not theirs.
        self._kept_ports: dict[int, socket.socket] = {}
        self._bootstrap_address: tuple[str, int] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start every node, then create the topics.

        Raises:
            OSError: a port is not available; nodes that were started are stopped again.
        """
        try:
            for node_id in range(1, self.config.nodes + 1):
                await self.start_node(node_id)
            if self.config.bootstrap_listener:
                node = Node(self.cluster, BOOTSTRAP_NODE)
                self._bootstrap_address = await node.start(self.config.bootstrap_port)
                self._nodes[BOOTSTRAP_NODE] = node
        except OSError:
            await self.stop()
            raise
        for topic, partitions in self.config.topics.items():
            self.cluster.create_topic(topic, partitions)

    async def stop(self) -> None:
        """Stop every node."""
        self.cluster.close()
        for node_id in sorted(self._nodes):
            await self._nodes[node_id].stop()
        self._nodes.clear()
        for port in list(self._kept_ports):
            self._release(port)

    async def start_node(self, node_id: int, *, port: int | None = None) -> tuple[str, int]:
        """Start a node that does not run, on its last port or on `port` (0: any free port).

        Raises:
            ValueError: the node runs already, or the id is below 1.
            OSError: the port is not available.
        """
        if node_id in self._nodes or node_id < 1:
            raise ValueError(f"node {node_id} cannot be started; running nodes are {self.live}")
        if port is None:
            port = self._port_by_node.get(node_id, self.config.port_of(node_id))
        self._release(port)
        node = Node(self.cluster, node_id)
        address = await node.start(port)
        self._announce(node_id, node, address)
        return address

    def _announce(self, node_id: int, node: Node, address: tuple[str, int]) -> None:
        self._nodes[node_id] = node
        self._port_by_node[node_id] = address[1]
        self.cluster.node_started(node_id, address)

    async def stop_node(self, node_id: int) -> None:
        """Stop a node; its partitions and groups move to other nodes, records are kept.

        Its port refuses connections until a node starts there or the broker stops.

        Raises:
            ValueError: the node does not run.
        """
        if node_id not in self.cluster.address_by_node:
            raise ValueError(f"node {node_id} does not run; running nodes are {self.live}")
        self.cluster.node_stopped(node_id)
        await self._nodes.pop(node_id).stop()
        self._keep(self._port_by_node[node_id])

    def _keep(self, port: int) -> None:
        host = self.config.host
        kept = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            kept.bind((host, port))
        except OSError:  # another process was faster
            kept.close()
        else:
            self._kept_ports[port] = kept

    def _release(self, port: int) -> None:
        if (kept := self._kept_ports.pop(port, None)) is not None:
            kept.close()

    async def replace_nodes(self) -> Mapping[int, str]:
        """Replace every running node by a new one on a new port; return their addresses.

        No address that clients know is valid afterwards, except the bootstrap listener's. Records,
        groups and offsets are kept.
        """
        old = self.live
        first = max([*self._port_by_node, 0]) + 1
        # The new nodes listen before the old ports are free, so that no port is reused. They are
        # announced when the old nodes have stopped: no client may learn of them from an old node.
        new = {node_id: Node(self.cluster, node_id) for node_id in range(first, first + len(old))}
        addresses = {node_id: await node.start(0) for node_id, node in new.items()}
        await asyncio.gather(*(self.stop_node(node_id) for node_id in old))
        for node_id, node in new.items():
            self._announce(node_id, node, addresses[node_id])
        return self.addresses

    def demand_rebootstrap(self, node_ids: Iterable[int] | None = None) -> None:
        """Let nodes answer Metadata version 13 and later with REBOOTSTRAP_REQUIRED (KIP-1102).

        Args:
            node_ids: the nodes; default: all running nodes, without the bootstrap listener; empty:
                stop to demand it.
        """
        self.cluster.rebootstrap_demanded = frozenset(self.live if node_ids is None else node_ids)

    @property
    def live(self) -> list[int]:
        """Ids of the running nodes."""
        return self.cluster.live

    @property
    def bootstrap_servers(self) -> list[str]:
        """Bootstrap addresses: that of the bootstrap listener, else those of all nodes."""
        if self._bootstrap_address is not None:
            return [_join(self._bootstrap_address)]
        return [_join(address) for _, address in sorted(self.cluster.address_by_node.items())]

    @property
    def addresses(self) -> Mapping[int, str]:
        """Address by node id."""
        return {n: _join(a) for n, a in sorted(self.cluster.address_by_node.items())}

    @property
    def events(self) -> tuple[GroupEvent, ...]:
        """Events of the groups, oldest first; times are ms of the monotonic clock."""
        return tuple(self.cluster.events)

    def subscribe(self, callback: Callable[[GroupEvent], None]) -> None:
        """Call `callback` on the broker's loop with every further event."""
        self.cluster.subscribe(callback)

    def requests(self, api: str = "") -> tuple[RecordedRequest, ...]:
        """The last requests, of one API or of all."""
        return self.cluster.requests.all(api)

    def inject(self, fault: Fault) -> None:
        """Activate a fault."""
        self.cluster.faults.add(fault)

    def clear_faults(self) -> None:
        """Deactivate all faults, and end the delays of requests that wait."""
        self.cluster.faults.clear()

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic; raises ValueError if it cannot be created."""
        self.cluster.create_topic(name, partitions, configs)

    def move_coordinator(self, group_id: str, node_id: int) -> None:
        """Let another running node coordinate a group."""
        self.cluster.move_coordinator(group_id, node_id)

    def coordinator_of(self, group_id: str) -> int:
        """The node that coordinates a group."""
        return self.cluster.coordinator_of(group_id)

    def groups(self) -> Mapping[str, GroupDescription]:
        """Every known group."""
        return self.cluster.groups()

    def committed(self, group_id: str) -> Mapping[OffsetKey, CommittedOffset]:
        """Everything that a group has committed."""
        return self.cluster.committed(group_id)

    def end_offsets(self) -> Mapping[OffsetKey, int]:
        """Next offset of every partition."""
        return self.cluster.end_offsets()


def _join(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
