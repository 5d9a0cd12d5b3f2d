"""Cases that are too rare to be drawn, such as a controller that becomes active too early."""

import pytest

from probing.features import METADATA_VERSION, FinalizedLevels, LevelRecord
from system_tests.cluster.events import (
    Activated,
    Left,
    Regarded,
    Resigned,
    Standing,
    Started,
    Stopped,
)
from system_tests.cluster.nodes.controller import SESSION_MS
from system_tests.cluster.nodes.programs import Start
from system_tests.cluster.nodes.simulation import Batch
from tests.system_tests.cluster.clusters import start_cluster


@pytest.mark.kip("778-10", "sim")
def test_an_active_controller_that_comes_to_read_a_level_that_it_lacks_resigns_and_ends():
    operator = start_cluster()
    cluster = operator.cluster
    for node in list(cluster.nodes):
        cluster.stop(node)
    # The level was appended, reached one other controller, and was not committed before the stop.
    term = cluster.controllers[0].disk.term
    record = LevelRecord(feature=METADATA_VERSION, level=21)
    cluster.by_name["c0"].disk.log.append(Batch(term, (record,)))
    begun = len(cluster.trace)
    for name in ("c0", "c1"):
        cluster.start(cluster.by_name[name], Start(program="3.8"))
    cluster.run(
        until=lambda: any(isinstance(event, Left) for event in cluster.trace), within_ms=30_000
    )
    happened = [
        event for event in cluster.trace[begun:] if isinstance(event, Activated | Left | Resigned)
    ]
    of_c0 = [event for event in happened if event.node == "c0"]
    assert [type(event) for event in of_c0] == [Activated, Left, Resigned]
    assert of_c0[1].reaction == "resign and terminate"
    ends = [event for event in cluster.trace[begun:] if isinstance(event, Stopped)]
    assert [(event.node, event.how) for event in ends] == [("c0", "ended")]
    # With a program that supports it, the cluster continues and commits the level.
    for name in ("c0", "c1"):
        cluster.stop(cluster.by_name[name])
    for node in list(cluster.nodes):
        cluster.start(node, Start(program="3.9"))
    operator.settle()
    assert cluster.trace[-1].finalized.level_of(METADATA_VERSION) == 21


@pytest.mark.kip("778-10", "sim")
def test_a_broker_that_slept_through_an_update_unregisters_with_the_controller_and_ends():
    operator = start_cluster(brokers=2, series="3.8")
    operator.roll(Start(program="3.9"), but=("b1",))
    cluster = operator.cluster
    cluster.pause(cluster.by_name["b1"], 2 * SESSION_MS)
    cluster.simulation.run_for(SESSION_MS + 1_000)
    begun = len(cluster.trace)
    # It sent nothing for a session, so it is not asked.
    assert operator.update({METADATA_VERSION: 21}).ok
    cluster.run(until=lambda: not cluster.by_name["b1"].is_up, within_ms=30_000)
    cluster.simulation.run_for(500)
    kinds = (Left, Stopped, Regarded)
    happened = [event for event in cluster.trace[begun:] if isinstance(event, kinds)]
    assert happened.pop(0).standing is Standing.REJECTED
    assert [(type(event), event.node) for event in happened] == [(kind, "b1") for kind in kinds]
    assert happened[2].standing is Standing.UNREGISTERED
    assert happened[0].reaction == "unregister and terminate"
    # The controller removes it within another session timeout.
    assert happened[2].at_ms < happened[0].at_ms + SESSION_MS
    assert set(cluster.active().machine.registrations) == {"b0", "c0", "c1", "c2"}


def test_a_controller_with_an_emptied_disk_learns_all_from_the_others():
    operator = start_cluster()
    cluster = operator.cluster
    operator.update_until_accepted({METADATA_VERSION: 21})
    operator.write(5)
    operator.settle()
    node = cluster.by_name["c1"]
    cluster.stop(node)
    node.disk = type(node.disk)()
    operator.bounce(node, Start(program="3.9"))
    content = [node.replica.content for node in cluster.nodes]
    assert all(replica == content[0] for replica in content)
    assert cluster.by_name["c1"].published == FinalizedLevels(
        levels={METADATA_VERSION: 21}, epoch=2
    )


def test_peers_use_levels_with_a_node_that_starts_alone():
    operator = start_cluster(brokers=2)
    cluster = operator.cluster
    operator.update_until_accepted({METADATA_VERSION: 21})
    starts = sum(isinstance(event, Started) for event in cluster.trace)
    assert starts == len(cluster.nodes)
    assert all(set(node.spoken.values()) == {21} for node in cluster.nodes)
