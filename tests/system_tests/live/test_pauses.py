"""Pauses of partitions and their bounds, from hand-written reports."""

from system_tests.live.events import (
    AssignmentTaken,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    Report,
    SubscriptionWritten,
)
from system_tests.live.evidence.ownership import ownership_intervals
from system_tests.live.evidence.pauses import (
    EMPTY_GROUP_MS,
    PauseTerms,
    ownership_pauses,
    settled_ms,
)
from system_tests.pauses import Stopped

SESSION_MS, BEAT_MS = 10_000, 500
LIMIT_MS = SESSION_MS - 2 * BEAT_MS


def report(member, at_ms, event, incarnation=0):
    return Report(member=member, incarnation=incarnation, at_ms=at_ms, event=event)


def joined(member, at_ms, incarnation=0):
    event = SubscriptionWritten(version=11, latest_supported_version=11, size=1)
    return report(member, at_ms, event, incarnation)


def took(member, at_ms, generation, incarnation=0):
    event = AssignmentTaken(
        generation=generation,
        version=11,
        commonly_supported_version=11,
        active_tasks=(),
        next_version=11,
        standby_tasks=(),
        error_code=0,
    )
    return report(member, at_ms, event, incarnation)


def owns(member, at_ms, *partitions):
    return report(member, at_ms, PartitionsAssigned(partitions=partitions))


def gives(member, at_ms, *partitions):
    return report(member, at_ms, PartitionsRevoked(partitions=partitions))


START = (
    joined("a", 1),
    joined("b", 2),
    took("a", 5, 1),
    took("b", 6, 1),
    owns("a", 5, 0),
    owns("b", 6, 1),
)


def pauses(*reports, ended=None, crashed=(), static=False, disturbed=(), bounded=True):
    ended = ended or {}
    terms = PauseTerms(
        session_ms=SESSION_MS,
        heartbeat_ms=BEAT_MS,
        ended_ms=ended,
        crashed=frozenset(crashed),
        static=static,
        disturbed=disturbed,
    )
    every = sorted((*START, *reports), key=lambda report: report.at_ms)
    intervals = ownership_intervals(every, ended_ms=ended, until_ms=100_000)
    return ownership_pauses(
        every, intervals, terms=terms if bounded else None, from_ms=settled_ms(every, 1)
    )


def only(*reports, **terms):
    (found,) = pauses(*reports, **terms)
    return found


def taken_over(at_ms, *, generation=2):
    return joined("a", at_ms - 100), took("a", at_ms - 1, generation), owns("a", at_ms, 1)


def test_a_static_member_that_returns_in_its_generation_has_paused_its_partition():
    found = only(
        joined("b", 14_000, 1),
        took("b", 14_001, 1, 1),
        report("b", 14_002, PartitionsAssigned(partitions=(1,)), 1),
        ended={("b", 0): 1_000},
        static=True,
    )
    assert (found.pause_ms, found.stopped, found.member) == (13_002, Stopped.SILENT_STOP, "b")
    assert found.bound.session_ms == SESSION_MS


def test_a_clean_stop_is_bounded_by_less_than_a_session():
    found = only(gives("b", 1_000, 1), *taken_over(2_000), ended={("b", 0): 1_010})
    assert (found.pause_ms, found.stopped, found.member) == (1_000, Stopped.CLEAN_STOP, "b")
    assert found.bound.total_ms == LIMIT_MS
    assert found.partition == "partition 1"


def test_a_needless_wait_for_a_session_is_bad_even_where_others_join_early():
    late = 1_000 + SESSION_MS - BEAT_MS
    found = only(
        gives("b", 1_000, 1),
        joined("b", 3_000, 1),  # it is back; the session of its former incarnation is waited for
        joined("a", 3_300),
        took("a", late, 2),
        took("b", late + 5, 2, 1),
        owns("a", late + 5, 1),
        ended={("b", 0): 1_010},
    )
    assert found.bound.total_ms == LIMIT_MS + 300 + 5
    assert not found.is_within


def test_how_slow_living_members_were_is_added():
    reports = (
        gives("b", 1_000, 1),
        joined("b", 3_000, 1),
        joined("a", 9_500),
        took("b", 9_600, 2, 1),
        took("a", 11_600, 2),
        owns("a", 11_601, 1),
    )
    found = only(*reports, ended={("b", 0): 1_010})
    assert found.bound.total_ms == LIMIT_MS + 6_500 + 2_000
    assert found.is_within


def test_no_member_may_be_slower_than_a_session():
    found = only(
        gives("b", 1_000, 1),
        joined("b", 3_000, 1),
        joined("a", 40_000),
        took("b", 40_050, 2, 1),
        took("a", 40_100, 2),
        owns("a", 40_101, 1),
        ended={("b", 0): 1_010},
    )
    assert found.bound.total_ms == LIMIT_MS + SESSION_MS + 50
    assert not found.is_within


def test_a_crash_and_a_static_stop_add_a_session():
    crash = only(*taken_over(12_000), ended={("b", 0): 1_000}, crashed={("b", 0)})
    assert (crash.stopped, crash.bound.session_ms) == (Stopped.CRASH, SESSION_MS)
    static = only(*taken_over(12_000), ended={("b", 0): 1_000}, static=True)
    assert (static.stopped, static.bound.session_ms) == (Stopped.SILENT_STOP, SESSION_MS)


def test_a_crash_while_it_asked_to_join_adds_two():
    found = only(joined("b", 900), *taken_over(12_000), ended={("b", 0): 1_000}, crashed={("b", 0)})
    assert found.bound.session_ms == 2 * SESSION_MS


def test_a_member_that_was_put_out_adds_a_session():
    found = only(report("b", 1_000, PartitionsLost(partitions=(1,))), *taken_over(2_000))
    assert (found.stopped, found.bound.session_ms) == (Stopped.STANDSTILL, SESSION_MS)


def test_a_partition_that_moves_names_a_rebalance():
    found = only(joined("b", 990), gives("b", 1_000, 1), took("b", 1_990, 2), *taken_over(2_000))
    assert (found.stopped, found.bound.session_ms) == (Stopped.REBALANCE, 0)


def test_brokers_that_are_replaced_add_their_time_and_a_session():
    found = only(gives("b", 1_000, 1), *taken_over(2_000), disturbed=((500, 1_500),))
    assert found.bound.fault_ms == 1_000 + SESSION_MS


def test_nobody_up_is_counted_apart():
    found = pauses(
        gives("a", 1_000, 0),
        gives("b", 1_000, 1),
        *taken_over(9_000),
        ended={("a", 0): 1_010, ("b", 0): 1_020},
    )
    assert [pause.bound.down_ms for pause in found] == [
        0
    ]  # a is the same incarnation, which joined before
    back = pauses(
        gives("a", 1_000, 0),
        gives("b", 1_000, 1),
        joined("c", 8_000),
        took("c", 8_900, 2),
        report("c", 9_000, PartitionsAssigned(partitions=(0, 1))),
        ended={("a", 0): 1_010, ("b", 0): 1_020},
    )
    assert {pause.bound.down_ms for pause in back} == {8_000 - 1_020 + EMPTY_GROUP_MS}


def test_before_the_first_settled_group_and_after_the_last_owner_nothing_pauses():
    assert pauses(gives("b", 1_000, 1)) == ()
    assert pauses(gives("a", 5.5, 0), owns("b", 5.9, 0)) == ()


def test_downtime_that_was_asked_for_is_not_bounded():
    found = only(gives("b", 1_000, 1), *taken_over(90_000), bounded=False)
    assert (found.bound, found.is_within) == (None, True)
