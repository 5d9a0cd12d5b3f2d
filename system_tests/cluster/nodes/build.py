"""Builds a cluster: registers the handlers of all messages and timers."""

from typing import Any, Final

from probing.features import Role
from system_tests.cluster.nodes import brokers, quorum, reading
from system_tests.cluster.nodes import controller as active
from system_tests.cluster.nodes.programs import Realm
from system_tests.cluster.nodes.simulation import Cluster, Handler, Node
from system_tests.engine import Simulation
from system_tests.sim import Happened

_HANDLERS: Final[dict[str, Handler]] = {
    "append": quorum.on_append,
    "appended": quorum.on_appended,
    "ask": reading.on_ask,
    "replicate": quorum.on_replicate,
    "fetch": brokers.on_fetch,
    "fetched": brokers.on_fetched,
    "fetching": brokers.on_fetching,
    "moved": brokers.on_moved,
    "register": active.on_register,
    "registered": brokers.on_registered,
    "rejected": brokers.on_rejected,
    "sessions": active.on_sessions,
    "spread": quorum.on_spread,
    "takeover": quorum.on_takeover,
    "unregister": active.on_unregister,
}


def build_cluster(
    simulation: Simulation, realm: Realm, *, controllers: int, brokers: int
) -> Cluster:
    """Return a cluster in which no node runs."""
    cluster = Cluster(simulation, realm, controllers=controllers, brokers=brokers)
    actions = {"kill": _kill, "pause": _pause, "start": _start, "lag": _lag}
    cluster.handle(_HANDLERS, actions)
    cluster.starters = [reading.start_reader, _start_role]
    return cluster


def _start_role(cluster: Cluster, node: Node) -> None:
    if node.role is Role.CONTROLLER:
        quorum.start_voter(cluster, node)
    else:
        brokers.start_broker(cluster, node)


def _kill(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """Kill a node, and restart it on the same release after `down_ms`."""
    (down_ms,) = data
    if node.is_up:
        cluster.stop(node, "kill")
        cluster.do_later(down_ms, "start", node)


def _start(cluster: Cluster, node: Node, _data: tuple[Any, ...]) -> None:
    if node.start.program:
        cluster.start(node, node.start)


def _pause(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    if node.is_up:
        cluster.pause(node, data[0])


def _lag(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    lag_ms, for_ms = data
    node.lag_ms = lag_ms
    if lag_ms:
        cluster.record(
            Happened(cluster.now_ms, "", f"fault: {node.name} lags by {lag_ms} ms for {for_ms} ms")
        )
        cluster.do_later(for_ms, "lag", node, 0, 0)
