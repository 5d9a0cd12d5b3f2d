"""A world that stands still: copies are independent, and leaders answer each question once."""

from system_tests.explore.moves import group_moves, happen
from system_tests.explore.world import StillWorld, still_setup


def world_before_an_answer():
    """Two members that joined; the next message tells the leader who is there."""
    world = StillWorld(still_setup(processes=2, threads=1, static=False, partitions=4))
    for process in range(2):
        world.start(process, "native")
        world.settle_threads()
    return world


def run(world):
    """Move until nothing happens by itself; the trace."""
    while moves := group_moves(world, reduced=False):
        happen(world, moves[0])
        world.settle_threads()
    return list(world.trace)


def test_what_a_leader_was_asked_before_is_answered_alike():
    world = world_before_an_answer()
    first = run(world.copy())
    asked = dict(world.led)
    assert asked
    again = run(world.copy())
    assert again == first
    assert world.led == asked  # nothing new was computed
    assert all(world.led[key] is asked[key] for key in asked)
    fresh = world.copy()
    fresh.led = {}
    assert run(fresh) == first


def test_a_copy_of_a_world_leaves_the_original_alone():
    world = world_before_an_answer()
    before = [vars(thread).copy() for thread in world.threads]
    group = world.group.copy()
    run(world.copy())
    assert [vars(thread) for thread in world.threads] == before
    assert world.group == group
