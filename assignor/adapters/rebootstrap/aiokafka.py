"""Rebootstrap for aiokafka: consumers, producers and admin clients (KIP-899, KIP-1102).

```
await consumer.start()
supervisor = supervise(consumer)
```

aiokafka reconnects without back-off, opens one connection at a time, and gives up a connection
after `request_timeout_ms`. A supervisor adds exponential reconnect back-off, parallel connections,
and the connection set-up timeouts of Kafka's own clients. Only this file uses private parts of
aiokafka; a test detects changes of them.
"""

import asyncio
from contextlib import nullcontext, suppress
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.conn import CloseReason, collect_hosts
from aiokafka.errors import KafkaError, NotControllerError
from aiokafka.structs import BrokerMetadata

from assignor.adapters.rebootstrap.metadata_request import DemandRequest
from assignor.adapters.rebootstrap.supervisor import (
    AlreadySupervisedError,
    Listener,
    RebootstrapSupervisor,
    can_be_resolved,
    check_tested,
    monotonic_ms,
    node_name,
    supervised_if_tested,
)
from probing.rebootstrap import (
    ConnectionLost,
    ConnectionReady,
    ConnectionStarted,
    MetadataReceived,
    MetadataWanted,
    RebootstrapConfig,
    rebootstrap_config,
)

_TESTED_VERSION = "0.14"
_NO_LEADER = -1
# Reasons that are not the node's fault; the client may reconnect without back-off.
_BLAMELESS = frozenset({CloseReason.IDLE_DROP, CloseReason.SHUTDOWN})
_UNKNOWN_NODE_S = 0.1


def supervise(
    client: Any, *, listener: Listener | None = None, **settings: Any
) -> "AiokafkaSupervisor":
    """Supervise a started client, so that it rebootstraps when none of its brokers is available.

    Args:
        client: an `AIOKafkaConsumer`, `AIOKafkaProducer` or `AIOKafkaAdminClient`, started on the
            running event loop.
        listener: called on the event loop; it must not block.
        settings: `metadata_recovery_strategy`, `metadata_recovery_rebootstrap_trigger_ms`,
            `reconnect_backoff_ms`, `reconnect_backoff_max_ms`,
            `socket_connection_setup_timeout_ms`, `socket_connection_setup_timeout_max_ms`, with
            Kafka's defaults.

    Raises:
        TypeError: `client` is not a client of aiokafka.
        UntestedClientError: this version of aiokafka is not supported.
        RebootstrapConfigError: a setting is unknown or out of range.
        AlreadySupervisedError: the client already has a supervisor.
    """
    check_tested("aiokafka", aiokafka.__version__, tested=_TESTED_VERSION)
    config = rebootstrap_config({key.replace("_", "."): settings[key] for key in sorted(settings)})
    match client:
        case aiokafka.AIOKafkaConsumer() | AIOKafkaAdminClient():
            insides = client._client
        case aiokafka.AIOKafkaProducer():
            insides = client.client
        case _:
            raise TypeError(
                f"{type(client).__name__} is not a client of aiokafka; give an AIOKafkaConsumer, "
                "an AIOKafkaProducer or an AIOKafkaAdminClient"
            )
    return AiokafkaSupervisor(insides, client, config, listener)


def supervise_own(client: Any, **settings: Any) -> "AiokafkaSupervisor | None":
    """Supervise a client that this package created; see `supervised_if_tested`."""
    return supervised_if_tested(lambda: supervise(client, **settings))


