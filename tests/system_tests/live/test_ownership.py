from system_tests.live.events import (
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    Report,
)
from system_tests.live.evidence.ownership import double_ownerships, ownership_intervals


def assigned(member, at_ms, *partitions, incarnation=0):
    event = PartitionsAssigned(partitions=partitions)
    return Report(member=member, incarnation=incarnation, at_ms=at_ms, event=event)


def revoked(member, at_ms, *partitions, kind=PartitionsRevoked):
    return Report(member=member, incarnation=0, at_ms=at_ms, event=kind(partitions=partitions))


def doubles(*reports, ended_ms=None):
    intervals = ownership_intervals(reports, ended_ms=ended_ms or {}, until_ms=1000.0)
    return double_ownerships(intervals)


def test_a_handover_without_overlap_is_safe():
    assert doubles(assigned("a", 0, 0, 1), revoked("a", 10, 0), assigned("b", 10, 0)) == ()


def test_two_owners_at_one_time_are_found_with_their_overlap():
    (found,) = doubles(
        assigned("a", 0, 0), assigned("b", 7, 0), revoked("a", 10, 0), revoked("b", 20, 0)
    )
    assert (found.partition, found.first.member, found.second.member) == (0, "a", "b")
    assert found.overlap_ms == 3


def test_an_interval_inside_a_longer_one_is_found_even_after_a_short_one():
    found = doubles(
        assigned("a", 0, 0),
        assigned("b", 1, 0),
        revoked("b", 2, 0),
        assigned("c", 5, 0),
        revoked("c", 6, 0),
    )
    assert [double.second.member for double in found] == ["b", "c"]


def test_a_killed_owner_owns_until_its_process_is_gone():
    reports = assigned("a", 0, 0), assigned("b", 6, 0)
    assert doubles(*reports, ended_ms={("a", 0): 5.0}) == ()
    assert len(doubles(*reports, ended_ms={("a", 0): 7.0})) == 1


def test_an_owner_that_never_hands_back_owns_until_the_end():
    assert len(doubles(assigned("a", 0, 0), assigned("b", 900, 0))) == 1


def test_lost_partitions_end_an_interval_like_revoked_ones():
    reports = assigned("a", 0, 0), revoked("a", 5, 0, kind=PartitionsLost), assigned("b", 6, 0)
    assert doubles(*reports) == ()


def test_two_incarnations_of_one_member_are_two_owners():
    assert len(doubles(assigned("a", 0, 0), assigned("a", 5, 0, incarnation=1))) == 1
