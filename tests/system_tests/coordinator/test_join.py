"""Accepted joins, and joins that start a rebalance."""

import pytest

from system_tests.coordinator import ErrorCode, EventKind, Protocol


def protocols(*names):
    return tuple(Protocol(name, name.encode()) for name in names)


def test_first_join_without_an_id_gets_one_and_has_to_rejoin_with_it(world):
    answer = world.answers[world.join()]
    assert answer.error is ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == "c-1"
    assert world.describe().members == ()


def test_before_version_4_a_join_without_an_id_is_taken_at_once(world):
    answer = world.answers[world.join(version=3)]
    assert (answer.error, answer.generation, answer.leader_id) == (ErrorCode.NONE, 1, "c-1")


def test_join_with_an_unknown_id_is_refused_and_creates_no_group(world):
    answer = world.answers[world.join("ghost")]
    assert answer.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert world.coordinator.group_ids() == ()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_invalid_join_is_refused(world, fields, error):
    assert world.answers[world.join(**fields)].error is error


def test_member_of_another_protocol_type_or_without_a_shared_protocol_is_refused(world):
    world.stable(1)
    other_type = world.join(protocol_type="connect")
    other_name = world.join(protocols=protocols("sticky"))
    assert world.answers[other_type].error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert world.answers[other_name].error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_an_emptied_group_takes_members_of_another_protocol_type(world):
    (member,) = world.stable(1)
    world.leave(member)
    world.join(world.new_id(protocol_type="connect"), protocol_type="connect")
    assert world.describe().protocol_type == "connect"


def test_first_member_leads_and_only_it_gets_the_list_of_members(world):
    first, second = world.stable(2)
    token = world.join(first)
    other = world.join(second)
    assert [m.member_id for m in world.answers[token].members] == [first, second]
    assert world.answers[other].members == ()
    assert world.answers[other].leader_id == first


def test_every_member_votes_for_its_first_protocol_that_all_support(world):
    offers = [
        protocols("only-a", "range", "sticky"),
        protocols("sticky", "range"),
        protocols("sticky", "range"),
    ]
    first = world.new_id(protocols=offers[0])
    world.join(first, protocols=offers[0])
    waiting = []
    for offer in offers[1:]:
        member_id = world.new_id(protocols=offer)
        waiting.append(world.join(member_id, protocols=offer))
    last = world.join(first, protocols=offers[0])
    assert {world.answers[t].protocol_name for t in (*waiting, last)} == {"sticky"}
    assert [m.metadata for m in world.answers[last].members] == [b"sticky"] * 3


def test_follower_of_a_stable_group_that_rejoins_unchanged_keeps_its_generation(world):
    _, follower = world.stable(2)
    before = world.describe()
    answer = world.answers[world.join(follower)]
    assert (answer.error, answer.generation, answer.members) == (ErrorCode.NONE, 2, ())
    assert world.describe() == before
    assert world.events[-1].kind is EventKind.MEMBER_KEPT


def test_follower_of_a_stable_group_that_rejoins_with_other_bytes_starts_a_rebalance(world):
    leader, follower = world.stable(2)
    token = world.join(follower, b"other")
    assert token not in world.answers
    assert world.describe().state == "PreparingRebalance"
    world.join(leader)
    assert world.answers[token].generation == 3


def test_leader_that_rejoins_unchanged_starts_a_rebalance(world):
    leader, _ = world.stable(2)
    assert world.join(leader) not in world.answers
    assert world.describe().state == "PreparingRebalance"


def test_while_the_assignment_is_awaited_an_unchanged_rejoin_repeats_the_answer(world):
    leader, follower = world.stable(2)
    first = world.join(leader)
    world.join(follower)
    assert world.describe().state == "CompletingRebalance"
    assert world.answers[world.join(leader)] == world.answers[first]
    assert world.answers[world.join(follower)].members == ()
    assert world.describe().generation == 3


def test_while_the_assignment_is_awaited_a_changed_rejoin_starts_over(world):
    leader, follower = world.stable(2)
    world.join(leader)
    world.join(follower)
    parked = world.sync(follower, 3)
    world.join(follower, b"other")
    assert world.answers[parked].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.describe().state == "PreparingRebalance"


def test_a_second_join_of_a_member_answers_the_first_one(world):
    leader, _ = world.stable(2)
    first = world.join(leader)
    second = world.join(leader)
    assert world.answers[first].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert second not in world.answers


def test_a_full_group_refuses_newcomers_and_keeps_its_members(make_world):
    world = make_world(group_max_size=2)
    leader, _ = world.stable(2)
    assert world.answers[world.join()].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    world.join(leader)
    assert world.describe().state == "PreparingRebalance"
    assert len(world.describe().members) == 2


def test_of_too_many_pending_members_the_last_to_come_back_is_refused(make_world):
    world = make_world(group_max_size=1)
    first, second = world.new_id(), world.new_id()
    world.join(first)
    assert world.answers[world.join(second)].error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_token_of_none_is_refused(world):
    with pytest.raises(ValueError, match="token is None"):
        world.coordinator.handle(None, token=None, now_ms=0)
