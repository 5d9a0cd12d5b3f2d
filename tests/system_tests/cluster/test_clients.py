"""A group of clients and a cluster with outdated brokers: T0 to T5 of KIP-584, and its pitfalls."""

import pytest

from probing.features import METADATA_VERSION, FinalizedLevels, UpdateKind
from system_tests.cluster import check_kraft
from system_tests.cluster.events import Acknowledged, Committed, Published, Started
from system_tests.cluster.nodes.clients import group_levels_of
from system_tests.cluster.nodes.programs import Start
from system_tests.sim import Adopted, Answered, Looked
from tests.system_tests.cluster.clusters import start_cluster

FROZEN_MS = 10**6


def levels(group):
    """The levels of the cluster that the members go by."""
    return {thread.name: thread.streams.state.levels for thread in group.world.threads}


def are_at(group, level):
    """Whether all members go by what a level of the cluster stands for."""
    finalized = FinalizedLevels(levels={METADATA_VERSION: level})
    wanted = group_levels_of(finalized, METADATA_VERSION).levels
    return all(found.levels == wanted for found in levels(group).values())


def rebalances(trace):
    return [event for event in trace if isinstance(event, Answered)]


def when(trace, kind, **fields):
    return next(
        event.at_ms
        for event in trace
        if isinstance(event, kind) and all(getattr(event, k) == v for k, v in fields.items())
    )


@pytest.mark.kip("584-10", "sim")
def test_clients_follow_levels_from_t0_to_t5():
    operator = start_cluster(brokers=3, members=3, series="3.8", formatted=20)
    cluster, group = operator.cluster, operator.group
    # T0: the old programs; the leader polls the brokers and learns level 20.
    assert are_at(group, 20)
    # T1, T2: all brokers get the new program; the level is unchanged, so the group is, too.
    before = len(rebalances(cluster.trace))
    operator.roll(Start(program="3.9"))
    assert len(rebalances(cluster.trace)) == before
    # T3: an operator finalizes 21; T3 to T4: brokers learn it one after the other; the leader
    # polls; T5: one rebalance, and all members use 21.
    begun = len(cluster.trace)
    operator.update({METADATA_VERSION: 21})
    operator.settle()
    trace = cluster.trace[begun:]
    t3 = when(trace, Acknowledged)
    t4 = when(trace, Looked, asks=True)
    t5 = [event.at_ms for event in trace if isinstance(event, Adopted)]
    assert when(trace, Committed) <= t3 <= t4 <= min(t5)
    assert len(t5) == group.size
    assert len(rebalances(trace)) == 1
    assert not any(isinstance(event, Started) for event in trace)
    assert list(check_kraft(cluster.trace, cluster.realm)) == []


@pytest.mark.kip("584-13", "sim")
def test_brokers_learn_at_different_times_and_nobody_goes_by_what_is_not_finalized():
    operator = start_cluster(brokers=3, members=3)
    cluster = operator.cluster
    operator.group.answers_from, operator.group.look_ms = "b0", (200, 300)
    for place, broker in enumerate(cluster.brokers):
        broker.lag_ms = place * 900
    cluster.simulation.run_for(4_000)
    begun = len(cluster.trace)
    operator.update({METADATA_VERSION: 21})
    operator.settle()
    trace = cluster.trace[begun:]
    committed = when(trace, Committed)
    learned = {event.node: event.at_ms for event in trace if isinstance(event, Published)}
    assert committed <= learned["b0"] < learned["b2"]
    adopted = [event.at_ms for event in trace if isinstance(event, Adopted)]
    assert committed <= min(adopted) < learned["b2"], "the group does not wait for every broker"
    assert list(check_kraft(cluster.trace, cluster.realm)) == []


STEPS = range(5)


@pytest.mark.kip("584-11", "sim")
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("goes", ["up", "up and down"])
def test_a_stale_broker_at_any_step_takes_nobody_back(step, goes):
    """From the given step on, only an outdated broker is polled."""
    operator = start_cluster(brokers=3, members=3)
    cluster, group = operator.cluster, operator.group
    cluster.by_name["b0"].lag_ms = FROZEN_MS
    group.answers_from = "b1"
    begun = len(cluster.trace)
    operator.update({METADATA_VERSION: 21})
    newest = levels(group)

    def steps():
        return sum(isinstance(event, Answered | Adopted) for event in cluster.trace[begun:])

    assert cluster.run(until=lambda: steps() >= step, within_ms=30_000)
    group.answers_from = "b0"
    if goes == "up and down":
        operator.update({METADATA_VERSION: 20}, UpdateKind.SAFE_DOWNGRADE)
    for _ in range(4):
        cluster.simulation.run_for(3_000)
        for name, found in levels(group).items():
            assert found.epoch >= newest[name].epoch
        newest = levels(group)
    # A leader without levels that polls the stale broker gets newer levels from the members.
    known = max(found.epoch for found in newest.values())
    leader = group.world.leader()
    group.restart(leader.process)
    cluster.simulation.run_for(4_000)
    if step > 1:
        assert levels(group)[leader.name].epoch == known
    group.answers_from = "b2"
    cluster.simulation.run_for(8_000)
    wanted = 20 if goes == "up and down" else 21
    assert are_at(group, wanted)
    assert [event.rule for event in check_kraft(cluster.trace, cluster.realm)] == []


def test_an_operators_step_down_is_followed():
    operator = start_cluster(brokers=2, members=3, formatted=21)
    operator.update({METADATA_VERSION: 20}, UpdateKind.SAFE_DOWNGRADE)
    operator.settle()
    assert are_at(operator.group, 20)
