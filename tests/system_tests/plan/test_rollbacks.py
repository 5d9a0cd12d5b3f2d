"""Rollbacks: what every pair of releases demands on the way back, the same in plans up and down."""

import json
import re
from functools import cache
from itertools import combinations

import pytest
from click.testing import CliRunner

from probing import RELEASES, find_release
from probing.upgrades.formats import ONE_WAY_FORMATS
from system_tests.cli.main import main
from system_tests.engine import OptionError
from system_tests.plan import SimulatedGroup, Use, make_plan, step_costs
from system_tests.plan.exactly_once import guarantee_of
from system_tests.plan.text import (
    assumptions,
    settings_of,
    step_text,
)
from system_tests.plan.uses import VERSIONS, read_uses

# The newest patch of each series: paths between patches of a series cross no format.
KAFKA = tuple({r.series: r for r in RELEASES if not r.is_native}.values())
PAIRS = tuple(combinations(KAFKA, 2))
SINCE = re.compile(r"since (\S+)")
V1, V2, BETA = (f"processing.guarantee=exactly_once{end}" for end in ("", "_v2", "_beta"))


@cache
def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def between(low, high):
    return [
        row.since
        for row in ONE_WAY_FORMATS
        if low.order < find_release(row.since).order <= high.order
    ]


def demanded(steps):
    return {demand for step in steps for demand in step.demands}


def actions(steps):
    return [
        (s.release, s.upgrade_from, s.rolling, s.deletes_state, s.resets, s.expires, s.consumes)
        for s in steps
    ]


def whole(made):
    """Return the steps that undo a plan, the last step of the plan first."""
    return [again for step in reversed(made.steps) for again in step.back.steps]


def pairs(*uses):
    """Return the pairs, lower first, in which both releases have the features."""
    found = []
    for low, high in PAIRS:
        try:
            plan(low.name, high.name, *uses)
        except OptionError:
            continue
        found.append((low, high))
    return found


SINGLE = (Use.EOS, Use.KTABLE, Use.FK_JOIN, Use.SUPPRESS, Use.STATIC)
EVERY_USE = [(), *((use,) for use in SINGLE), tuple(u for u in Use if u not in VERSIONS)]


@pytest.mark.parametrize("uses", EVERY_USE, ids=lambda uses: "+".join(uses) or "plain")
def test_the_way_back_of_a_plan_is_the_plan_of_the_other_direction(uses):
    """What differs is processing.guarantee alone: a plan downwards assumes version 2."""
    for low, high in pairs(*uses):
        for old, new in ((low, high), (high, low)):
            forth, back = plan(old.name, new.name, *uses), plan(new.name, old.name, *uses)
            if forth.stops != back.stops[::-1]:
                lost = [sum(step.loses for step in steps) for steps in (whole(forth), back.steps)]
                assert lost[0] > lost[1] if old is low else lost == [0, 0]
                continue
            wanted = [step for step in back.steps if step.stage >= 0 or step.upgrade_from]
            found = [step for step in whole(forth) if step.stage >= 0 or step.upgrade_from]
            assert actions(found) == actions(wanted), (old.name, new.name)
            assert demanded(found) == demanded(wanted)


@pytest.mark.parametrize("uses", EVERY_USE, ids=lambda uses: "+".join(uses) or "plain")
def test_every_back_undoes_its_own_step_and_nothing_else(uses):
    for low, high in pairs(*uses):
        for old, new in ((low, high), (high, low)):
            before = (old.name, None)
            for step in plan(old.name, new.name, *uses).steps:
                last = step.back.steps[-1]
                assert (last.release, last.upgrade_from) == before
                lost = any(again.loses for again in step.back.steps)
                assert lost or not between(find_release(before[0]), find_release(step.release))
                before = (step.release, step.upgrade_from)


def test_a_rollback_goes_over_the_release_that_deletes_state_least_often():
    for old, new, *uses in (("4.1", "2.5.1", Use.EOS), ("4.3", "2.3.1"), ("4.3", "2.3", Use.EOS)):
        made = plan(old, new, *uses)
        assert made.stops[1] == "2.8.2"
        assert [step.loses for step in made.steps] == [True, False, False]
        assert any("over 3.9.2, which is newer than 2.8.2" in why for why in made.steps[0].why)
        assert plan(new, old, *uses).stops[1] == "3.9.2"  # nothing is deleted on the way up
    # With KTable aggregations the older release takes one bounce more, and with 2.2 all delete.
    assert plan("4.3", "2.3", Use.KTABLE).stops[1] == plan("4.3", "2.2").stops[1] == "3.9.2"


def test_nothing_is_called_a_point_of_no_return_that_rolling_bounces_take_back():
    for uses in EVERY_USE:
        for low, high in pairs(*uses):
            for made in (plan(low.name, high.name, *uses), plan(high.name, low.name, *uses)):
                hard = [at for at, s in enumerate(made.steps, 1) if s.resets or not s.back.rolling]
                assert made.no_return == (hard[0] if hard else None)


