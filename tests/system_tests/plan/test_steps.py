import json

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli.main import main
from system_tests.live import LiveOptions
from system_tests.plan import SimulatedGroup, decision_of
from system_tests.plan.changes import When
from system_tests.plan.rehearsal import rehearsal_of
from system_tests.plan.steps import Use, is_fatal, make_plan
from system_tests.plan.way import assumed_running, way_between
from system_tests.sim import not_modelled


def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def rehearsed(*step):
    return str(rehearsal_of(*step))


def run(arguments):
    return CliRunner().invoke(main, ["plan", *arguments.split(), "--seeds", "2"])


def steps(made):
    return [(step.release, step.upgrade_from) for step in made.steps]


def test_from_2_3_to_4_1_takes_three_bounces_through_a_bridge():
    made = plan("2.3.1", "4.1")
    assert steps(made) == [("3.9.2", "2.3"), ("3.9.2", None), ("4.1.2", None)]
    assert made.stops == ("2.3.1", "3.9.2", "4.1.2")
    assert any("refuses to start" in note for note in made.warnings)


def test_from_2_0_to_2_2_1_would_take_two_bounces_without_a_setting():
    ends = assumed_running(find_release("2.0.1"), find_release("2.2.1"), frozenset())
    assert steps(way_between(*ends, frozenset())) == [("2.2.2", None), ("2.2.1", None)]
    assert steps(plan("2.0.1", "2.2.1")) == [("2.2.1", None)]  # members of 2.0.1 can die


def test_from_3_4_to_3_5_1_is_one_bounce_without_upgrade_from():
    made = plan("3.4.0", "3.5.1")
    assert steps(made) == [("3.5.1", None)]
    assert any("do not set upgrade.from=3.4 on 3.5.1" in note for note in made.warnings)
    assert any(bug.startswith("upgrade.from=3.4 in 3.5.1") for bug in made.bugs)


def test_ktables_are_pinned_by_the_series_they_come_from():
    assert steps(plan("3.4.0", "3.5.2", Use.KTABLE)) == [("3.5.2", "3.4"), ("3.5.2", None)]


def test_from_3_9_to_native_is_one_bounce_that_can_be_rolled_back():
    made = plan("3.9", "native")
    assert steps(made) == [("native", None)]
    assert made.no_return is None
    assert steps(made.steps[0].back) == [("3.9.2", None)]
    assert [window[:2] for window in made.windows] == ["a.", "b."]
    assert made.windows[0].startswith("a. no risk")


def test_risk_a_exists_beside_releases_below_version_11():
    assert plan("3.1", "native").windows[0].startswith("a. risk if")
    assert plan("1.1.1", "native").windows[0].startswith("a. risk: 1.1.1 reads")
    assert plan("3.8", "3.9").windows == ()


def test_the_point_of_no_return_is_the_first_step_after_which_state_is_lost():
    assert plan("3.4.0", "3.9", Use.KTABLE).no_return is None  # two bounces and a wait lead back
    assert plan("3.4.0", "3.9").no_return is None
    assert (plan("3.9", "4.0").no_return, plan("3.9", "4.0").restores_from) == (None, 1)
    (again,) = plan("4.2", "4.3").steps[0].back.steps
    assert any("KIP-1035" in demand for demand in again.demands)


def test_issues_of_other_uses_are_left_out():
    def has(issue, *uses):
        return any(bug.startswith(issue) for bug in plan("2.3.1", "2.4", *uses).bugs)

    assert has("KAFKA-9525", Use.STATIC)
    assert not has("KAFKA-9525", Use.KTABLE)


def test_queries_and_static_members_get_their_warnings():
    assert any("standby" in note for note in plan("2.3.1", "3.9", Use.IQ).warnings)


def test_nothing_to_do_has_no_steps():
    assert steps(plan("3.9.2", "3.9.2")) == []
    assert "nothing to do" in run("--from 3.9 --to 3.9").stdout


