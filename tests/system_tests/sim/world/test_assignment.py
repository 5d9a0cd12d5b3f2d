"""A simulated member handles an answer like a member on a client, with the same waits."""

import pytest

from system_tests.sim import World, WorldSetup
from system_tests.sim.events import Ended
from system_tests.sim.world import assignment
from system_tests.sim.world.thread import Phase
from system_tests.sim.world.wire import write_assignment

UNREADABLE = b"\xff\xff"


def settled(release):
    world = World(WorldSetup(seed=1, processes=1))
    world.start(0, release)
    assert world.run(until=world.is_settled, within_ms=100_000)
    return world, world.threads[0]


def waits_ms(world, thread):
    """Milliseconds until each pending rejoin."""
    return [
        pending.due_ms - world.now_ms
        for pending in world.scheduler.unordered()
        if pending.kind == "fire" and pending.data[:2] == (thread.incarnation, thread.followup)
    ]


def test_a_native_member_waits_twice_as_long_after_each_unreadable_answer():
    world, thread = settled("native")
    waited = []
    for _ in range(8):
        assignment.take(world, thread, write_assignment(thread.owned, UNREADABLE))
        assert thread.phase is Phase.STABLE
        waited += waits_ms(world, thread)
    assert waited == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]


def test_after_the_wait_it_rejoins_and_a_valid_answer_ends_the_back_off():
    world, thread = settled("native")
    generation = thread.generation
    assignment.take(world, thread, write_assignment(thread.owned, UNREADABLE))
    world.run_for(900)
    assert thread.generation == generation
    assert world.run(until=world.is_settled, within_ms=60_000)
    assert thread.generation == generation + 1
    assignment.take(world, thread, write_assignment(thread.owned, UNREADABLE))
    assert waits_ms(world, thread) == [1_000]


@pytest.mark.parametrize("release", ["3.9.1", "2.3.1"])
def test_a_jvm_member_fails_after_an_unreadable_answer(release):
    world, thread = settled(release)
    assignment.take(world, thread, write_assignment(thread.owned, UNREADABLE))
    assert thread.phase is Phase.DOWN
    assert [event.failed for event in world.trace if isinstance(event, Ended)] == [True]
