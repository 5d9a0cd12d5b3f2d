"""The report page of a live bounce: bars and marks from the reports of members."""

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main
from system_tests.live.events import (
    AnswersDecided,
    AssignmentTaken,
    MemberFailed,
    MemberStarted,
    MemberStopped,
    PartitionsAssigned,
    PartitionsRevoked,
    RejoinRequested,
    Report,
    SubscriptionWritten,
)
from system_tests.live.evidence.story import story_of_live
from system_tests.live.evidence.verdict import Check, Verdict
from system_tests.live.options import LiveOptions
from system_tests.live.plan import LivePlan, Stage
from system_tests.live.report import Outcome
from system_tests.report.story import GROUP, MarkKind, RebalanceCause

BEGAN_MS = 1_000_000.0


def report(member, at_ms, event, incarnation=0):
    return Report(member=member, incarnation=incarnation, at_ms=BEGAN_MS + at_ms, event=event)


def started(release):
    return MemberStarted(pid=1, release=release, upgrade_from=None)


def wrote(version):
    return SubscriptionWritten(version=version, latest_supported_version=version, size=40)


def took(generation):
    return AssignmentTaken(
        generation=generation,
        version=10,
        commonly_supported_version=10,
        active_tasks=(),
        standby_tasks=(),
        error_code=0,
        next_version=10,
    )


DECIDED = AnswersDecided(
    version=10,
    commonly_supported_version=10,
    members=2,
    rule="lowest used version",
    why="b wrote 10",
    version_probing=True,
    future_members=(),
    quarantined_members=(),
)
REJOINS = RejoinRequested(
    rule="a member is not upgraded yet",
    why="come down",
    used_version_before=11,
    used_version_after=10,
    for_version=True,
)
# a is bounced and lowers its version; b is killed at the end.
REPORTS = (
    report("a", 0, started("3.1.2")),
    report("b", 5, started("3.1.2")),
    report("a", 10, wrote(10)),
    report("b", 10, wrote(10)),
    report("b", 20, DECIDED),
    report("a", 21, took(1)),
    report("b", 22, took(1)),
    report("a", 25, PartitionsAssigned(partitions=(0,))),
    report("b", 25, PartitionsAssigned(partitions=(1,))),
    report("a", 40, PartitionsRevoked(partitions=(0,))),
    report("a", 41, MemberStopped(records=3)),
    report("b", 45, took(2)),
    report("a", 60, started("native"), 1),
    report("a", 70, wrote(11), 1),
    report("a", 80, took(3), 1),
    report("b", 81, took(3)),
    report("a", 82, REJOINS, 1),
    report("a", 90, wrote(10), 1),
    report("a", 95, took(4), 1),
    report("b", 96, took(4)),
    report("a", 97, PartitionsAssigned(partitions=(0,)), 1),
)
ENDED_MS = {("a", 0): BEGAN_MS + 50, ("b", 0): BEGAN_MS + 200}


def story(reports=REPORTS, *, failure=None, checks=()):
    stage = Stage(release="native", upgrade_from=None, latest_version=101)
    before = Stage(release="3.1.2", upgrade_from=None, latest_version=10)
    outcome = Outcome(
        verdict=None if failure else Verdict(checks=checks),
        failure=failure,
        death=None,
        used_versions={},
        records={"a": 3, "b": 4},
        first_generation=1,
        generation=4,
        steps=(),
        reports=tuple(reports),
        ended_ms=ENDED_MS,
        seconds=1.0,
        bounce_seconds=0.5,
    )
    plan = LivePlan(before=before, stages=(stage,), promised_versions=(101,))
    options = LiveOptions(partitions=2)
    return story_of_live(outcome, plan, options, lines=(), replay="rolling-bounce live")


def spans(bars, lane):
    return [(bar.key, bar.from_ms, bar.until_ms) for bar in bars if bar.lane == lane]


def test_a_member_has_a_bar_for_each_version_it_writes_and_none_while_it_is_down():
    assert spans(story().versions, "a") == [
        ("v10", 10, 41),
        ("v11", 70, 90),
        ("v10", 90, pytest.approx(206)),
    ]
    assert [bar.text for bar in story().versions if bar.lane == "a"][1] == "native v11"


def test_a_killed_owner_owns_until_its_process_was_seen_to_be_gone():
    owners = story().owners
    assert spans(owners, "partition 0") == [("a", 25, 40), ("a", 97, pytest.approx(206))]
    assert spans(owners, "partition 1") == [("b", 25, 200)]


def test_marks_have_the_rule_and_the_reason_of_the_member():
    marks = {mark.kind: mark for mark in story().marks}
    assert marks[MarkKind.LEADS].lane == "b"
    assert "rule: lowest used version" in marks[MarkKind.LEADS].hover
    assert "rule: a member is not upgraded yet\ncome down" in marks[MarkKind.DOWNGRADES].hover
    assert (marks[MarkKind.STOPS].lane, marks[MarkKind.STOPS].at_ms) == ("a", 41)
    assert (marks[MarkKind.DIES].lane, marks[MarkKind.DIES].at_ms) == ("b", 200)


def test_a_member_that_fails_with_a_reason_ends_once():
    reports = (*REPORTS, report("b", 150, MemberFailed(why="cannot decode")))
    dies = [m for m in story(reports).marks if m.kind is MarkKind.DIES and m.lane == "b"]
    assert [(m.at_ms, m.hover) for m in dies] == [(150, "b fails: cannot decode")]
    assert spans(story(reports).versions, "b") == [("v10", 10, 150)]


def test_rebalances_have_their_cause():
    found = [
        (rebalance.generation, rebalance.at_ms, rebalance.cause) for rebalance in story().rebalances
    ]
    assert found == [
        (1, 21, RebalanceCause.EDGE),
        (2, 45, RebalanceCause.MEMBERSHIP),
        (3, 80, RebalanceCause.MEMBERSHIP),
        (4, 95, RebalanceCause.VERSION),
    ]


def test_failed_checks_come_first_and_are_marked_at_the_end():
    checks = tuple(
        Check(name=name, ok=ok, sentence=f"{name}!", numbers={})
        for name, ok in (("records", True), ("owners", False))
    )
    failed_story = story(checks=checks)
    assert not failed_story.ok
    assert failed_story.facts[:2] == ("owners: owners!", "records: records!")
    broken = [mark for mark in failed_story.marks if mark.kind is MarkKind.BROKEN]
    assert [(mark.lane, mark.hover) for mark in broken] == [(GROUP, "owners!")]


def test_an_experiment_that_ended_early_or_before_it_began_has_a_report():
    assert story(failure="member b died").facts[0] == "member b died"
    assert story((), failure="the group did not settle").versions == ()


def test_a_report_that_cannot_be_written_ends_with_3_before_anything_starts(tmp_path):
    path = str(tmp_path / "no" / "page.html")
    done = CliRunner().invoke(main, ["live", "--from", "3.1", "--to", "native", "--report", path])
    assert (done.exit_code, done.stdout) == (3, "")
    assert "choose another file for --report" in done.stderr