def test_the_command_prints_costs_and_the_rollback():
    done = run("--from 2.3.1 --to 4.1 --format json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert len(document["steps"]) == 3
    for step in document["steps"]:
        assert step["cost"]["rebalances"] >= 1
        assert step["cost"]["pause_ms"] > 0
        assert step["back"]["steps"][-1]["release"] == step["old"]


def test_uses_that_are_not_given_are_named_as_assumed():
    named = "assumed: the application does not use fk-join (foreign-key joins), ktable"
    text = run("--from 3.9 --to 4.3").stdout
    assert named in text
    assert "simulated with an assumed group (--problem or --group gives yours): 3 members" in text
    assert "from step 1 on, going back deletes and restores state" in text
    partly = run("--from 3.9 --to 4.3 --uses eos,fk-join").stdout
    assert "does not use ktable (aggregations of KTables), suppress (suppressed results)" in partly
    every = "--from 3.9 --to 4.3 --uses eos-v2,fk-join,ktable,suppress,outer-join,iq,static"
    assert "assumed:" not in run(every).stdout


def test_conditions_of_the_switch_are_due_while_members_run_the_release_that_switches():
    made = make_plan(find_release("2.3.1"), find_release("4.3"), frozenset({Use.EOS}))
    due = {c.what.partition(":")[0]: c.release for c in made.changes if c.when is When.BEFORE}
    assert due["the switch to version 2 changes transactional ids"] == "3.9.2"
    assert due["exactly_once_v2 needs brokers of 2.5 or later"] == "3.9.2"


def test_the_way_back_deletes_state_in_the_order_in_which_releases_are_reached():
    steps = make_plan(find_release("2.3.1"), find_release("4.3")).steps
    backs = [again for step in reversed(steps) for again in step.back.steps]
    assert [(again.release, "".join(again.demands).count("since ")) for again in backs] == [
        ("3.9.2", 2),
        ("3.9.2", 0),
        ("2.3.1", 1),
    ]
    assert sum(step.back.deletions for step in steps) == 2


def test_a_bounce_that_only_holds_a_format_has_a_cost():
    done = run("--from 3.4.0 --to 3.9 --uses ktable")
    assert done.exit_code == 0, done.output
    costs = done.stdout.partition("\nCosts, simulated with ")[2]
    assert [number for number in (1, 2, 3) if f"\n  step {number}: " in costs] == [1, 2]


def test_the_command_ends_with_1_where_all_members_have_to_stop():
    done = run("--from 3.2 --to 3.9 --uses fk-join")
    assert done.exit_code == 1
    assert "no rolling bounces, all members have to be stopped" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--from 9.9 --to 3.9", "unknown"),
        ("--from 3.8 --to 3.9 --uses joins", "unknown value 'joins' for --uses; choose from"),
    ],
)
def test_wrong_usage_ends_with_2(arguments, text):
    done = run(arguments)
    assert done.exit_code == 2
    assert text in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "is_warned"),
    [
        ("2.3.1", "3.9", True),
        ("2.1.1", "2.4", True),
        ("2.2.2", "2.3.1", False),
        ("2.8", "3.9", False),
    ],
)
def test_previous_tasks_that_leaders_before_2_4_return_are_a_warning(old, new, is_warned):
    warnings = plan(old, new).warnings
    assert any("returns each member its previous tasks" in w for w in warnings) is is_warned


@pytest.mark.parametrize(
    ("old", "new", "detour"),
    [
        ("2.0.1", "2.3.1", None),
        ("2.0.1", "3.9.2", None),
        ("2.1.1", "2.4.1", "2.3.1"),
        ("2.2.1", "3.9.2", "2.3.1"),
        ("2.3.0", "native", "2.3.1"),
    ],
)
def test_leaders_whose_partitions_do_not_match_the_tasks_are_a_warning(old, new, detour):
    made = plan(old, new)
    notes = (*made.warnings, *made.obstacles)
    (note,) = (note for note in notes if "NullPointerException" in note)
    assert made.rolling is (detour is not None)
    assert f"leader of {old}" in note
    assert (f"bounce to {detour} first" in note) is (detour is not None)


def test_members_that_crash_are_in_the_headline_and_first_among_the_warnings():
    done = run("--from 2.3.0 --to 2.4")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].endswith("2 rolling bounces")
    assert lines[1] == "  verdict: no go: members can die"
    assert "NullPointerException" in lines[lines.index("Before you start:") + 1]
    assert run("--from 2.3.1 --to 3.9").stdout.splitlines()[0].endswith("bounces")


