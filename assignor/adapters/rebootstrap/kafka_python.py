"""Rebootstrap for kafka-python 3.0: consumers, producers and admin clients (KIP-899, KIP-1102).

```
consumer = KafkaConsumer("words", bootstrap_servers="kafka.example:9092", group_id="word-count")
supervisor = supervise(consumer)
```

kafka-python has no hooks for this, so the supervisor uses private parts of the client, only in this
file. `supervise` rejects untested versions, and a test compares the source of every function that
it relies on. As in the Java client, the bootstrap servers replace the brokers in the client's
metadata, and the client's next metadata refresh finds the new brokers.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import kafka
from kafka.admin import KafkaAdminClient
from kafka.errors import (
    KafkaConnectionError,
    MetadataEmptyBrokerList,
    NodeNotReadyError,
    RetriableError,
    UnknownBrokerIdError,
)

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
    RecoveryStrategy,
    rebootstrap_config,
)

_TESTED_VERSION = "3.0"
# The node id under which kafka-python stores its back-off between metadata requests.
_REFRESH = "metadata"
_NO_LEADER = -1
_SETUP_GRACE_MS = 1_000
_INSTALL_S = 30.0


def supervise(
    client: Any,
    *,
    metadata_recovery_strategy: str = "rebootstrap",
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000,
    listener: Listener | None = None,
) -> "KafkaPythonSupervisor":
    """Supervise a client, so that it rebootstraps when none of its brokers is available.

    Reconnect back-off and connection set-up timeouts are the client's own settings. kafka-python's
    default for the longest back-off is 30 s; Kafka's is `reconnect_backoff_max_ms=1000`.

    Args:
        client: a `KafkaConsumer`, `KafkaProducer` or `KafkaAdminClient`.
        metadata_recovery_strategy: `rebootstrap`; or `none`, to report the server's demands only.
        metadata_recovery_rebootstrap_trigger_ms: time without metadata after which the client
            rebootstraps.
        listener: called on the client's I/O thread; it must not block.

    Raises:
        TypeError: `client` is not a client of kafka-python.
        UntestedClientError: this version of kafka-python is not supported.
        RebootstrapConfigError: a setting is out of range.
        AlreadySupervisedError: the client already has a supervisor.
    """
    check_tested("kafka-python", kafka.__version__, tested=_TESTED_VERSION)
    manager = _manager_of(client)
    config = rebootstrap_config(
        {
            "metadata.recovery.strategy": metadata_recovery_strategy,
            "metadata.recovery.rebootstrap.trigger.ms": metadata_recovery_rebootstrap_trigger_ms,
            "reconnect.backoff.ms": manager.config["reconnect_backoff_ms"],
            "reconnect.backoff.max.ms": manager.config["reconnect_backoff_max_ms"],
            **{
                f"socket.connection.setup.timeout.{end.replace('_', '.')}": manager.config[
                    f"socket_connection_setup_timeout_{end}"
                ]
                for end in ("ms", "max_ms")
            },
        }
    )
    return KafkaPythonSupervisor(manager, client, config, listener)


def supervise_own(client: Any, **settings: Any) -> "KafkaPythonSupervisor | None":
    """Supervise a client that this package created; see `supervised_if_tested`."""
    return supervised_if_tested(lambda: supervise(client, **settings))


def _manager_of(client: Any) -> Any:
    """Return the connection manager of a client."""
    match client:
        case kafka.KafkaConsumer() | KafkaAdminClient():
            return client._manager
        case kafka.KafkaProducer():
            return client._sender._client._manager
        case _:
            raise TypeError(
                f"{type(client).__name__} is not a client of kafka-python; give a KafkaConsumer, "
                "a KafkaProducer or a KafkaAdminClient"
            )


class KafkaPythonSupervisor(RebootstrapSupervisor):
    """Supervises one connection manager of kafka-python; `supervise` creates it."""

    def __init__(
        self, manager: Any, owner: Any, config: RebootstrapConfig, listener: Listener | None
    ) -> None:
        super().__init__(config, listener, manager.config["bootstrap_servers"])
        self._manager = manager
        self._cluster = manager.cluster
        self._net = manager._net
        self._owner = owner
        self._timer: Any = None
        self._hooks: tuple[tuple[Any, str, Callable[..., Any]], ...] = (
            (manager, "get_connection", self._get_connection),
            (manager, "update_backoff", self._update_backoff),
            (self._cluster, "metadata_request", self._metadata_request),
            (self._cluster, "update_metadata", self._update_metadata),
            (self._cluster, "failed_update", self._failed_update),
        )
        self._its: dict[str, Callable[..., Any]] = {
            name: getattr(holder, name) for holder, name, _ in self._hooks
        }
        if "get_connection" in vars(manager):
            raise AlreadySupervisedError
        self._run(self._install)

    def close(self) -> None:
        """Stop supervising; call it before or after the client is closed."""
        with suppress(RuntimeError):  # the event loop has ended, so nothing remains to be done
            self._run(self._uninstall)
        self._is_closed = True
        self._end_outage()

    # Methods that run on the client's event loop

    def _install(self) -> None:
        brokers = self._cluster.brokers() or self._cluster.bootstrap_brokers()
        self._know(node_name(broker.host, broker.port) for broker in brokers)
        for holder, name, replacement in self._hooks:
            setattr(holder, name, replacement)
        if self._cluster.metadata_refresh_in_progress:  # a metadata request is already pending
            self._see(MetadataWanted(now_ms=monotonic_ms()))

    def _uninstall(self) -> None:
        self._is_closed = True
        self._set_timer(None)
        for holder, name, _ in self._hooks:
            holder.__dict__.pop(name, None)

    def _get_connection(self, node_id: Any, *args: Any, **kwargs: Any) -> Any:
        before = self._conns.get(node_id)
        try:
            connection = self._its["get_connection"](node_id, *args, **kwargs)
        except UnknownBrokerIdError as error:
            # A rebootstrap has forgotten the node: the client repeats the request on another one.
            raise NodeNotReadyError(node_id) from error
        name = self._name_of(node_id)
        if connection is before or name is None:
            return connection
        limit_ms = self._manager.socket_connection_setup_timeout_ms(node_id) + _SETUP_GRACE_MS
        self._see(ConnectionStarted(now_ms=monotonic_ms(), node=name, limit_ms=int(limit_ms)))
        connection.init_future.add_callback(
            lambda _: self._see(ConnectionReady(now_ms=monotonic_ms(), node=name))
        )
        # The client reconnects at once after a closed connection. After a failed connection
        # attempt `update_backoff` reports the back-off.
        connection.close_future.add_both(
            lambda _: self._see(ConnectionLost(now_ms=monotonic_ms(), node=name, back_off_ms=0))
        )
        return connection

    def _update_backoff(self, node_id: Any) -> Any:
        back_off_ms = self._its["update_backoff"](node_id)
        now_ms = monotonic_ms()
        name = self._name_of(node_id)
        if node_id == _REFRESH:
            self._see(MetadataWanted(now_ms=now_ms))
        elif name is not None:
            self._see(
                ConnectionLost(now_ms=now_ms, node=name, back_off_ms=max(1, int(back_off_ms)))
            )
        return back_off_ms

    def _metadata_request(self) -> Any:
        self._see(MetadataWanted(now_ms=monotonic_ms()))
        return self._its["metadata_request"]()

    def _update_metadata(self, response: Any) -> None:
        self._its["update_metadata"](response)
        nodes = tuple(node_name(broker[1], broker[2]) for broker in response.brokers)
        error_code = getattr(response, "error_code", None) or 0
        self._see(MetadataReceived(now_ms=monotonic_ms(), nodes=nodes, error_code=error_code))

    def _failed_update(self, error: BaseException) -> None:
        """Keep waiting for metadata after a retriable error, which `poll` would raise otherwise."""
        is_pause = isinstance(error, RetriableError | MetadataEmptyBrokerList)
        if is_pause and self._state.config.strategy is RecoveryStrategy.REBOOTSTRAP:
            self._cluster._last_refresh_ms = time.monotonic() * 1_000
        else:
            self._its["failed_update"](error)

    def _close_all(self) -> None:
        for connection in list(self._conns.values()):
            connection.close(KafkaConnectionError("closed by a rebootstrap"))
        coordinator: Any = getattr(self._owner, "_coordinator", None)
        if coordinator is not None:
            coordinator.coordinator_dead("rebootstrap")

    def _give_up(self, node: str, why: str) -> None:
        for node_id, connection in list(self._conns.items()):
            if self._name_of(node_id) == node and connection.initializing:
                connection.close(KafkaConnectionError(why))

    def _look_up(self) -> None:
        threading.Thread(target=self._resolve, name="bootstrap-servers", daemon=True).start()

    def _resolve(self) -> None:
        """Resolve the bootstrap servers on a separate thread; kafka-python would block its loop."""
        found: dict[str, Any] = {}
        with suppress(OSError, UnicodeError):  # nothing is resolved; a retry follows a back-off
            brokers = self._cluster._generate_bootstrap_brokers()
            found = {
                node_id: broker
                for node_id, broker in sorted(brokers.items())
                if can_be_resolved(broker.host, broker.port)
            }
        with suppress(RuntimeError, ReferenceError):  # the client was closed meanwhile
            self._net.call_soon_threadsafe(lambda: self._begin_again(found))

    def _begin_again(self, brokers: dict[str, Any]) -> None:
        """Replace the brokers by the bootstrap servers, as the Java client does.

        Topics and partitions are kept without leaders, because a group leader may need them.
        """
        if brokers and not self._is_closed:
            self._close_all()
            cluster = self._cluster
            with cluster._lock:
                cluster._bootstrap_brokers = brokers
                cluster._brokers = dict(brokers)
                cluster._broker_partitions.clear()
                for partitions in cluster._partitions.values():
                    for partition in partitions.values():
                        partition.leader_id = _NO_LEADER
            if isinstance(self._owner, KafkaAdminClient):
                # The admin client caches them without expiry.
                self._owner._controller_id = None
                cluster._coordinators.clear()
                cluster._coordinator_brokers.clear()
        self._found(node_name(broker.host, broker.port) for broker in brokers.values())
        self._manager.reset_backoff(_REFRESH)
        self._cluster.request_update()

    def _set_timer(self, at_ms: int | None) -> None:
        if self._timer is not None:
            self._net.cancel(self._timer)
            self._timer = None
        if at_ms is not None:
            self._timer = self._net.call_at((at_ms + 1) / 1_000, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._on_time()

    # Steps

    @property
    def _conns(self) -> dict[Any, Any]:
        conns: dict[Any, Any] = self._manager._conns
        return conns

    def _name_of(self, node_id: Any) -> str | None:
        """Return the node's name; None for the separate connection to a group coordinator."""
        known = self._cluster._brokers.get(node_id)
        broker = known or self._cluster._bootstrap_brokers.get(node_id)
        return None if broker is None else node_name(broker.host, broker.port)

    def _run(self, work: Callable[[], None]) -> None:
        """Run a function on the client's event loop and wait for it.

        Raises:
            RuntimeError: the event loop has ended or is blocked.
        """
        done = threading.Event()
        self._manager.call_soon(work).add_both(lambda _: done.set())
        if not done.wait(_INSTALL_S):
            raise RuntimeError(f"the client's event loop was blocked for {_INSTALL_S:.0f} s")
