"""Simulated costs: ranges, causes, and groups of other sizes."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli.main import main
from system_tests.engine import Broken
from system_tests.plan import (
    SimulatedGroup,
    StepCost,
    StepRun,
    Use,
    costs_lines,
    make_plan,
    plan_document,
    scaled,
    step_costs,
)
from system_tests.plan import group as model
from system_tests.plan.cost import legs_of
from system_tests.plan.cost_text import (
    causes_of,
    cost_document,
    count_text,
    duration_text,
    seconds_text,
    simulated_text,
)


def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def cost(old, new, *uses, seeds=3, **group):
    made = plan(old, new, *uses)
    return made, step_costs(made, SimulatedGroup(**group), seeds=seeds)


def run(pause_ms, **other):
    zeros = dict.fromkeys(StepRun.__dataclass_fields__, 0)
    return StepRun(**{**zeros, "broken": (), "known": (), "pause_ms": pause_ms, **other})


def test_a_range_leaves_out_five_percent_at_each_end():
    measured = StepCost(tuple(run(ms) for ms in range(100)))
    assert measured.spread("pause_ms") == (5, 95)
    assert measured.usual("pause_ms") == 49
    assert StepCost((run(7),)).spread("pause_ms") == (7, 7)


def test_a_share_is_of_the_pauses_of_all_seeds():
    measured = StepCost((run(100, session_ms=90, restore_ms=10), run(100, restore_ms=40)))
    assert measured.share("session_ms") == 0.45
    assert measured.share("restore_ms") == 0.25
    assert measured.share("rebalance_ms") == 0.30


def test_pauses_follow_the_session_timeout_of_the_members_that_stop():
    _, (first, second, *_) = cost("2.3.1", "3.9")
    assert 10_000 <= first.usual("longest_pause_ms") < 20_000  # sessions of 2.3.1: 10 s
    assert second.usual("longest_pause_ms") >= 45_000  # of 3.9: 45 s
    _, (shorter,) = cost("3.9", "4.3", session_timeout_ms=10_000)
    assert shorter.usual("longest_pause_ms") < 20_000


@pytest.mark.parametrize("growth", [0, 10, 100])
def test_the_longest_pause_does_not_jump_with_a_tiny_restore(growth):
    # The next member is stopped when all partitions run: no pause lasts two sessions of 45 s.
    _, (_, second) = cost("2.3.1", "3.9", growth=growth)
    assert 45_000 <= second.usual("longest_pause_ms") < 50_000


def test_a_step_lasts_longer_than_the_pauses_of_its_members_in_turn():
    made, costs = cost("2.3.1", "3.9")
    for step, found in zip(made.steps, costs, strict=True):
        assert found.usual("duration_ms") >= 3 * 0.8 * found.usual("longest_pause_ms")
        shown = "\n".join(costs_lines((step,), (found,), SimulatedGroup()))
        assert duration_text(found, is_rolling=True) in shown


def test_the_duration_of_a_step_has_a_range_and_the_unit_that_suits_it():
    found = StepCost(tuple(run(0, duration_ms=m * 60_000) for m in (38, 40, 42)))
    turns = "with one member after the other"
    assert duration_text(found, is_rolling=True) == f"takes about 40 min (38 to 42) {turns}"
    stopped = duration_text(found, is_rolling=False)
    assert stopped == "takes about 40 min (38 to 42) from the first stop on"
    hours, short = (StepCost((run(0, duration_ms=ms),)) for ms in (90_000_000, 59_000))
    assert duration_text(hours, is_rolling=True) == f"takes about 25 h {turns}"
    assert duration_text(short, is_rolling=True) == f"takes about 59 s {turns}"


def test_a_range_has_three_digits_where_two_hide_a_difference():
    def shown(*values):
        found = StepCost(tuple(run(ms, restored=ms) for ms in values))
        return seconds_text(found, "pause_ms"), count_text(found, "restored")

    assert shown(102_000, 104_000, 131_000) == (
        "104 s (102 to 131)",
        "104,000 (102,000 to 131,000)",
    )
    assert shown(10_000, 12_000, 13_100) == ("12 s (10 to 13)", "12,000 (10,000 to 13,000)")
    assert shown(45_001, 45_002, 45_004) == ("45 s", "45,000")
    assert shown(4_510, 4_520, 4_560)[0] == "4.52 s (4.51 to 4.56)"
    assert shown(45_040, 45_100, 45_100)[0] == "45 s"


def test_few_bounces_have_their_smallest_and_largest_value_in_brackets():
    few, enough = (StepCost(tuple(run(ms) for ms in range(count))) for count in (19, 20))
    assert few.spread("pause_ms") == (0, 18)
    assert "19 bounces; in brackets: smallest to largest" in simulated_text(few)
    assert enough.spread("pause_ms") == (1, 19)
    assert "20 bounces; in brackets: 5 % to 95 % of them" in simulated_text(enough)


def test_a_slow_restore_is_named_as_the_cause():
    group = SimulatedGroup(sizes=(200_000,) * 6, restore=1_000, session_timeout_ms=6_000)
    made = plan("2.3.1", "2.5")
    costs = step_costs(made, group, seeds=2)
    worst = causes_of(made.steps[0], costs[0], group)
    assert [cause.setting for cause in worst if "restored" in cause.what] == [
        "raise num.standby.replicas above 0"
    ]


def test_static_members_that_return_in_time_cost_fewer_rebalances():
    _, (dynamic,) = cost("3.9", "4.3")
    _, (static,) = cost("3.9", "4.3", is_static=True)
    assert static.usual("rebalances") < dynamic.usual("rebalances")


def test_a_step_that_changes_a_setting_only_has_its_own_cost():
    made, costs = cost("3.9.1", "4.0", Use.EOS)
    assert len(costs) == 2
    assert made.steps[0].stage == -1
    assert costs[0].usual("membership") == 3


def test_more_than_26_members_are_bounced():
    _, (found,) = cost("3.9", "4.3", seeds=1, members=28, partitions=28)
    assert found.usual("membership") >= 28


def test_a_large_group_is_scaled_down_and_says_so():
    large = SimulatedGroup(members=640, partitions=6400, sizes=tuple(range(6400)))
    small = scaled(large, {})
    assert (small.members, small.partitions, len(small.sizes)) == (24, 240, 240)
    assert small.size_factor == 640 / 24
    (note,) = small.notes
    assert note.startswith("simulated with 24 of 640 members and 240 of 6400 tasks: ")
    whole = scaled(large, {}, sample=640)
    assert (whole.members, whole.partitions, whole.notes) == (640, 6400, ())
    fewer = scaled(large, {"members": 100})
    assert (fewer.members, fewer.size_factor) == (24, 100 / 24)
    threads = scaled(SimulatedGroup(members=20, threads=2, partitions=160), {})
    assert (threads.members, threads.threads, threads.partitions) == (20, 1, 160)
    assert threads.notes[0].startswith("simulated with 1 of 2 threads in each member")
    assert scaled(SimulatedGroup(members=20, threads=2), {"threads": 2}).notes == ()


def test_the_text_names_causes_ranges_and_settings():
    made, costs = cost("3.9", "4.3")
    text = "\n".join(costs_lines(made.steps, costs, SimulatedGroup()))
    what = "members stop without leaving the group; their sessions last 45 s"
    assert f"% of all pauses together: {what}" in text
    assert "set a shorter consumer.session.timeout.ms" in text
    assert "gives yours): 3 members with 1 thread each, 6 tasks" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--to 4.3 --problem x --group y", "give one of them"),
        ("--to 4.3 --from 3.9 --bootstrap-server localhost:1", "--group ID"),
        ("--to 4.3 --from 3.9 --session-timeout-ms 1000", "6000"),
        ("--to 4.3", "--from RELEASE, --problem FILE or --group ID"),
        ("--from 2.2 --to 4.3 --uses static", "static members"),
    ],
)
def test_wrong_groups_are_refused(words, sentence):
    done = CliRunner().invoke(main, ["plan", *words.split(), "--seeds", "1"])
    assert done.exit_code == 2
    assert sentence in done.stderr


def test_json_has_ranges_and_waits():
    words = ["plan", "--from", "3.9", "--to", "4.3", "--seeds", "2", "--format", "json"]
    (step,) = json.loads(CliRunner().invoke(main, words).stdout)["steps"]
    found = step["cost"]
    assert found["seeds"] == 2
    assert found["ranges"]["pause_ms"][0] <= found["pause_ms"] <= found["ranges"]["pause_ms"][1]
    assert set(found["waits_ms"]) == {"session_ms", "restore_ms", "rebalance_ms"}


def test_rebalances_after_the_last_bounce_are_simulated_up_to_a_bound(monkeypatch):
    group = SimulatedGroup(members=4, partitions=12, standbys=1, sizes=(50_000_000,) * 12)
    made = plan("2.3.1", "2.6")

    def last(most):
        monkeypatch.setattr(model, "FOLLOWUPS", most)
        return step_costs(made, group, seeds=1)[-1]

    whole, bounded = last(100), last(2)
    assert bounded.usual("followup") < whole.usual("followup")
    assert (whole.is_warming, bounded.is_warming) == (False, True)
    text = "\n".join(costs_lines(made.steps[-1:], (bounded,), group))
    assert "to move partitions; copies still warm up at the end of the simulation)" in text


DEATH = Broken(rule="nobody dies", at_ms=7, sentence="a died")
TWICE = Broken(rule="one active", at_ms=7, sentence="two members run 0_0")


@pytest.mark.parametrize(
    ("broken", "known", "is_cost", "is_bad", "words"),
    [
        (DEATH, (), False, True, "this way kills members: in 2 of 3 simulated bounces, a died"),
        (DEATH, ("KAFKA-1",), False, True, "this way kills members"),
        (TWICE, (), True, True, "2 of 3 simulated bounces broke a rule: one active: two members"),
        (TWICE, ("KAFKA-1",), True, True, "broke a rule (KAFKA-1): one active"),
    ],
)
def test_a_bounce_that_breaks_a_rule_is_not_a_cost(broken, known, is_cost, is_bad, words):
    made = plan("3.9", "4.1")
    bad = replace(run(9_000_000), broken=(broken,), known=known)
    found = StepCost((run(10), bad, bad))
    assert (found.is_cost, found.is_bad) == (is_cost, is_bad)
    shown = "\n".join(costs_lines(made.steps, (found,), SimulatedGroup()))
    assert words in shown
    assert "9,000" not in shown
    assert ("rebalances (" in shown) is is_cost
    assert cost_document(found)["kills"] is (broken is DEATH)


def test_the_costs_are_of_the_bounces_that_are_printed():
    """Static members wait for their sessions, so that none is given an answer it cannot read."""
    made, (found,) = cost("3.9", "3.1", Use.STATIC, seeds=4, is_static=True)
    assert made.steps[0].expires
    assert found.broken == ()
    assert found.share("session_ms") > 0.5
    (longest, *_) = causes_of(made.steps[0], found, SimulatedGroup(is_static=True))
    assert longest.what == "each member starts after its session of 45 s has expired, as demanded"
    pinned = plan("3.4", "3.9", Use.KTABLE)
    assert [leg.stages for leg in legs_of(pinned)] == [(("3.9.2", "3.4"), ("3.9.2", None))]


@pytest.mark.parametrize("uses", [(), (Use.STATIC,)])
def test_the_way_back_costs_what_the_plan_of_that_direction_does(uses):
    group = {"growth": 0, "members": 4, "is_static": bool(uses)}
    up, costs = cost("2.3.1", "3.9", *uses, **group)
    down, reverse = cost("3.9", "2.3.1", *uses, **group)
    assert [step.old for step in down.steps] == ["3.9.2", "3.9.2"]
    assert [found.back.all_runs for found in reversed(costs)] == [row.all_runs for row in reverse]
    longest = reverse[1].usual("duration_ms")
    assert cost_document(costs[0])["back"]["duration_ms"] == longest >= 4 * 45_000
    assert plan_document(up, costs, SimulatedGroup())["back_cost"]["duration_ms"] > longest
    free, (found,) = cost("3.8", "3.9")
    assert found.back is None
    assert plan_document(free, (found,), SimulatedGroup())["back_cost"] is None


def test_the_way_back_restores_what_changelogs_have_grown_by():
    assert min(run.restored for run in cost("3.9", "4.3", growth=0)[1][0].back.runs) >= 600_000
    grown = cost("3.9", "4.3", growth=1000)[1][0]
    least = 6 * (100_000 + 1000 * grown.usual("duration_ms") // 1000)
    assert min(run.restored for run in grown.back.runs) >= least


def test_an_offline_step_waits_for_sessions_and_starts_and_a_reset_has_no_price():
    made, costs = cost("3.2", "3.9", Use.FK_JOIN, restart_ms=30_000)
    text = "\n".join(costs_lines(made.steps, costs, SimulatedGroup(restart_ms=30_000)))
    assert "the sessions of all members last 45 s after their stop" in text
    assert "each member starts, 30 s after the sessions have ended, and joins" in text
    assert 72_000 < costs[0].usual("longest_pause_ms") < 80_000
    assert "the way back resets the application, whose members then process all of" in text
    assert "heartbeat.interval" not in text
    assert "instance" not in text
    down, back = cost("3.9", "3.2", Use.FK_JOIN)
    text = "\n".join(costs_lines(down.steps, back, SimulatedGroup()))
    assert "not in these figures: after the reset members process all of the input again" in text


def test_a_restore_that_is_longer_than_the_simulation_is_a_pause_of_its_length():
    _, (found,) = cost("4.3.1", "4.2", sizes=(200_000_000,) * 6)
    assert found.usual("longest_pause_ms") >= 4_000_000
    assert found.usual("pause_ms") >= 6 * 4_000_000
    assert found.usual("duration_ms") >= 4_000_000
