"""Heartbeats, sessions that end, members that leave."""

import pytest

from system_tests.coordinator import ErrorCode, Heartbeat, LeaveGroup, LeavingMember


def test_heartbeat_of_a_stable_group_succeeds_and_extends_the_session(world):
    (member,) = world.stable(1)
    for _ in range(4):
        world.advance(9_000)
        assert world.heartbeat(member, 1) is ErrorCode.NONE


def test_heartbeat_announces_a_rebalance_and_extends_the_session(world):
    leader, follower = world.stable(2)
    world.join(leader)
    for _ in range(4):
        world.advance(9_000)
        assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeat_while_the_assignment_is_awaited_succeeds(world):
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    assert world.heartbeat(follower, 3) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("member", "generation", "instance", "error"),
    [
        ("ghost", 1, None, ErrorCode.UNKNOWN_MEMBER_ID),
        ("c-1", 0, None, ErrorCode.ILLEGAL_GENERATION),
        ("c-1", 1, "unknown", ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeat_that_does_not_fit_is_refused(world, member, generation, instance, error):
    world.stable(1)
    assert world.heartbeat(member, generation, instance_id=instance) is error


def test_heartbeat_to_an_unknown_group_is_an_unknown_member(world):
    assert world.heartbeat("x", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_group_without_a_name_is_invalid(world):
    beat = world.ask(Heartbeat(group_id="", member_id="x", generation=1))
    left = world.ask(LeaveGroup(group_id="", members=(LeavingMember("x"),)))
    assert world.answers[beat].error is ErrorCode.INVALID_GROUP_ID
    assert world.answers[left].error is ErrorCode.INVALID_GROUP_ID


def test_member_without_heartbeats_expires_and_the_others_rebalance(world):
    _, follower = world.stable(2)
    world.advance(5_000)
    assert world.heartbeat(follower, 2) is ErrorCode.NONE
    world.advance(5_000)
    assert [m.member_id for m in world.describe().members] == [follower]
    assert world.heartbeat(follower, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.describe().leader_id == follower


def test_member_that_waits_in_a_join_needs_no_heartbeats(world):
    leader, other = world.stable(2)
    token = world.join(leader)
    for _ in range(5):
        world.advance(9_000)
        world.heartbeat(other, 2)
    assert token not in world.answers
    world.join(other)
    assert world.answers[token].generation == 3


def test_member_that_waits_in_a_sync_needs_no_heartbeats(world):
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    token = world.sync(follower, 3)
    for _ in range(5):
        world.advance(9_000)
        assert world.heartbeat(leader, 3) is ErrorCode.NONE
    world.sync(leader, 3, {follower: b"F"})
    assert world.answers[token].assignment == b"F"


def test_session_starts_anew_when_the_assignment_is_out(world):
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    world.sync(follower, 3)
    world.advance(9_000)
    world.sync(leader, 3)
    world.advance(9_999)
    assert len(world.describe().members) == 2
    world.advance(1)
    assert world.describe().members == ()


def test_last_member_that_leaves_empties_the_group_with_a_new_generation(world):
    (member,) = world.stable(1)
    world.leave(member)
    group = world.describe()
    assert (group.state, group.generation, group.members) == ("Empty", 2, ())


def test_a_leave_of_many_answers_each_member_on_its_own(world):
    leader, _ = world.stable(2, instances=(None, "i"))
    answer = world.leave("ghost", ("", "i"), ("", "nobody"), (leader, "i"), leader)
    assert answer.error is ErrorCode.NONE
    assert [row.error for row in answer.members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert world.describe().state == "Empty"


def test_pending_member_may_leave_and_the_rebalance_goes_on_without_it(world):
    (leader,) = world.stable(1)
    pending = world.new_id()
    token = world.join(leader)
    assert token not in world.answers
    world.leave(pending)
    assert world.answers[token].generation == 2


def test_leaving_an_unknown_group_is_an_unknown_member(world):
    assert world.leave("x").members[0].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_that_leaves_while_it_waits_gets_both_answers(world):
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    parked = world.sync(follower, 3)
    world.leave(follower)
    assert world.answers[parked].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.describe().state == "PreparingRebalance"


def test_pending_id_that_is_never_used_is_forgotten(world):
    member_id = world.new_id()
    world.advance(10_000)
    assert world.answers[world.join(member_id)].error is ErrorCode.UNKNOWN_MEMBER_ID
