"""Rollbacks: what every pair of releases demands on the way back, the same in plans up and down."""

import json
import re
from functools import cache
from itertools import combinations

import pytest
from click.testing import CliRunner

from probing import RELEASES, find_release
from probing.releases import ONE_WAY_FORMATS
from system_tests.cli.main import main
from system_tests.plan import SimulatedGroup, Use, make_plan, step_costs
from system_tests.plan.exactly_once import guarantee_of
from system_tests.plan.text import step_text
from system_tests.sim import OptionError

# The newest patch of each series: paths between patches of a series cross no format.
KAFKA = tuple({r.series: r for r in RELEASES if not r.is_native}.values())
PAIRS = tuple(combinations(KAFKA, 2))


@cache
def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def between(low, high, *, is_state):
    return [
        row.since
        for row in ONE_WAY_FORMATS
        if row.is_state is is_state and low.order < find_release(row.since).order <= high.order
    ]


def demanded(made):
    return {demand for step in made.steps for demand in step.demands}


@pytest.mark.slow
@pytest.mark.parametrize("uses", [(), (Use.EOS,)], ids=["plain", "eos"])
def test_a_plan_downwards_deletes_the_state_that_the_way_back_of_the_plan_upwards_deletes(uses):
    earliest = find_release("0.11.0.0").order if uses else KAFKA[0].order
    for low, high in (pair for pair in PAIRS if pair[0].order >= earliest):
        up, down = plan(low.name, high.name, *uses), plan(high.name, low.name, *uses)
        lost = between(low, high, is_state=True)
        assert demanded(down) == set(up.steps[-1].back.costs), (low.name, high.name)
        assert {demand.split()[1] for demand in demanded(down)} == set(lost)
        assert (down.no_return is None) == (down.rolling and not lost), (high.name, low.name)
        assert any(step.deletes_state for step in down.steps) == bool(lost)


def test_no_release_is_started_on_state_that_it_cannot_read():
    for low, high in PAIRS:
        for step in plan(high.name, low.name).steps:
            old, new = find_release(step.old), find_release(step.release)
            assert step.deletes_state == bool(between(new, old, is_state=True))
            assert ("state directories" in step_text(step)) == step.deletes_state


def test_a_plan_upwards_deletes_nothing():
    for low, high in PAIRS:
        assert not demanded(plan(low.name, high.name, Use.KTABLE))
        assert not any(step.until for step in plan(low.name, high.name, Use.KTABLE).steps)


def test_records_of_ktables_are_consumed_with_the_former_format_before_an_old_release_starts():
    for low, high in PAIRS:
        down = plan(high.name, low.name, Use.KTABLE)
        waits = [step for step in down.steps if step.until]
        lost = between(low, high, is_state=False)
        if not down.rolling:
            assert any("KIP-904" in demand for demand in demanded(down)) == bool(lost)
            continue
        assert bool(waits) == bool(lost), (high.name, low.name)
        for step in waits:
            after = down.steps[down.steps.index(step) + 1]
            assert (step.release, step.upgrade_from) == (step.old, find_release(low.name).series)
            assert find_release(after.release).order < find_release("3.5.0").order
            assert "at last until all records have been consumed" in step_text(step)


def test_foreign_key_joins_have_their_records_consumed_as_well():
    assert plan("3.9", "3.2", Use.FK_JOIN).steps[0].until
    assert not plan("3.9", "3.4", Use.FK_JOIN).steps[0].until


@pytest.mark.parametrize(("old", "new"), [("4.1", "3.9"), ("3.9", "2.8"), ("2.3.1", "2.2.2")])
def test_a_rollback_over_a_format_costs_all_state_and_the_same_way_up_does_not(old, new):
    group = SimulatedGroup(sizes=(1_000_000,) * 4, partitions=4, session_timeout_ms=10_000)
    (down,) = step_costs(plan(old, new), group, seeds=4)
    (up,) = step_costs(plan(new, old), group, seeds=4)
    assert min(run.restored for run in down.runs) >= 4_000_000
    assert up.usual("restored") < down.usual("restored")


def test_static_members_restore_all_state_of_a_rollback_over_a_format():
    group = SimulatedGroup(
        sizes=(1_000_000,) * 4, partitions=4, is_static=True, session_timeout_ms=600_000
    )
    (down,) = step_costs(plan("4.1", "3.9", Use.STATIC), group, seeds=2)
    (up,) = step_costs(plan("3.9", "4.1", Use.STATIC), group, seeds=2)
    assert down.usual("restored") >= 4_000_000
    assert up.usual("restored") < 1_000_000


def test_a_step_that_only_sets_the_pin_costs_no_rebuild():
    group = SimulatedGroup(sizes=(1_000_000,) * 4, partitions=4, session_timeout_ms=10_000)
    pin, release = step_costs(plan("3.9", "2.8", Use.KTABLE), group, seeds=2)
    assert release.usual("restored") >= 4_000_000 > pin.usual("restored")


@pytest.mark.parametrize(
    ("release", "use"),
    [
        ("0.10.2", Use.EOS),
        ("2.3.1", Use.FK_JOIN),
        ("2.2", Use.STATIC),
        ("0.10.0", Use.IQ),
        ("0.10.0", Use.REGEX),
    ],
)
def test_a_feature_that_a_release_does_not_have_is_refused(release, use):
    for pair in ((release, "3.9"), ("3.9", release)):
        with pytest.raises(OptionError, match=f"leave {use} out of --uses, or take releases from"):
            plan(*pair, use)


def test_the_command_refuses_it_too_and_names_no_option_that_it_does_not_have():
    words = ["plan", "--from", "0.10.0", "--to", "1.1", "--uses", "static"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "leave static out of --uses" in done.stderr


@pytest.mark.parametrize("old", ["2.8", "3.0", "3.9", "4.3"])
@pytest.mark.parametrize("new", ["2.3.1", "2.4.1"])
def test_every_way_back_of_a_rollback_ends_with_the_guarantee_that_it_started_with(old, new):
    made = plan(old, new, Use.EOS)
    guarantee, is_switched = guarantee_of(find_release(old)), False
    for step in made.steps:
        is_switched |= "processing.guarantee=exactly_once" in step.settings
        if is_switched:
            named = re.findall(r"processing.guarantee=\w+", step.back.sentence)
            assert named[-1] == guarantee != "processing.guarantee=exactly_once"
    assert is_switched


def test_the_command_says_that_state_is_deleted():
    words = ["plan", "--from", "4.1", "--to", "3.9", "--seeds", "1"]
    text = CliRunner().invoke(main, words).stdout
    assert "  do:   since 4.0.0 state stores are written by a newer RocksDB" in text
    assert "!! point of no return: from here on, state is deleted and restored" in text
    done = CliRunner().invoke(main, [*words, "--format", "json"])
    (step,) = json.loads(done.stdout)["steps"]
    assert (step["deletes_state"], step["until"]) == (True, "")
