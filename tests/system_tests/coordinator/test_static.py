"""A restarted static member replaces its former member id (KIP-345, KIP-814)."""

import pytest

from system_tests.coordinator import ErrorCode, Protocol

BOTH = ("a", "b")


def test_restart_in_a_stable_group_keeps_generation_and_assignment(world):
    _, old = world.stable(2, instances=BOTH)
    answer = world.answers[world.join("", b"m", instance="b")]
    assert (answer.error, answer.generation) == (ErrorCode.NONE, 2)
    assert answer.member_id not in {old, ""}
    assert (
        world.answers[world.sync(answer.member_id, 2, instance_id="b")].assignment == old.encode()
    )
    assert world.describe().state == "Stable"


def test_restart_with_other_bytes_still_costs_no_rebalance(world):
    world.stable(2, instances=BOTH)
    answer = world.answers[world.join("", b"quite different", instance="b")]
    assert (answer.error, answer.generation) == (ErrorCode.NONE, 2)
    assert world.describe().members[1].metadata == b"quite different"


def test_restart_that_changes_the_chosen_protocol_starts_a_rebalance(world):
    offers = (Protocol("range", b""), Protocol("sticky", b""))
    world.stable(1, instances=("a",), protocols=offers)
    token = world.join("", instance="a", protocols=offers[::-1])
    assert world.answers[token].generation == 2
    assert world.answers[token].protocol_name == "sticky"


@pytest.mark.parametrize("version", [5, 8])
def test_restarted_leader_before_v9_is_a_follower_of_its_former_member_id(world, version):
    old, _ = world.stable(2, instances=BOTH)
    answer = world.answers[world.join("", instance="a", version=version)]
    assert (answer.leader_id, answer.members, answer.skip_assignment) == (old, (), False)
    assert world.describe().leader_id == answer.member_id


def test_restarted_leader_from_v9_on_leads_but_skips_the_assignment(world):
    world.stable(2, instances=BOTH)
    answer = world.answers[world.join("", instance="a", version=9)]
    assert answer.leader_id == answer.member_id
    assert answer.skip_assignment
    assert [m.instance_id for m in answer.members] == ["a", "b"]


def test_restarted_follower_does_not_skip_since_it_has_nothing_to_assign(world):
    leader, _ = world.stable(2, instances=BOTH)
    answer = world.answers[world.join("", instance="b", version=9)]
    assert (answer.leader_id, answer.members, answer.skip_assignment) == (leader, (), False)


def test_former_member_id_is_fenced_everywhere(world):
    _, old = world.stable(2, instances=BOTH)
    world.join("", instance="b")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert world.heartbeat(old, 2, instance_id="b") is fenced
    assert world.answers[world.sync(old, 2, instance_id="b")].error is fenced
    assert world.answers[world.join(old, instance="b")].error is fenced
    assert world.commit(old, 2, instance_id="b") is fenced
    assert world.leave((old, "b")).members[0].error is fenced
    assert world.kinds().count("MEMBER_FENCED") == 5


def test_pending_join_of_the_former_member_id_is_fenced_at_once(world):
    _, old = world.stable(2, instances=BOTH)
    parked = world.join(old, b"new", instance="b")
    world.join("", b"new", instance="b")
    assert world.answers[parked].error is ErrorCode.FENCED_INSTANCE_ID
    assert world.answers[parked].member_id == old


def test_restart_while_the_assignment_is_awaited_starts_over(world):
    leader, other = world.stable(2, instances=BOTH)
    world.join(leader, instance="a")
    world.join(other, b"new", instance="b")
    parked = world.sync(other, 3, instance_id="b")
    token = world.join("", b"new", instance="b")
    assert world.answers[parked].error is ErrorCode.FENCED_INSTANCE_ID
    assert token not in world.answers
    again = world.join(leader, instance="a")
    assert world.answers[token].generation == world.answers[again].generation == 4


def test_restart_during_the_joining_phase_joins_that_rebalance(world):
    leader, old = world.stable(2, instances=BOTH)
    waiting = world.join(leader, instance="a")
    token = world.join("", instance="b")
    assert world.answers[waiting].generation == world.answers[token].generation == 3
    assert old not in [m.member_id for m in world.answers[waiting].members]


def test_restarted_member_keeps_its_place_in_the_order_of_joining(world):
    world.stable(3, instances=("a", "b", "c"))
    world.join("", instance="b")
    assert [m.instance_id for m in world.describe().members] == ["a", "b", "c"]


def test_restart_that_does_not_fit_into_the_record_is_undone(make_world):
    world = make_world(group_record_limit=2_000)
    ids = world.stable(2, instances=BOTH)
    answer = world.answers[world.join("", b"x" * 2_000, instance="b")]
    assert answer.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert [m.member_id for m in world.describe().members] == ids
    assert world.heartbeat(ids[1], 2, instance_id="b") is ErrorCode.NONE


def test_static_member_that_is_gone_longer_than_its_session_comes_as_a_new_one(world):
    leader, _ = world.stable(2, instances=BOTH)
    for _ in range(2):
        world.advance(6_000)
        world.heartbeat(leader, 2, instance_id="a")
    assert len(world.describe().members) == 1
    token = world.join("", instance="b")
    world.join(leader, instance="a")
    assert world.answers[token].generation == 3
