"""The leader sends the assignment, and all members get their part."""

import pytest

from system_tests.coordinator import ErrorCode


@pytest.fixture
def completing(world):
    """(world, leader, follower) of a group that waits for its leader's assignment."""
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    return world, leader, follower


def test_followers_wait_for_the_leader_and_get_its_assignment(completing):
    world, leader, follower = completing
    waiting = world.sync(follower, 3)
    assert waiting not in world.answers
    own = world.sync(leader, 3, {leader: b"L", follower: b"F"})
    assert (world.answers[waiting].assignment, world.answers[own].assignment) == (b"F", b"L")
    assert world.answers[waiting].protocol_name == "range"


def test_a_member_that_the_leader_forgot_gets_an_empty_assignment(completing):
    world, leader, follower = completing
    waiting = world.sync(follower, 3)
    world.sync(leader, 3, {leader: b"L"})
    assert world.answers[waiting].error is ErrorCode.NONE
    assert world.answers[waiting].assignment == b""


def test_sync_of_a_stable_group_returns_the_current_assignment(world):
    leader, follower = world.stable(2)
    token = world.sync(leader, 2, {follower: b"too late"})
    assert world.answers[token].assignment == leader.encode()
    assert world.answers[world.sync(follower, 2)].assignment == follower.encode()


def test_sync_while_members_join_has_to_rejoin(world):
    leader, follower = world.stable(2)
    world.join(leader)
    assert world.answers[world.sync(follower, 2)].error is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize(
    ("member", "generation", "fields", "error"),
    [
        ("ghost", 3, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("leader", 2, {}, ErrorCode.ILLEGAL_GENERATION),
        ("leader", 4, {}, ErrorCode.ILLEGAL_GENERATION),
        ("leader", 3, {"instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("leader", 3, {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("leader", 3, {"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_sync_that_does_not_fit_is_refused(completing, member, generation, fields, error):
    world, leader, _ = completing
    token = world.sync({"leader": leader}.get(member, member), generation, **fields)
    assert world.answers[token].error is error
    assert world.describe().state == "CompletingRebalance"


def test_sync_of_an_unknown_group_is_an_unknown_member(world):
    assert world.answers[world.sync("x", 1)].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_sync_of_a_member_answers_the_first_one(completing):
    world, leader, follower = completing
    first = world.sync(follower, 3)
    second = world.sync(follower, 3)
    assert world.answers[first].error is ErrorCode.REBALANCE_IN_PROGRESS
    world.sync(leader, 3, {follower: b"F"})
    assert world.answers[second].assignment == b"F"


def test_a_generation_over_the_record_limit_fails_for_all_members_and_starts_over(make_world):
    world = make_world(group_record_limit=2_000)
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    waiting = world.sync(follower, 3)
    own = world.sync(leader, 3, {leader: b"x" * 1_000, follower: b"y" * 1_000})
    assert {world.answers[t].error for t in (waiting, own)} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert world.describe().state == "PreparingRebalance"
    assert "STORE_FAILED" in world.kinds()


@pytest.mark.parametrize(
    ("spare", "error"), [(0, ErrorCode.NONE), (-1, ErrorCode.UNKNOWN_SERVER_ERROR)]
)
def test_the_record_limit_counts_subscriptions_and_assignments_to_the_byte(
    make_world, spare, error
):
    fixed = 160 + len("g") + 24 + len("c-1") + len("c")
    world = make_world(group_record_limit=fixed + 300 + 500 + spare)
    member_id = world.new_id(metadata=b"s" * 300)
    world.join(member_id, b"s" * 300)
    token = world.sync(member_id, 1, {member_id: b"a" * 500})
    assert world.answers[token].error is error