class AiokafkaSupervisor(RebootstrapSupervisor):
    """Supervises one `AIOKafkaClient`, on its event loop; `supervise` creates it."""

    def __init__(
        self, client: Any, owner: Any, config: RebootstrapConfig, listener: Listener | None
    ) -> None:
        super().__init__(config, listener, client._bootstrap_servers)
        if "_get_conn" in vars(client):
            raise AlreadySupervisedError
        self._client = client
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self._locks: dict[Any, asyncio.Lock] = {}
        self._connecting: dict[asyncio.Task[Any], str] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._its_get_conn = client._get_conn
        self._its_metadata_update = client._metadata_update
        self._its_on_connection_closed = client._on_connection_closed
        self._its_lock = client._get_conn_lock_value
        self._know(node_name(b.host, b.port) for b in client.cluster.brokers())
        client._get_conn = self._get_conn
        client._metadata_update = self._metadata_update
        client._on_connection_closed = self._on_connection_closed
        client._get_conn_lock_value = nullcontext()
        self._its_ready = client.ready
        if isinstance(owner, AIOKafkaAdminClient):
            client.ready = self._ready
        client.cluster.add_listener(self._metadata_came)
        if client._md_update_fut is not None:  # a metadata request is already pending
            self._see(MetadataWanted(now_ms=monotonic_ms()))

    def close(self) -> None:
        """Stop supervising; call it before or after the client is stopped."""
        if self._is_closed:
            return
        self._is_closed = True
        self._end_outage()
        self._set_timer(None)
        for task in (*self._asking, *self._connecting):
            task.cancel()
        for name in ("_get_conn", "_metadata_update", "_on_connection_closed", "ready"):
            self._client.__dict__.pop(name, None)
        self._client._get_conn_lock_value = self._its_lock
        with suppress(KeyError):
            self._client.cluster.remove_listener(self._metadata_came)
        self._changed.set()

    # Replacements of the client's methods

    async def _get_conn(self, node_id: Any, *, group: Any = 0, no_hint: bool = False) -> Any:
        """Return a connection, after the node's back-off; None if there is none."""
        key = (node_id, group)
        existing = self._conns.get(key)
        if existing is not None and existing.connected():
            return existing
        async with self._locks.setdefault(key, asyncio.Lock()):
            existing = self._conns.get(key)
            if existing is not None and existing.connected():
                return existing
            name = self._name_of(node_id)
            if name is not None and not await self._may_connect(name):
                return None
            if name is None:
                return await self._its_get_conn(node_id, group=group, no_hint=no_hint)
            if name != self._name_of(node_id):
                return None
            return await self._connect(name, node_id, group)

    async def _ready(self, node_id: Any, *, group: Any = 0) -> bool:
        """Return whether a node is connected, for an admin client.

        Without the error an admin client would wait for the former controller until
        `request_timeout_ms` is over.

        Raises:
            NotControllerError: the metadata lacks the node; the client refreshes it and retries.
        """
        if self._name_of(node_id) is None:
            raise NotControllerError(f"node {node_id} is not in the cluster's metadata any more")
        return bool(await self._its_ready(node_id, group=group))

    async def _may_connect(self, name: str) -> bool:
        """Wait for the end of the node's back-off; return False if the node is not known then."""
        while not self._is_closed:
            link = self._state.nodes.get(name)
            now_ms = monotonic_ms()
            if not self._state.resolving:
                if link is None:
                    await asyncio.sleep(_UNKNOWN_NODE_S)
                    return name in self._state.nodes
                if link.is_available(now_ms):
                    return True
            wait_ms = 1_000 if link is None else link.until_ms - now_ms
            with suppress(TimeoutError):
                async with asyncio.timeout(max(wait_ms, 1) / 1_000):
                    await self._changed.wait()
        return False

    async def _connect(self, name: str, node_id: Any, group: Any) -> Any:
        task = asyncio.ensure_future(self._its_get_conn(node_id, group=group))
        self._connecting[task] = name
        self._see(ConnectionStarted(now_ms=monotonic_ms(), node=name, jitter=self._rng.random()))
        try:
            connection = await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                task.cancel()
                raise
            return None  # a rebootstrap or the set-up timeout cancelled it
        finally:
            del self._connecting[task]
        now_ms = monotonic_ms()
        if connection is None:
            self._see(ConnectionLost(now_ms=now_ms, node=name, jitter=self._rng.random()))
        else:
            self._see(ConnectionReady(now_ms=now_ms, node=name))
        return connection

    async def _metadata_update(self, cluster: Any, topics: Any) -> Any:
        self._see(MetadataWanted(now_ms=monotonic_ms()))
        updated = await self._its_metadata_update(cluster, topics)
        if not self._asking and not self._is_closed:
            task = asyncio.ensure_future(self._ask_for_demand())
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        return updated

    def _on_connection_closed(self, connection: Any, reason: Any) -> None:
        self._its_on_connection_closed(connection, reason)
        self._see(
            ConnectionLost(
                now_ms=monotonic_ms(),
                node=node_name(connection.host, connection.port),
                jitter=self._rng.random(),
                back_off_ms=0 if reason in _BLAMELESS else None,
            )
        )

    def _metadata_came(self, cluster: Any) -> None:
        nodes = tuple(node_name(b.host, b.port) for b in cluster.brokers())
        self._see(MetadataReceived(now_ms=monotonic_ms(), nodes=nodes))

    async def _ask_for_demand(self) -> None:
        """Ask a connected broker, by Metadata version 13, whether it demands a rebootstrap."""
        known = {broker.nodeId for broker in self._client.cluster.brokers()}
        able = [
            connection
            for (node_id, _), connection in self._conns.items()
            if node_id in known
            and connection.connected()
            and DemandRequest.is_served(connection._versions)
        ]
        if not able:
            return
        with suppress(KafkaError, TimeoutError):  # the next metadata update asks again
            # A pending fetch request would delay the response.
            quiet = min(able, key=lambda connection: len(connection._requests))
            response = await quiet.send(DemandRequest)
            if response.error_code:
                demand = MetadataReceived(
                    now_ms=monotonic_ms(), nodes=(), error_code=response.error_code
                )
                self._see(demand)

    # Commands of the state machine

    def _close_all(self) -> None:
        for task in list(self._connecting):
            task.cancel()
        for connection in list(self._conns.values()):
            connection.close(reason=CloseReason.SHUTDOWN)
        coordinator: Any = getattr(self._owner, "_coordinator", None)
        if getattr(coordinator, "coordinator_id", None) is not None:
            coordinator.coordinator_dead()

    def _give_up(self, node: str, why: str) -> None:  # noqa: ARG002 aiokafka logs no reason
        for task, name in list(self._connecting.items()):
            if name == node:
                task.cancel()

    def _look_up(self) -> None:
        task = asyncio.ensure_future(self._resolve())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _resolve(self) -> None:
        hosts = collect_hosts(self._client._bootstrap_servers)
        known = await asyncio.gather(
            *(asyncio.to_thread(can_be_resolved, host, port) for host, port, _ in hosts)
        )
        found = [host[:2] for host, is_known in zip(hosts, known, strict=True) if is_known]
        if found:
            self._begin_again(found)
        self._found(node_name(host, port) for host, port in found)
        self._client.force_metadata_update()

    def _begin_again(self, hosts: list[tuple[str, int]]) -> None:
        """Replace the brokers by the bootstrap servers, as the Java client does.

        Topics and partitions are kept without leaders, because a group leader may need them.
        """
        self._close_all()
        cluster = self._client.cluster
        cluster._bootstrap_brokers = {
            f"bootstrap-{n}": BrokerMetadata(f"bootstrap-{n}", host, port, None)
            for n, (host, port) in enumerate(hosts)
        }
        cluster._brokers = {}
        cluster._broker_partitions.clear()
        for partitions in cluster._partitions.values():
            for number, partition in partitions.items():
                partitions[number] = partition._replace(leader=_NO_LEADER)

    def _set_timer(self, at_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at_ms is not None:
            self._timer = self._loop.call_later(
                max(0, at_ms + 1 - monotonic_ms()) / 1_000, self._on_time
            )

    def _arm(self) -> None:
        super()._arm()
        # Wake the tasks that wait for a node.
        self._changed.set()
        self._changed.clear()

    @property
    def _conns(self) -> dict[Any, Any]:
        conns: dict[Any, Any] = self._client._conns
        return conns

    def _name_of(self, node_id: Any) -> str | None:
        broker = self._client.cluster.broker_metadata(node_id)
        return None if broker is None else node_name(broker.host, broker.port)
