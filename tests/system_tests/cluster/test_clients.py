"""A group of clients and a cluster with outdated brokers: T0 to T5 of KIP-584, and its pitfalls."""

import pytest

from probing.features import METADATA_VERSION, UpdateKind
from system_tests.cluster import check_kraft
from system_tests.cluster.events import (
    Acknowledged,
    Adopted,
    Committed,
    Polled,
    Published,
    Rebalanced,
    Started,
)
from system_tests.cluster.nodes.programs import Start
from tests.system_tests.cluster.clusters import start_cluster

FROZEN_MS = 10**6


def level_of(finalized):
    return finalized.level_of(METADATA_VERSION)


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
    assert {level_of(member.adopted) for member in group.members} == {20}
    # T1, T2: all brokers get the new program; the level is unchanged, so the group is, too.
    rebalances = sum(isinstance(event, Rebalanced) for event in cluster.trace)
    operator.roll(Start(program="3.9"))
    assert sum(isinstance(event, Rebalanced) for event in cluster.trace) == rebalances
    # T3: an operator finalizes 21; T3 to T4: brokers learn it one after the other; the leader
    # polls; T5: one rebalance, and all members use 21.
    begun = len(cluster.trace)
    operator.update({METADATA_VERSION: 21})
    operator.settle()
    trace = cluster.trace[begun:]
    t3 = when(trace, Acknowledged)
    t4 = when(trace, Polled, rule="new levels")
    t5 = [event.at_ms for event in trace if isinstance(event, Adopted)]
    assert when(trace, Committed) <= t3 <= t4 <= min(t5)
    assert len(t5) == len(group.members)
    assert [event.cause for event in trace if isinstance(event, Rebalanced)] == ["levels"]
    assert not any(isinstance(event, Started) for event in trace)
    assert list(check_kraft(cluster.trace, cluster.realm)) == []


@pytest.mark.kip("584-13", "sim")
def test_brokers_learn_at_different_times_and_nobody_goes_by_what_is_not_finalized():
    operator = start_cluster(brokers=3, members=3)
    cluster = operator.cluster
    operator.group.answers_from, operator.group.poll_ms = "b0", (200, 300)
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
    newest = {member.name: member.adopted.epoch for member in group.members}

    def steps():
        return sum(isinstance(event, Rebalanced | Adopted) for event in cluster.trace[begun:])

    assert cluster.run(until=lambda: steps() >= step, within_ms=30_000)
    group.answers_from = "b0"
    if goes == "up and down":
        operator.update({METADATA_VERSION: 20}, UpdateKind.SAFE_DOWNGRADE)
    for _ in range(4):
        cluster.simulation.run_for(3_000)
        for member in group.members:
            assert member.adopted.epoch >= newest[member.name]
            newest[member.name] = member.adopted.epoch
    # A leader without levels that polls the stale broker gets newer levels from the members.
    known = max(newest.values())
    group.restart(group.leader)
    cluster.simulation.run_for(3_000)
    if step > 1:
        assert group.members[0].adopted.epoch == known
    group.answers_from = "b2"
    cluster.simulation.run_for(8_000)
    wanted = 20 if goes == "up and down" else 21
    assert {level_of(member.adopted) for member in group.members} == {wanted}
    assert [event.rule for event in check_kraft(cluster.trace, cluster.realm)] == []


def test_an_operators_step_down_is_followed():
    operator = start_cluster(brokers=2, members=3, formatted=21)
    operator.update({METADATA_VERSION: 20}, UpdateKind.SAFE_DOWNGRADE)
    operator.settle()
    assert {level_of(member.adopted) for member in operator.group.members} == {20}
