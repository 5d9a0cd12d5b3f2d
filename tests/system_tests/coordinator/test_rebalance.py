"""Start, wait and end of a rebalance, and the members that it removes."""

from system_tests.coordinator import ErrorCode, EventKind


def test_first_rebalance_waits_for_more_members_and_longer_while_they_come(make_world):
    world = make_world(initial_rebalance_delay_ms=3_000)
    first = world.join(world.new_id())
    world.advance(2_900)
    second = world.join(world.new_id())
    world.advance(2_900)
    assert first not in world.answers
    world.advance(200)
    assert world.answers[first].generation == world.answers[second].generation == 1


def test_first_rebalance_is_extended_at_most_to_the_rebalance_timeout(make_world):
    world = make_world(initial_rebalance_delay_ms=3_000)
    first = world.join(world.new_id(), rebalance_timeout_ms=7_000)
    for _ in range(3):
        world.advance(2_300)
        world.join(world.new_id(), rebalance_timeout_ms=7_000)
    world.advance(99)
    assert first not in world.answers
    world.advance(1)
    assert world.answers[first].generation == 1


def test_rebalance_ends_early_when_every_known_member_is_back(world):
    ids = world.stable(3)
    tokens = [world.join(member_id, b"new") for member_id in ids]
    assert [world.answers[t].generation for t in tokens] == [4, 4, 4]
    assert world.now_ms == 0


def test_rebalance_waits_for_a_pending_member_until_its_session_would_be_over(world):
    (leader,) = world.stable(1)
    world.join()
    token = world.join(leader)
    world.advance(9_999)
    assert token not in world.answers
    world.advance(1)
    assert world.answers[token].generation == 2


def test_rebalance_ends_at_the_longest_rebalance_timeout_without_the_absent(make_world):
    world = make_world()
    leader = world.new_id()
    world.join(leader, rebalance_timeout_ms=20_000)
    slow = world.new_id()
    world.join(slow, rebalance_timeout_ms=30_000, session_timeout_ms=60_000)
    world.join(leader, rebalance_timeout_ms=20_000, session_timeout_ms=60_000)
    world.settle([leader, slow])
    token = world.join(leader, rebalance_timeout_ms=20_000, session_timeout_ms=60_000)
    world.advance(29_999)
    assert token not in world.answers
    world.advance(1)
    assert [m.member_id for m in world.answers[token].members] == [leader]
    assert (EventKind.MEMBER_EXPIRED, slow) in [(e.kind, e.member_id) for e in world.events]


def test_static_member_that_does_not_come_back_stays_until_its_session_ends(world):
    leader, static = world.stable(2, instances=(None, "i"), session_timeout_ms=100_000)
    token = world.join(leader, session_timeout_ms=100_000)
    world.advance(60_000)
    assert [m.member_id for m in world.answers[token].members] == [leader, static]


def test_leadership_moves_to_a_member_that_is_back_when_the_leader_is_not(world):
    leader, other = world.stable(2, instances=("a", "b"), session_timeout_ms=100_000)
    token = world.join(other, b"new", instance="b", session_timeout_ms=100_000)
    world.advance(60_000)
    assert world.answers[token].leader_id == other
    assert {m.member_id for m in world.answers[token].members} == {leader, other}


def test_with_nobody_back_the_rebalance_waits_for_static_members(world):
    fields = {"instances": ("a", "b"), "session_timeout_ms": 1_000_000}
    leader, other = world.stable(2, **fields)
    for member_id, generation in ((leader, 2), (other, 2)):
        assert world.heartbeat(member_id, generation) is ErrorCode.NONE
    dynamic = world.new_id()
    world.join(dynamic)
    world.leave(dynamic)
    world.advance(180_000)
    assert world.describe().state == "PreparingRebalance"
    assert len(world.describe().members) == 2


def test_members_that_never_ask_for_their_assignment_are_removed(world):
    fields = {"session_timeout_ms": 1_000_000}
    leader, silent = world.stable(2, **fields)
    world.join(leader, **fields)
    world.join(silent, **fields)
    world.sync(leader, 3, {leader: b"x"})
    world.advance(59_999)
    assert len(world.describe().members) == 2
    world.advance(1)
    assert [m.member_id for m in world.describe().members] == [leader]
    assert world.describe().state == "PreparingRebalance"


def test_leader_that_never_brings_an_assignment_is_removed_and_another_leads(world):
    fields = {"session_timeout_ms": 1_000_000}
    leader, follower = world.stable(2, **fields)
    world.join(leader, **fields)
    world.join(follower, **fields)
    parked = world.sync(follower, 3)
    world.advance(60_000)
    assert world.answers[parked].error is ErrorCode.REBALANCE_IN_PROGRESS
    token = world.join(follower, **fields)
    assert world.answers[token].leader_id == follower


def test_every_step_of_a_rebalance_is_in_the_history_with_its_reason(world):
    world.stable(1)
    history = [(e.kind.name, e.generation) for e in world.events]
    assert history == [
        ("MEMBER_ID_HANDED_OUT", 0),
        ("MEMBER_JOINED", 0),
        ("LEADER_ELECTED", 0),
        ("REBALANCE_STARTED", 0),
        ("GENERATION_COMPLETED", 1),
        ("ASSIGNMENT_STORED", 1),
    ]
    assert world.events[3].reason == "new member c-1"
    assert world.events[4].members == ("c-1",)


def test_new_member_that_waits_too_long_for_its_first_generation_is_dropped(make_world):
    world = make_world(new_member_join_timeout_ms=5_000)
    world.stable(1, session_timeout_ms=1_000_000)
    token = world.join(world.new_id())
    world.advance(5_000)
    assert world.answers[token].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(world.describe().members) == 1
