import pytest

from system_tests.live.events import (
    AnswersDecided,
    AssignmentTaken,
    PartitionsAssigned,
    PartitionsRevoked,
    RejoinRequested,
    Report,
    SubscriptionWritten,
)
from system_tests.live.group import GroupView, Presence, unsettled_reason
from system_tests.live.narrate import Narrator
from system_tests.trace import format_line

WRITTEN = SubscriptionWritten(version=10, latest_supported_version=10, size=40)


def decided(**values):
    given = {
        "version": 10,
        "commonly_supported_version": 10,
        "members": 2,
        "rule": "r",
        "why": "w",
        "version_probing": False,
        "future_members": (),
        "quarantined_members": (),
        "warnings": (),
    }
    return AnswersDecided(**(given | values))


def taken(generation, error_code=0):
    return AssignmentTaken(
        generation=generation,
        version=10,
        commonly_supported_version=10,
        active_tasks=("0_0",),
        next_version=11,
        standby_tasks=(),
        error_code=error_code,
    )


def rejoin(before, after):
    return RejoinRequested(
        rule="r",
        why="because",
        used_version_before=before,
        used_version_after=after,
        for_version=True,
    )


def say(group, member, event, *, at_ms=0.0, incarnation=0):
    report = Report(member=member, incarnation=incarnation, at_ms=at_ms, event=event)
    group.apply(report)
    return report


@pytest.fixture
def group():
    """Two members of one release, settled in generation 1 with two partitions."""
    group = GroupView.of("ab")
    for partition, name in enumerate("ab"):
        group.note_start(name, incarnation=0, release="3.1.2", upgrade_from=None, at_ms=0.0)
        say(group, name, WRITTEN)
        say(group, name, taken(1))
        say(group, name, PartitionsAssigned(partitions=(partition,)))
    return group


def reason(group, *, now_ms=1000.0, partitions=2):
    return unsettled_reason(group, partitions=partitions, now_ms=now_ms, quiet_ms=700.0)


def test_a_quiet_group_in_one_generation_that_owns_everything_is_settled(group):
    assert reason(group) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (rejoin(11, 10), "b waits for a rebalance"),
        (WRITTEN, "b waits for a rebalance"),
        (taken(2), "generations differ: a in 1, newest 2"),
        (PartitionsRevoked(partitions=(1,)), "partitions owned are [0], not 0 to 1"),
        (PartitionsAssigned(partitions=(0,)), "partitions owned are [0, 0, 1], not 0 to 1"),
    ],
)
def test_one_thing_amiss_is_named(group, event, expected):
    say(group, "b", event)
    assert reason(group) == expected


def test_a_change_a_moment_ago_is_not_settled(group):
    assert "the last change was 500 ms ago" in reason(group, now_ms=500.0)


def test_a_member_that_just_started_has_no_assignment_yet(group):
    group.note_end("b", incarnation=0, failed=False, at_ms=1.0)
    group.note_start("b", incarnation=1, release="native", upgrade_from=None, at_ms=2.0)
    assert reason(group) == "b has no assignment yet"


def test_a_late_report_of_an_earlier_incarnation_changes_nothing(group):
    group.note_end("b", incarnation=0, failed=False, at_ms=1.0)
    group.note_start("b", incarnation=1, release="native", upgrade_from=None, at_ms=2.0)
    say(group, "b", taken(7), incarnation=0)
    group.note_end("b", incarnation=0, failed=True, at_ms=3.0)
    member = group.members["b"]
    assert (member.generation, member.presence) == (None, Presence.UP)


def test_a_group_without_members_is_never_settled():
    assert reason(GroupView.of("ab")) == "no member runs"


def lines(group, *reports):
    narrator = Narrator(group, began_ms=0.0)
    members = tuple(group.members)
    return [format_line(line, members=members) for r in reports for line in narrator.tell(r)]


def test_a_decision_has_the_generation_that_the_leader_then_takes(group):
    say(group, "b", SubscriptionWritten(version=11, latest_supported_version=11, size=40))
    decision = say(
        group,
        "a",
        decided(
            version_probing=True,
            future_members=("b-11111111-2222-3333-4444-555555555555",),
            empty_members=("b-11111111-2222-3333-4444-555555555555",),
            joined=(
                ("a-11111111-2222-3333-4444-555555555555", 10, 10),
                ("b-11111111-2222-3333-4444-555555555555", 11, 11),
            ),
        ),
        at_ms=13.0,
    )
    assert lines(group, decision) == []
    assert lines(group, decision, say(group, "a", taken(4), at_ms=14.0)) == [
        "     13    4   *  .   join a:v10/10 b:v11/11  future b",
        "     13    4   *  .   assign v10 common v10, empty to b  version probing",
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (11, 10, "      0    1   .  v   downgrade v11 -> v10, rejoin"),
        (10, 11, "      0    1   .  ^   upgrade v10 -> v11, rejoin"),
        (11, 11, "      0    1   .  .   b rejoins at v11: because"),
    ],
)
def test_the_line_of_a_rejoin_uses_standard_terms(group, before, after, expected):
    assert lines(group, say(group, "b", rejoin(before, after))) == [expected]


def test_members_that_are_down_are_drawn_so(group):
    group.note_end("b", incarnation=0, failed=False, at_ms=1.0)
    assert lines(group, say(group, "a", rejoin(10, 11))) == [
        "      0    1   ^  #   upgrade v10 -> v11, rejoin"
    ]


def test_an_error_answer_is_reported(group):
    traced = lines(group, say(group, "b", taken(2, error_code=3)))
    assert traced == ["      0    2   .  .   b got error 3 instead of tasks"]
