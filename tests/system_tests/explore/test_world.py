"""The world of the search: copies are independent, and equal assignments are computed once."""

from system_tests.explore.moves import group_moves, happen
from system_tests.explore.world import RememberedLead, SearchWorld, search_setup


def world_before_an_answer():
    """Two members that joined; the next message is the leader's JoinGroup response."""
    world = SearchWorld(search_setup(processes=2, threads=1, static=False, partitions=4))
    for process in range(2):
        world.start(process, "native")
        world.settle_threads()
    return world


def run(world):
    """Take moves until none is left; return the trace."""
    while moves := group_moves(world, reduced=False):
        happen(world, moves[0])
        world.settle_threads()
    return list(world.trace)


def test_equal_requests_to_a_leader_get_the_cached_assignment():
    world = world_before_an_answer()
    first = run(world.copy())
    asked = dict(world.lead.known)
    assert asked
    again = run(world.copy())
    assert again == first
    assert world.lead.known == asked  # nothing new was computed
    assert all(world.lead.known[key] is asked[key] for key in asked)
    fresh = world.copy()
    fresh.lead = RememberedLead()
    assert run(fresh) == first


def test_a_copy_of_a_world_leaves_the_original_alone():
    world = world_before_an_answer()
    before = [vars(thread).copy() for thread in world.threads]
    group = world.group.copy()
    run(world.copy())
    assert [vars(thread) for thread in world.threads] == before
    assert world.group == group
