from system_tests.live.events import AnswersDecided, AssignmentTaken, RejoinRequested, Report
from system_tests.live.evidence.rebalances import count_rebalances


def took(member, *generations, incarnation=0):
    return [
        Report(
            member=member,
            incarnation=incarnation,
            at_ms=generation,
            event=AssignmentTaken(
                generation=generation,
                version=10,
                commonly_supported_version=10,
                active_tasks=(),
                next_version=11,
                standby_tasks=(),
                error_code=0,
            ),
        )
        for generation in generations
    ]


def rejoin_requested(member, *, after, for_version=True, incarnation=0):
    event = RejoinRequested(
        rule="r", why="w", used_version_before=11, used_version_after=10, for_version=for_version
    )
    return Report(member=member, incarnation=incarnation, at_ms=after + 0.5, event=event)


def count(*reports, gone=(), after=1, until=99, static=False):
    rows = [row for report in reports for row in (report if isinstance(report, list) else [report])]
    rows.sort(key=lambda report: report.at_ms)
    return count_rebalances(
        rows, after_generation=after, until_generation=until, gone=gone, static=static
    )


def test_a_clean_bounce_costs_a_leave_and_a_join():
    found = count(took("a", 1, 2, 3), took("b", 1), took("b", 3, incarnation=1), gone=[("b", 0)])
    assert (found.membership, found.version, found.followup) == ((2, 3), (), ())


def test_a_rejoin_for_the_version_costs_the_next_generation():
    found = count(
        took("a", 1, 2, 3, 4),
        took("b", 1),
        took("b", 3, 4, incarnation=1),
        rejoin_requested("b", after=3, incarnation=1),
        gone=[("b", 0)],
    )
    assert (found.membership, found.version, found.total) == ((2, 3), (4,), 3)


def test_several_requests_that_meet_are_one_rebalance():
    found = count(
        took("a", 1, 2),
        took("b", 1, 2),
        rejoin_requested("a", after=1),
        rejoin_requested("b", after=1),
    )
    assert found.version == (2,)


def test_a_request_that_meets_a_join_is_counted_as_membership():
    found = count(took("a", 1, 2), took("b", 2), rejoin_requested("a", after=1))
    assert (found.membership, found.version) == ((2,), ())


def test_a_repeated_version_is_counted_separately():
    again = RejoinRequested(
        rule="r", why="w", used_version_before=11, used_version_after=11, for_version=True
    )
    found = count(
        took("a", 1, 2, 3),
        Report(member="a", incarnation=0, at_ms=1.5, event=again),
        rejoin_requested("a", after=2),
    )
    assert (found.version, found.repeated, found.followup) == ((3,), (2,), ())


def test_a_generation_with_more_members_answered_is_membership():
    rows = []
    for generation, members in ((1, 2), (2, 3), (3, 3)):
        decision = AnswersDecided(
            version=10,
            commonly_supported_version=10,
            members=members,
            rule="r",
            why="w",
            version_probing=False,
            future_members=(),
            quarantined_members=(),
            warnings=(),
        )
        rows.append(Report(member="a", incarnation=0, at_ms=generation - 0.5, event=decision))
    found = count(took("a", 1, 2, 3), took("b", 1, 2, 3), rows)
    assert (found.membership, found.followup) == ((2,), (3,))


def test_a_rejoin_for_another_reason_is_a_followup():
    found = count(took("a", 1, 2), rejoin_requested("a", after=1, for_version=False))
    assert (found.version, found.followup) == ((), (2,))


def test_generations_outside_the_bounce_are_left_out():
    assert count(took("a", 1, 2, 3, 4), after=2, until=3).total == 1


def test_a_static_member_that_comes_back_is_no_cause_of_a_rebalance():
    found = count(
        took("a", 1, 2),
        took("b", 1),
        took("b", 1, 2, incarnation=1),
        rejoin_requested("b", after=1, incarnation=1),
        gone=[("b", 0)],
        static=True,
    )
    assert (found.membership, found.version) == ((), (2,))