def test_state_is_deleted_where_a_release_cannot_read_it():
    for low, high in PAIRS:
        down = plan(high.name, low.name)
        lost = between(low, high)
        since = [found for demand in demanded(down.steps) for found in SINCE.findall(demand)]
        assert sorted(since) == sorted(lost)
        assert not any("[" in demand for demand in demanded(down.steps))
        assert plan(low.name, high.name).restores_from == (1 if lost else None) or len(lost) > 1
        for step in down.steps:
            old, new = find_release(step.old), find_release(step.release)
            assert step.deletes_state == bool(between(new, old))
            assert ("state directories" in step_text(step)) == step.deletes_state


def test_a_plan_upwards_deletes_nothing():
    for low, high in PAIRS:
        steps = plan(low.name, high.name, Use.KTABLE).steps
        assert not demanded(steps)
        assert not any(step.consumes or step.loses for step in steps)


def test_records_of_ktables_are_consumed_with_the_former_format_before_an_old_release_starts():
    first = find_release("3.5.0").order
    for low, high in PAIRS:
        down = plan(high.name, low.name, Use.KTABLE)
        waits = [step for step in down.steps if step.consumes]
        is_needed = low.order < first <= high.order
        assert bool(waits) == (is_needed and down.rolling), (high.name, low.name)
        if not down.rolling:
            (step,) = down.steps
            assert step.drains is is_needed
            assert any("no member has read" in demand for demand in step.demands) is is_needed
            assert ("when the group has no lag in any topic" in step_text(step)) is is_needed
        for step in waits:
            after = down.steps[down.steps.index(step) + 1]
            assert (step.release, step.upgrade_from) == (step.old, find_release(low.name).series)
            assert find_release(after.release).order < first
            assert "after the last one, wait until each repartition topic has been" in step_text(
                step
            )


@pytest.mark.parametrize("patch", ["3.5.0", "3.5.1"])
def test_3_5_0_and_3_5_1_keep_the_format_with_the_value_before(patch):
    up, down = plan("3.4.0", patch, Use.KTABLE), plan(patch, "3.4.0", Use.KTABLE)
    assert [(s.release, s.upgrade_from) for s in up.steps] == [(patch, "3.3"), (patch, None)]
    assert [(s.release, s.upgrade_from) for s in down.steps] == [(patch, "3.3"), ("3.4.0", None)]
    assert any(
        "upgrade.from=3.4 is accepted by the configuration" in why for why in up.steps[0].why
    )


@pytest.mark.parametrize("new", ["3.3.0", "3.4", "3.9", "4.3"])
def test_foreign_key_joins_are_never_bounced_over_3_3_and_only_a_reset_leads_back(new):
    up, down = plan("3.2", new, Use.FK_JOIN), plan(new, "3.2", Use.FK_JOIN)
    assert not up.rolling
    assert not down.rolling
    assert (up.no_return, down.no_return) == (1, 1)
    assert "reset the application" in step_text(down.steps[0])
    assert [step.resets for step in up.steps[0].back.steps] == [True]
    assert "UnsupportedVersionException" in up.obstacles[0]
    assert plan("3.3.0", "4.3", Use.FK_JOIN).rolling


@pytest.mark.parametrize(("new", "drains"), [("3.3.0", True), ("3.3.2", True), ("3.4.0", False)])
def test_3_3_is_started_after_all_foreign_key_subscriptions_are_consumed(new, drains):
    (step,) = plan("3.2", new, Use.FK_JOIN).steps
    again = plan(new, "3.2", Use.FK_JOIN).steps[0].back.steps[0]
    for found in (step, again):
        assert found.drains is drains
        assert ("when the group has no lag in any topic, stop" in step_text(found)) is drains
        assert any("better take 3.4.0 or later" in line for line in found.demands) is drains


@pytest.mark.parametrize(
    ("old", "new", "resets"),
    [
        ("2.1.1", "2.2.1", False),
        ("2.2.2", "2.3.0", False),
        ("2.2.2", "2.5.0", False),
        ("2.3.1", "2.4.0", True),
        ("2.3.0", "2.5.0", True),
        ("2.3.1", "2.5.1", False),
        ("2.3.1", "4.4", False),
        ("2.5.0", "2.5.1", False),
        ("2.4.0", "4.3", False),
    ],
)
def test_buffers_of_suppress_are_never_bounced_over_a_format_and_only_a_reset_leads_back(
    old, new, resets
):
    up, down = plan(old, new, Use.SUPPRESS), plan(new, old, Use.SUPPRESS)
    assert (up.rolling, down.rolling, up.no_return, down.no_return) == (False, False, 1, 1)
    ((back,), (again,)) = (made.steps[0].back.steps for made in (up, down))
    for step, is_reset in ((up.steps[0], resets), (down.steps[0], True), (back, True)):
        assert step.resets is is_reset
        assert ("reset the application" in step_text(step)) is is_reset
    for step in (up.steps[0], again):
        assert any("better take 2.5.1 or later" in line for line in step.demands) is resets
        assert not step.drains


