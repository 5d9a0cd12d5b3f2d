"""The story of a simulated bounce, compared with its trace."""

from collections import Counter
from itertools import pairwise

import pytest
from click.testing import CliRunner

from system_tests.cli.main import main
from system_tests.report.sim import name_of, story_of_simulation
from system_tests.report.story import GROUP, MarkKind, RebalanceCause
from system_tests.sim import BounceOptions, run_bounce
from system_tests.sim.events import Answered, Ended, Gave, Rejoined, Took


@pytest.fixture(scope="module")
def outcome():
    return run_bounce(BounceOptions(seed=7, old="2.3.1", new="3.9"))


@pytest.fixture(scope="module")
def story(outcome):
    return story_of_simulation(outcome)


def run(*arguments):
    return CliRunner().invoke(main, ["simulate", *arguments])


def overlaps(bars):
    return [
        (bar, following)
        for bar, following in pairwise(sorted(bars, key=lambda bar: bar.from_ms))
        if following.from_ms < bar.until_ms
    ]


def test_no_partition_has_two_owners_in_the_report_of_a_good_bounce(story):
    assert story.partitions == tuple(f"lines-{number}" for number in range(6))
    for partition in story.partitions:
        bars = [bar for bar in story.owners if bar.lane == partition]
        assert bars
        assert overlaps(bars) == []


def test_a_member_that_revokes_a_partition_or_ends_owned_it_until_then(outcome, story):
    owned = {(bar.lane, bar.key, bar.until_ms) for bar in story.owners}
    given = {
        (name_of(partition), event.thread, event.at_ms)
        for event in outcome.trace
        if isinstance(event, Gave)
        for partition in event.partitions
    }
    assert given
    assert given <= owned
    ends = {(event.thread, event.at_ms) for event in outcome.trace if isinstance(event, Ended)}
    lasting = [(bar.key, bar) for bar in story.owners] + [(b.lane, b) for b in story.versions]
    for thread, at_ms in ends:
        assert not [b for t, b in lasting if t == thread and b.from_ms < at_ms < b.until_ms]


def test_at_the_end_every_partition_belongs_to_its_last_owner(outcome, story):
    last = {event.thread: event.partitions for event in outcome.trace if isinstance(event, Took)}
    expected = {(name_of(p), thread) for thread, taken in last.items() for p in taken}
    assert {(b.lane, b.key) for b in story.owners if b.until_ms == story.end_ms} == expected


def test_a_member_writes_one_version_at_a_time_and_the_bar_names_its_release(story):
    for lane in story.lanes:
        bars = [bar for bar in story.versions if bar.lane == lane]
        assert overlaps(bars) == []
        assert bars[0].text == "2.3.1 v4"
        assert bars[-1].text == "3.9.2 v11"
    assert {bar.key for bar in story.versions} == {"v4", "v11"}
    assert any("3.9.2, upgrade.from=2.3 writes v4" in bar.hover for bar in story.versions)


def test_every_decision_and_rejoin_is_a_mark_that_names_its_rule(outcome, story):
    decided = [event for event in outcome.trace if isinstance(event, Answered)]
    leads = [mark for mark in story.marks if mark.kind is MarkKind.LEADS]
    assert [(m.lane, m.at_ms) for m in leads] == [(event.thread, event.at_ms) for event in decided]
    assert all(f"rule: {event.rule}" in m.hover for m, event in zip(leads, decided, strict=True))
    rejoined = Counter(
        (event.thread, event.rule) for event in outcome.trace if isinstance(event, Rejoined)
    )
    marks = [m for m in story.marks if "rejoins" in m.kind.value]
    assert Counter((m.lane, m.hover.split("rule: ")[1]) for m in marks) == rejoined
    kinds = Counter(m.kind for m in marks)
    assert kinds == {MarkKind.DOWNGRADES: 2, MarkKind.UPGRADES: 2, MarkKind.REJOINS: 1}


def test_rebalances_have_the_cause_that_they_were_counted_under(outcome, story):
    counted = Counter(rebalance.cause for rebalance in story.rebalances)
    assert counted[RebalanceCause.MEMBERSHIP] == len(outcome.rebalances.membership)
    assert counted[RebalanceCause.VERSION] == len(outcome.rebalances.version) > 0
    assert counted[RebalanceCause.FOLLOWUP] == len(outcome.rebalances.followup)
    assert counted[RebalanceCause.REPEATED] == len(outcome.rebalances.repeated)
    assert counted[RebalanceCause.EDGE] == 1
    assert [rebalance.generation for rebalance in story.rebalances] == list(range(1, 11))
    assert [rebalance.at_ms for rebalance in story.rebalances] == sorted(
        o.at_ms for o in story.rebalances
    )


def test_a_broken_rule_has_a_mark_and_is_the_first_fact():
    story = story_of_simulation(
        run_bounce(BounceOptions(seed=1, old="1.1.1", new="2.3.1", force=True))
    )
    assert not story.ok
    assert story.facts[0].startswith("nobody dies: ")
    broken = [mark for mark in story.marks if mark.kind is MarkKind.BROKEN]
    assert broken
    assert broken[0].lane == GROUP
    died = [mark for mark in story.marks if mark.kind is MarkKind.DIES]
    assert {mark.at_ms for mark in broken} <= {mark.at_ms for mark in died}


def test_every_thread_has_a_lane_with_its_crashes():
    faults = frozenset({"pause", "crash", "leader"})
    options = BounceOptions(seed=2, old="3.1", new="native", members=2, threads=2, faults=faults)
    story = story_of_simulation(run_bounce(options))
    assert story.lanes == ("a1", "a2", "b1", "b2")
    assert [mark.lane for mark in story.marks if mark.kind is MarkKind.DIES] == ["b1", "b2"]


def test_a_report_is_of_one_seed(tmp_path):
    done = run("--seeds", "2", "--report", str(tmp_path / "page.html"))
    assert done.exit_code == 2
    assert "give --seed instead of --seeds" in done.stderr


def test_simulate_prints_the_same_with_and_without_a_report(tmp_path):
    page = tmp_path / "page.html"
    with_page = run("--seed", "7", "--report", str(page))
    assert (with_page.exit_code, with_page.stdout) == (0, run("--seed", "7").stdout)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_report_that_cannot_be_written_ends_with_3_and_nothing_was_run(tmp_path):
    done = run("--seed", "7", "--report", str(tmp_path / "no" / "page.html"))
    assert (done.exit_code, done.stdout) == (3, "")
    assert "choose another file" in done.stderr
