from dataclasses import replace

import pytest

from system_tests.live.events import (
    AssignmentTaken,
    PartitionsAssigned,
    PartitionsRevoked,
    RecordsProcessed,
    RejoinRequested,
    Report,
    SubscriptionWritten,
)
from system_tests.live.evidence.pauses import PauseTerms
from system_tests.live.evidence.verdict import Evidence, check_evidence


def report(member, at_ms, event, incarnation=0):
    return Report(member=member, incarnation=incarnation, at_ms=at_ms, event=event)


def took(member, at_ms, generation):
    event = AssignmentTaken(
        generation=generation,
        version=11,
        commonly_supported_version=11,
        active_tasks=(),
        next_version=11,
        standby_tasks=(),
        error_code=0,
    )
    return report(member, at_ms, event)


def processed(member, began_ms, first, last):
    event = RecordsProcessed(partition=0, first_offset=first, last_offset=last, began_ms=began_ms)
    return report(member, began_ms, event)


REJOIN = RejoinRequested(
    rule="r", why="w", used_version_before=11, used_version_after=10, for_version=True
)
HANDOVER = (
    took("a", 0, 1),
    report("a", 0, PartitionsAssigned(partitions=(0,))),
    processed("a", 1, 0, 4),
    report("a", 10, PartitionsRevoked(partitions=(0,))),
    took("b", 11, 2),
    report("b", 11, PartitionsAssigned(partitions=(0,))),
    processed("b", 12, 5, 9),
)
PASSING = Evidence(
    reports=HANDOVER,
    written_ms={0: tuple(range(10))},
    ended_ms={},
    gone=frozenset({("a", 0)}),
    crashed=frozenset(),
    used_versions={"b": 11},
    promised_versions=(11,),
    first_generation=1,
    last_generation=2,
    unsettled=None,
    version_bound=3,
    pause_terms=PauseTerms(session_ms=100, heartbeat_ms=5, ended_ms={}, crashed=frozenset()),
    until_ms=20.0,
)


def failed(evidence):
    return [check.name for check in check_evidence(evidence).checks if not check.ok]


def sentence(evidence, name):
    return next(check.sentence for check in check_evidence(evidence).checks if check.name == name)


def test_a_clean_handover_is_good():
    verdict = check_evidence(PASSING)
    assert verdict.ok, failed(PASSING)
    assert verdict.numbers("records") == {
        "produced": 10,
        "processed": 10,
        "missing": 0,
        "duplicates": 0,
        "missing_offsets": {},
    }


def test_a_lost_record_is_named_with_its_partition():
    evidence = replace(PASSING, reports=HANDOVER[:-1])
    assert failed(evidence) == ["records"]
    assert "5 of 10 records were never processed (partitions 0)" in sentence(evidence, "records")


def test_duplicates_are_bad_unless_a_member_crashed():
    evidence = replace(PASSING, reports=(*HANDOVER, processed("b", 13, 8, 9)))
    assert failed(evidence) == ["records"]
    assert failed(replace(evidence, crashed=frozenset({("a", 0)}))) == []


def test_two_owners_are_bad_and_named():
    evidence = replace(
        PASSING, reports=(report("b", 5, PartitionsAssigned(partitions=(0,))), *HANDOVER)
    )
    assert "owners" in failed(evidence)
    assert "partition 0 had two owners, a and b, for 5 ms" in sentence(evidence, "owners")


def test_a_member_with_another_version_is_named():
    evidence = replace(PASSING, used_versions={"b": 10})
    assert failed(evidence) == ["versions"]
    assert "b v10" in sentence(evidence, "versions")


@pytest.mark.parametrize(
    "broken", [{"unsettled": "b waits for a rebalance"}, {"used_versions": {}}]
)
def test_an_unsettled_or_empty_group_is_bad(broken):
    assert failed(replace(PASSING, **broken)) == ["versions"]


def test_more_version_rebalances_than_the_bound_are_bad():
    reports = (*HANDOVER, report("b", 13, REJOIN), took("b", 14, 3))
    evidence = replace(PASSING, reports=reports, last_generation=3)
    assert failed(evidence) == []
    assert failed(replace(evidence, version_bound=0)) == ["rebalances"]


def with_late_start(owned_ms):
    """A restart of 105 ms, within the bound of its pause, and a wait of `owned_ms` after it."""
    joined = SubscriptionWritten(version=11, latest_supported_version=11, size=1)
    back = PartitionsAssigned(partitions=(0,))
    return replace(
        PASSING,
        reports=(
            *HANDOVER,
            report("b", 125, joined, incarnation=1),
            report("b", 126, took("b", 126, 2).event, incarnation=1),
            report("b", 126, back, incarnation=1),
            processed("b", 126 + owned_ms, 10, 10),
        ),
        written_ms={0: tuple(range(11))},
        ended_ms={("b", 0): 20.0},
        until_ms=900.0,
        pause_terms=replace(PASSING.pause_terms, ended_ms={("b", 0): 20.0}, static=True),
    )


def test_the_wait_of_a_record_has_the_bound_of_the_pause_that_it_spans():
    evidence = with_late_start(owned_ms=5)
    assert failed(evidence) == []
    assert "a written record waited at most 119 ms" in sentence(evidence, "pauses")
    late = with_late_start(owned_ms=120)
    assert failed(late) == ["pauses"]
    assert "it waited 128 ms while a member owned the partition" in sentence(late, "pauses")
    assert failed(replace(late, pause_terms=None)) == []


def test_a_session_that_expired_in_a_restart_is_named_with_the_time_without_the_member():
    expired = "; sessions of 100 ms expired: b was down for 105 ms"
    assert expired in sentence(with_late_start(owned_ms=5), "pauses")
    assert "expired" not in sentence(PASSING, "pauses")
    evidence = with_late_start(owned_ms=5)
    for changes in ({"static": False}, {"session_ms": 105}):
        other = replace(evidence, pause_terms=replace(evidence.pause_terms, **changes))
        assert "expired" not in sentence(other, "pauses")


def test_an_experiment_without_records_proves_nothing():
    assert "records" in failed(replace(PASSING, reports=(), written_ms={0: ()}))


def test_a_foreign_member_adds_a_check():
    assert failed(replace(PASSING, quarantined=True)) == []
    assert failed(replace(PASSING, quarantined=False)) == ["quarantine"]