@pytest.mark.parametrize("pair", [("2.1.0", "2.2.0"), ("2.4.0", "2.5.0"), ("2.5.1", "4.4")])
def test_releases_with_the_same_buffers_of_suppress_need_no_step_for_them(pair):
    for old, new in (pair, pair[::-1]):
        made, plain = plan(old, new, Use.SUPPRESS), plan(old, new)
        assert actions(made.steps) == actions(plain.steps)
        assert made.no_return is None
    assert plan(*pair, Use.SUPPRESS).rolling


@pytest.mark.parametrize(("old", "new", "expires"), [("3.9", "3.1", True), ("3.9", "3.2", False)])
def test_a_static_member_waits_for_its_session_before_a_program_that_cannot_read_its_answer(
    old, new, expires
):
    down, up = plan(old, new, Use.STATIC), plan(new, old, Use.STATIC)
    for step in (down.steps[-1], up.steps[-1].back.steps[-1]):
        assert step.expires is expires
        assert ("only after its session has expired" in step_text(step)) is expires
    assert not any(step.expires for step in up.steps)
    assert not any(step.expires for step in plan(old, new).steps)


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


@pytest.mark.parametrize("uses", [(), (Use.EOS,)], ids=lambda uses: "+".join(uses) or "plain")
def test_a_group_at_the_eager_protocol_leaves_it_before_it_returns_to_a_release_without(uses):
    for low, high in pairs(*uses):
        made = plan(high.name, low.name, *uses)
        for step in made.steps:
            if not step.upgrade_from or step.release == high.name:
                continue
            (first,) = step.back.steps
            assert (first.release, first.upgrade_from) == (step.release, None)
            assert (whole(made)[-1].release, whole(made)[-1].upgrade_from) == (high.name, None)
            assert whole(made)[-1].version == made.steps[0].version


@pytest.mark.parametrize(
    ("old", "new", "use", "wanted"),
    [
        ("2.8", "4.3", Use.EOS_V1, [("2.8.2", BETA), ("4.3.1", V2)]),
        ("2.8", "4.3", Use.EOS_V2, [("4.3.1", V2)]),
        ("2.8", "3.9", Use.EOS_V1, [("3.9.2", "")]),
        ("3.9", "4.3", Use.EOS_V2, [("4.3.1", "")]),
        ("3.9", "2.4", Use.EOS_V1, [("2.4.1", "")]),
        ("3.9", "2.4", Use.EOS_V2, [("3.9.2", V1), ("2.4.1", "")]),
        ("4.3", "2.8", Use.EOS_V2, [("2.8.2", BETA)]),
        ("3.9", "2.8", Use.EOS_V1, [("2.8.2", "")]),
        ("3.9", "2.8", Use.EOS_V2, [("2.8.2", BETA)]),
    ],
)
def test_a_known_version_of_exactly_once_decides_whether_members_switch(old, new, use, wanted):
    made = make_plan(find_release(old), find_release(new), read_uses(use))
    assert [(step.release, " ".join(step.settings)) for step in made.steps] == wanted
    assert not any("members run processing" in line for line in assumptions(made))
    rows = [change.what for change in made.changes if "changes transactional ids" in change.what]
    assert bool(rows) is (use is Use.EOS_V1 and new == "4.3")


def test_an_assumed_version_is_named_if_members_have_a_choice():
    (_, named) = assumptions(plan("2.8", "4.3", Use.EOS))
    assert named.endswith("=exactly_once; if they run exactly_once_beta, plan with --uses eos-v2")
    (_, named) = assumptions(plan("3.9", "2.4", Use.EOS))
    assert named.endswith("=exactly_once_v2; if they run exactly_once, plan with --uses eos-v1")
    (_, named) = assumptions(plan("3.9", "2.8", Use.EOS))  # which refuses this name
    assert named.endswith("=exactly_once_v2; if they run exactly_once, plan with --uses eos-v1")
    for pair in (("2.4", "4.3"), ("4.3", "2.4"), ("2.8", "3.9")):
        assert len(assumptions(plan(*pair, Use.EOS))) == 1


@pytest.mark.parametrize("old", ["2.8", "3.0", "3.9", "4.3"])
@pytest.mark.parametrize("new", ["2.3.1", "2.4.1"])
def test_every_way_back_of_a_rollback_ends_with_the_guarantee_that_it_started_with(old, new):
    made = plan(old, new, Use.EOS)
    assert any(V1 in step.settings for step in made.steps)
    assert settings_of(whole(made)[-1])[-1] == guarantee_of(find_release(old)) != V1


def test_the_command_says_that_state_is_deleted():
    words = ["plan", "--from", "4.1", "--to", "3.9", "--seeds", "1"]
    text = CliRunner().invoke(main, words).stdout
    assert "  do:   delete the state directories before you start 3.9.2, which cannot read" in text
    assert "point of no return: none on this path" in text
    undo = "each back undoes its own step; to return to the start, undo the steps"
    assert undo not in text  # there is one step
    longer = CliRunner().invoke(main, ["plan", "--from", "4.1", "--to", "2.3.1", "--no-costs"])
    assert undo in longer.stdout
    done = CliRunner().invoke(main, [*words, "--format", "json"])
    (step,) = json.loads(done.stdout)["steps"]
    assert (step["deletes_state"], step["until"]) == (True, "")
