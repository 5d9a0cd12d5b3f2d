"""Accepted commits, and stored offsets."""

import pytest

from system_tests.coordinator import CommitOffsets, CommittedOffset, ErrorCode, OffsetKey

KEY = OffsetKey("t", 0)


def test_member_commits_in_its_generation_and_reads_it_back(world):
    (member,) = world.stable(1)
    offset = CommittedOffset(42, 3, "note")
    assert world.commit(member, 1, offsets={KEY: offset}) is ErrorCode.NONE
    assert world.coordinator.fetch_offsets("g") == {KEY: offset}


def test_client_without_membership_commits_to_a_group_that_is_new_or_empty(world):
    assert world.commit() is ErrorCode.NONE
    (member,) = world.stable(1)
    assert world.commit() is ErrorCode.UNKNOWN_MEMBER_ID
    world.leave(member)
    assert world.commit() is ErrorCode.NONE


@pytest.mark.parametrize(
    ("member", "generation", "error"),
    [
        ("ghost", 1, ErrorCode.UNKNOWN_MEMBER_ID),
        ("c-1", 0, ErrorCode.ILLEGAL_GENERATION),
        ("c-1", 2, ErrorCode.ILLEGAL_GENERATION),
        ("c-1", -1, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_commit_that_does_not_fit_is_refused_and_changes_nothing(world, member, generation, error):
    world.stable(1)
    assert world.commit(member, generation) is error
    assert world.coordinator.fetch_offsets("g") == {}


def test_commit_in_a_generation_to_an_unknown_group_is_refused(world):
    assert world.commit("x", 1) is ErrorCode.ILLEGAL_GENERATION


def test_commit_during_the_joining_phase_is_kept_and_during_the_sync_phase_refused(world):
    leader, follower = world.stable(2)
    world.join(leader)
    assert world.commit(follower, 2) is ErrorCode.NONE
    world.join(follower)
    assert world.commit(follower, 3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_commit_keeps_the_session_alive(world):
    (member,) = world.stable(1)
    for _ in range(3):
        world.advance(9_000)
        assert world.commit(member, 1) is ErrorCode.NONE


def test_note_that_is_too_long_is_refused_for_its_partition_alone(world):
    (member,) = world.stable(1)
    other = OffsetKey("t", 1)
    offsets = {KEY: CommittedOffset(1, -1, "x" * 4_097), other: CommittedOffset(2, -1, "y" * 4_096)}
    request = CommitOffsets(group_id="g", member_id=member, generation=1, offsets=offsets)
    answer = world.answers[world.ask(request)]
    assert answer.errors == {KEY: ErrorCode.OFFSET_METADATA_TOO_LARGE, other: ErrorCode.NONE}
    assert list(world.coordinator.fetch_offsets("g")) == [other]


def test_partition_that_was_never_committed_reads_minus_one(world):
    assert world.coordinator.fetch_offsets("nobody", [KEY]) == {KEY: CommittedOffset(-1)}


def test_commit_to_a_group_without_a_name_is_invalid(world):
    request = CommitOffsets(group_id="", offsets={KEY: CommittedOffset(1)})
    assert world.answers[world.ask(request)].errors == {KEY: ErrorCode.INVALID_GROUP_ID}


def test_offsets_of_a_topic_that_the_group_consumes_cannot_be_deleted(world):
    world.commit()
    (member,) = world.stable(1)
    delete = world.coordinator.delete_offsets
    assert delete("g", [KEY], frozenset({"t"}))[1] == {KEY: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    world.leave(member)
    assert delete("g", [KEY], frozenset({"t"})) == (ErrorCode.NONE, {KEY: ErrorCode.NONE})
    assert world.coordinator.fetch_offsets("g") == {}
    assert delete("nobody", [KEY])[0] is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_deleted_topic_are_forgotten(world):
    world.commit()
    world.coordinator.forget_topic("t")
    assert world.coordinator.fetch_offsets("g") == {}
