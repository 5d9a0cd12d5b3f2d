"""Brokers: they fetch the committed log and register with the active controller."""

from typing import Any, Final

from system_tests.cluster.machines.controller import NodeHeard
from system_tests.cluster.nodes.controller import step
from system_tests.cluster.nodes.reading import install_snapshot, read_batch
from system_tests.cluster.nodes.simulation import Cluster, Node

_FETCH_MS: Final = 400
_PATIENCE_MS: Final = 1_000
_BATCHES: Final = 50


def start_broker(cluster: Cluster, node: Node) -> None:
    """Start to fetch."""
    cluster.later(node, cluster.scheduler.delay(1, _FETCH_MS), "fetching")


def on_fetching(cluster: Cluster, node: Node, _data: tuple[Any, ...]) -> None:
    """Timer: fetch the next batches from the presumed active controller; register if needed."""
    cluster.later(node, _FETCH_MS + node.lag_ms, "fetching")
    if cluster.now_ms - node.answered_ms > _PATIENCE_MS + node.lag_ms:
        node.contact = (node.contact + 1) % len(cluster.controllers)
        node.answered_ms = cluster.now_ms
    controller = cluster.controllers[node.contact]
    caught_up = node.is_registered and node.replica.next_offset >= node.registered_at
    cluster.send(
        controller, "fetch", node.name, node.incarnation, node.replica.next_offset, caught_up
    )
    if not node.is_registered:
        cluster.send(controller, "register", node.name, node.incarnation, node.support)


def on_fetch(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """A controller receives a fetch; only the active one answers with batches."""
    name, incarnation, offset, caught_up = data
    broker = cluster.by_name[name]
    if not node.is_active or node.machine is None:
        cluster.send(broker, "moved", incarnation, node.leader)
        return
    row = node.machine.registrations.get(name)
    knows = row is not None and row.incarnation == incarnation
    if knows:
        node.heard_by_node[name] = cluster.now_ms
        heard = NodeHeard(node_id=name, incarnation=incarnation, is_caught_up=caught_up)
        step(cluster, node, heard)
    end = min(node.commit, offset + _BATCHES)
    batches = tuple(batch.records for batch in node.disk.log[offset:end])
    cluster.send(broker, "fetched", incarnation, offset, batches, node.disk.snapshot, knows)


def on_moved(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """The controller is not the active one; its response may name the active one."""
    incarnation, leader = data
    if incarnation != node.incarnation:
        return
    if leader:
        node.contact = cluster.by_name[leader].index
    else:
        node.contact = (node.contact + 1) % len(cluster.controllers)


def on_fetched(cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """A broker receives batches; it reads them in order, each once."""
    incarnation, offset, batches, snapshot, knows = data
    if incarnation != node.incarnation:
        return
    node.answered_ms = cluster.now_ms
    node.is_registered = node.is_registered and knows
    install_snapshot(cluster, node, snapshot)
    for place, records in enumerate(batches, start=offset):
        if node.is_up and place == node.replica.next_offset:
            read_batch(cluster, node, place, records)


def on_registered(_cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """The registration is committed; the broker is unfenced when it has read it."""
    incarnation, end = data
    if incarnation == node.incarnation:
        node.is_registered, node.is_rejected, node.registered_at = True, False, end


def on_rejected(_cluster: Cluster, node: Node, data: tuple[Any, ...]) -> None:
    """The registration is rejected; the broker stays fenced and registers again."""
    incarnation, _why = data
    if incarnation == node.incarnation:
        node.is_registered, node.is_rejected = False, True
