"""Builds a cluster: registers the handlers of all messages and timers."""

from typing import Any, Final

from probing.features import Role
from system_tests.cluster.events import FaultInjected
from system_tests.cluster.nodes import brokers, quorum, reading
from system_tests.cluster.nodes import controller as active
from system_tests.cluster.nodes.programs import Realm
from system_tests.cluster.nodes.simulation import Handler, Node, World

_HANDLERS: Final[dict[str, Handler]] = {
    "append": quorum.on_append,
    "appended": quorum.on_appended,
    "ask": reading.on_ask,
    "beat": quorum.on_beat,
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


def build_world(seed: int, realm: Realm, *, controllers: int, brokers: int) -> World:
    """Return a cluster in which no node runs."""
    world = World(seed, realm, controllers=controllers, brokers=brokers)
    world.handlers.update(_HANDLERS)
    world.handlers["!kill"] = _kill
    world.handlers["!pause"] = _pause
    world.handlers["!start"] = _start
    world.handlers["!lag"] = _lag
    world.starters = [reading.start_reader, _start_role]
    return world


def _start_role(world: World, node: Node) -> None:
    if node.role is Role.CONTROLLER:
        quorum.start_voter(world, node)
    else:
        brokers.start_broker(world, node)


def _kill(world: World, node: Node, data: tuple[Any, ...]) -> None:
    """Kill a node, and restart it on the same release after `down_ms`."""
    (down_ms,) = data
    if node.is_up:
        world.stop(node, "kill")
        world.do_later(down_ms, "start", node)


def _start(world: World, node: Node, _data: tuple[Any, ...]) -> None:
    if node.start.program:
        world.start(node, node.start)


def _pause(world: World, node: Node, data: tuple[Any, ...]) -> None:
    if node.is_up:
        world.pause(node, data[0])


def _lag(world: World, node: Node, data: tuple[Any, ...]) -> None:
    lag_ms, for_ms = data
    node.lag_ms = lag_ms
    if lag_ms:
        world.record(FaultInjected(world.now_ms, node.name, f"lags by {lag_ms} ms for {for_ms} ms"))
        world.do_later(for_ms, "lag", node, 0, 0)