@pytest.mark.parametrize("uses", [(), (Use.STATIC,)])
def test_members_can_die_in_both_directions_of_a_mixed_group(uses):
    up, down = plan("2.3.0", "3.9", *uses), plan("3.9", "2.3.0", *uses)
    for made, joins in ((up, "joins"), (down, "joins again after a crash or restart")):
        assert is_fatal(made)
        assert f"!! while a member of 3.9.2 {joins}, a leader of 2.3.0" in made.warnings[0]
        assert "bounce to 2.3.1 first" in made.warnings[0]
        assert not_modelled(find_release(made.old), find_release(made.new))
    assert "3.9.2 joins again" in plan("4.3", "2.1.1").warnings[0]
    assert not is_fatal(plan("3.9", "2.3.1"))


@pytest.mark.parametrize(("old", "new"), [("2.1.1", "2.3.1"), ("2.3.1", "3.9.2"), ("2.2.2", "2.4")])
def test_other_pairs_have_no_warning_about_a_null_pointer(old, new):
    assert not any("NullPointerException" in note for note in plan(old, new).warnings)


def test_static_members_that_cannot_request_a_rebalance_are_a_warning():
    made = plan("2.3.1", "2.5.1", Use.STATIC)
    (note,) = (note for note in made.warnings if "KAFKA-9525" in note)
    assert "stays at version 4" in note
    assert "10000 ms" in note
    assert "take 2.6.0 or later instead" in note
    assert "keep restarts" not in note  # `back` demands the opposite
    assert note.startswith("!! ")
    decision = decision_of(made, SimulatedGroup(is_static=True))
    assert decision == ("no go: the group does not reach the new version", "stop", (note,))
    assert any(bug.startswith("KAFKA-9525 in 2.3.1, 2.5.1") for bug in made.bugs)
    assert not any("KAFKA-9525" in note for note in plan("2.3.1", "2.5.1").bugs)
    assert not any("KAFKA-9525" in note for note in plan("2.3.1", "2.6.3", Use.STATIC).warnings)


def test_the_rehearsal_has_the_session_timeout_of_the_group():
    made = plan("3.9", "4.3")
    own, long = (
        rehearsed(made, made.steps[0], SimulatedGroup(session_timeout_ms=ms))
        for ms in (20_000, 900_000)
    )
    assert "--session-timeout-ms 20000 --heartbeat-ms 3000" in own
    assert "--session-timeout-ms 300000 " in long
    assert "its session timeout is 300000 ms, the most that it takes" in long
    assert "the most that it takes" not in own
    words = ["plan", "--from", "3.9", "--to", "4.3", "--no-costs", "--session-timeout-ms", "20000"]
    shown = CliRunner().invoke(main, words)
    assert "--session-timeout-ms 20000 --heartbeat-ms 3000" in shown.stdout


def test_the_rehearsal_says_what_sizes_it_has():
    default = LiveOptions()
    words = f"it has {default.members} members and {default.partitions} partitions; give --members"
    for made in (plan("3.9", "4.3"), plan("2.3.1", "2.4")):
        assert f"{words}, 26 at most, and --partitions" in rehearsed(made, made.steps[0])


def test_a_switch_of_the_guarantee_is_not_rehearsed_with_the_step_before():
    up, down = plan("2.3.1", "4.3", Use.EOS), plan("3.9", "2.3.1", Use.EOS)
    switch, first = rehearsed(up, up.steps[1]), rehearsed(down, down.steps[0])
    why = "; processing.guarantee cannot be rehearsed: exactly-once: members of a rehearsal"
    assert switch.startswith(f"together with the step before{why}")
    assert first.startswith("rolling-bounce live --from 3.9.2 --to 2.3.1")
    assert why in first
    assert why not in rehearsed(up, up.steps[0])


def test_the_rehearsal_keeps_stopped_members_in_the_group_where_it_can():
    tries = {
        ends: rehearsed(made, made.steps[0])
        for ends in (("2.3.1", "3.9"), ("2.2.1", "2.4"), ("2.3.1", "2.4"))
        for made in [make_plan(*map(find_release, ends))]
    }
    assert "--static --session-timeout-ms 10000 --heartbeat-ms 3000" in tries["2.3.1", "3.9"]
    assert "compare its pauses with plan --uses static" in tries["2.3.1", "3.9"]
    for ends in (("2.2.1", "2.4"), ("2.3.1", "2.4")):  # no static members, and KAFKA-9525
        assert "--static" not in tries[ends]
        assert "its members leave the group when they stop" in tries[ends]
