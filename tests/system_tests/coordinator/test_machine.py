"""`Coordinator`: its groups, time, moves to another coordinator."""

import pytest

from system_tests.coordinator import ErrorCode


def test_unknown_group_is_dead(world):
    group = world.describe()
    assert (group.state, group.members, group.generation) == ("Dead", (), 0)


def test_metadata_and_assignments_are_shown_of_a_stable_group_only(world):
    leader, _ = world.stable(2)
    assert [m.assignment for m in world.describe().members] == [b"c-1", b"c-2"]
    assert world.describe().protocol_name == "range"
    world.join(leader)
    assert [m.assignment for m in world.describe().members] == [b"", b""]
    assert world.describe().protocol_name == ""


def test_only_a_group_without_members_can_be_deleted(world):
    (member,) = world.stable(1)
    world.commit(member, 1)
    delete = world.coordinator.delete_group
    assert delete("g", now_ms=0)[0] is ErrorCode.NON_EMPTY_GROUP
    world.leave(member)
    error, effects = delete("g", now_ms=0)
    assert error is ErrorCode.NONE
    assert [e.kind.name for e in effects.events] == ["GROUP_DELETED"]
    assert delete("g", now_ms=0)[0] is ErrorCode.GROUP_ID_NOT_FOUND
    assert world.coordinator.fetch_offsets("g") == {}


def test_with_no_group_there_is_nothing_to_wake_up_for(world):
    assert world.coordinator.next_deadline_ms() is None


def test_nothing_happens_before_the_next_deadline(world):
    world.stable(1)
    due_ms = world.coordinator.next_deadline_ms()
    assert due_ms == 10_000
    assert world.coordinator.tick(due_ms - 1) == ((), ())
    assert world.coordinator.tick(due_ms).events


def test_late_ticks_run_everything_that_was_due(world):
    world.stable(3)
    world.now_ms = 1_000_000
    world.take(world.coordinator.tick(world.now_ms))
    assert world.describe().state == "Empty"
    assert world.kinds().count("MEMBER_EXPIRED") == 3


class TestMove:
    def test_stable_group_survives_and_every_session_starts_anew(self, world):
        leader, follower = world.stable(2)
        before = world.describe()
        world.advance(9_000)
        world.take(world.coordinator.reload("g", now_ms=world.now_ms))
        world.advance(9_000)
        assert world.describe() == before
        assert world.heartbeat(leader, 2) is ErrorCode.NONE
        assert world.answers[world.sync(follower, 2)].assignment == follower.encode()

    def test_parked_requests_are_sent_to_the_new_coordinator(self, world):
        leader, follower = world.stable(2)
        joining = world.join(leader)
        world.take(world.coordinator.reload("g", now_ms=0))
        assert world.answers[joining].error is ErrorCode.NOT_COORDINATOR
        world.join(leader)
        world.join(follower)
        syncing = world.sync(follower, 3)
        world.take(world.coordinator.reload("g", now_ms=0))
        assert world.answers[syncing].error is ErrorCode.NOT_COORDINATOR

    def test_unfinished_generation_is_forgotten(self, world):
        leader, follower = world.stable(2)
        world.join(leader)
        world.join(follower)
        assert world.describe().generation == 3
        world.take(world.coordinator.reload("g", now_ms=0))
        assert (world.describe().generation, world.describe().state) == (2, "Stable")
        assert world.heartbeat(leader, 3) is ErrorCode.ILLEGAL_GENERATION

    def test_group_that_was_never_stored_is_unknown_afterwards(self, world):
        world.join(world.new_id())
        world.take(world.coordinator.reload("g", now_ms=0))
        assert world.coordinator.group_ids() == ()

    def test_committed_offsets_survive(self, world):
        world.commit(offset=5)
        world.take(world.coordinator.reload("g", now_ms=0))
        assert [c.offset for c in world.coordinator.fetch_offsets("g").values()] == [5]

    def test_static_members_are_still_known_by_their_instance(self, world):
        _, old = world.stable(2, instances=("a", "b"))
        world.take(world.coordinator.reload("g", now_ms=0))
        answer = world.answers[world.join("", instance="b")]
        assert answer.generation == 2
        assert world.heartbeat(old, 2, instance_id="b") is ErrorCode.FENCED_INSTANCE_ID

    def test_moving_an_unknown_group_does_nothing(self, world):
        assert world.coordinator.reload("nobody", now_ms=0) == ((), ())


@pytest.mark.parametrize("members", [1, 2, 5])
def test_group_settles_and_every_member_knows_the_same_generation(world, members):
    ids = world.stable(members)
    assert len(set(ids)) == members
    assert {world.heartbeat(i, world.describe().generation) for i in ids} == {ErrorCode.NONE}
