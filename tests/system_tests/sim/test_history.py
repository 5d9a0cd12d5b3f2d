"""The models of releases have the bugs that Kafka shipped, until they were fixed."""

from collections import Counter

import pytest

from system_tests.coordinator import GroupEvent
from system_tests.sim import BounceOptions, Cause, World, WorldSetup, run_bounce
from system_tests.sim.world.disk import StateRates


def rules(old, new, *, seeds, **options):
    """First broken rule of each seed, counted."""
    counted = Counter()
    for seed in range(seeds):
        outcome = run_bounce(BounceOptions(seed=seed, old=old, new=new, **options))
        counted[outcome.broken[0].rule if outcome.broken else "good"] += 1
    return counted


def restarts_at_every_step(release, *, static):
    """One member runs, a second joins; each restarts at every step. Return the outcomes."""
    # Without state, tasks move at once and wait only for their owners.
    stateless = StateRates(history=0, growth=0)
    world = World(WorldSetup(seed=1, static=static, processes=2, rates=stateless))
    world.start(0, release)
    assert world.run(until=world.is_settled, within_ms=100_000)
    world.start(1, release)
    moments = []
    while len(moments) < 4 or not world.is_settled():
        moments.append(world.copy())
        world.step()
    found = Counter()
    for moment in moments:
        for victim in (0, 1):
            branch = moment.copy()
            branch.kill(victim)
            branch.do_later(1_000, "restart", victim)
            settles = branch.run(until=branch.is_settled, within_ms=60_000)
            running = {p for thread in branch.threads for p in thread.owned}
            everything = running == set(branch.task_of)
            found["good" if settles and everything else "restless" if everything else "idle"] += 1
    return found


@pytest.mark.parametrize("old", ["2.0.1", "2.0.0"])
@pytest.mark.parametrize("new", ["2.1.1", "2.2.1", "2.3.0"])
def test_kafka_8649_a_member_gets_a_version_that_it_cannot_write(old, new):
    found = rules(old, new, seeds=8, force=True)
    assert set(found) == {"good", "sets what it speaks"}


@pytest.mark.parametrize("new", ["2.2.2", "2.3.1", "2.4.1"])
def test_kafka_8649_is_gone_where_it_was_fixed(new):
    options = {} if new == "2.4.1" else {"force": True}
    assert set(rules("2.0.1", new, seeds=8, **options)) == {"good"}


@pytest.mark.parametrize("release", ["2.4.1", "2.5.1"])
def test_kafka_9821_a_follow_up_is_lost_with_the_member_that_remembers_it(release):
    found = restarts_at_every_step(release, static=True)
    assert found["idle"] > 0
    assert set(restarts_at_every_step(release, static=False)) == {"good"}


@pytest.mark.parametrize("release", ["2.4.1", "2.5.1"])
def test_before_2_6_only_who_gives_partitions_up_asks_for_the_next_rebalance(release):
    world = World(WorldSetup(seed=1, processes=2, rates=StateRates(history=0, growth=0)))
    world.start(0, release)
    assert world.run(until=world.is_settled, within_ms=100_000)
    world.start(1, release)
    wishes = set()
    while not world.is_settled():
        world.step()
        wishes |= {
            pending.data for pending in world.scheduler.unordered() if pending.kind == "fire"
        }
    joined = [event for event in world.trace if isinstance(event, GroupEvent)]
    assert Cause.REVOKED in {event.reason for event in joined}
    assert not wishes, "a requested rejoin leaves the group"


def test_kafka_10455_a_rejoin_with_the_same_bytes_is_ignored():
    found = restarts_at_every_step("2.6.0", static=True)
    assert found["idle"] > 0


@pytest.mark.parametrize("release", ["2.6.1", "2.8.2", "3.9.1", "native"])
def test_kafka_9821_and_10455_are_gone_where_they_were_fixed(release):
    assert set(restarts_at_every_step(release, static=True)) == {"good"}
    assert set(restarts_at_every_step(release, static=False)) == {"good"}


@pytest.mark.slow
def test_kafka_14382_follow_ups_during_a_rebalance_never_end():
    found = rules("2.8.2", "3.3.1", seeds=10, faults=frozenset({"slow"}))
    assert found["settles"] > 0
    assert set(found) == {"good", "settles"}


def test_kafka_14382_is_gone_where_it_was_fixed():
    assert set(rules("2.8.2", "3.3.2", seeds=10, faults=frozenset({"slow"}))) == {"good"}


def test_kafka_6054_a_leader_answers_version_1_members_in_version_2():
    found = rules("0.10.0.1", "0.10.1.1", seeds=8, force=True)
    assert "good" not in found
    assert set(found) <= {"nobody dies", "answered within used"}
    assert set(rules("0.10.0.1", "0.10.2.2", seeds=8)) == {"good"}
