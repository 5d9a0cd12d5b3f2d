import pytest

from system_tests.live.options import Switches
from system_tests.live.plan import PathError, plan_path


def stages(old, new, **switches):
    plan = plan_path(old, new, Switches(**switches))
    return [(stage.release, stage.upgrade_from) for stage in plan.stages]


def test_from_2_0_on_one_bounce_without_a_pin_is_planned():
    plan = plan_path("3.1", "native", Switches())
    assert [stage.upgrade_from for stage in plan.stages] == [None]
    assert plan.before.release == "3.1.2"
    assert plan.promised_versions == (101,)
    assert plan.advice is None


def test_below_2_0_a_pinned_bounce_comes_first():
    assert stages("0.10.2", "2.0") == [("2.0.1", "0.10.2"), ("2.0.1", None)]


@pytest.mark.parametrize("switch", ["no_pin", "offline"])
def test_one_bounce_without_a_pin_on_request(switch):
    assert stages("0.10.2", "2.0", **{switch: True}) == [("2.0.1", None)]


def test_what_goes_wrong_without_the_pin_comes_with_the_right_value():
    advice = plan_path("0.10.2", "2.0", Switches(no_pin=True)).advice
    assert "upgrade.from=0.10.2" in advice


@pytest.mark.parametrize(("old", "new"), [("2.0.1", "2.3.0"), ("2.0", "4.0"), ("0.10.0", "0.10.1")])
def test_impossible_paths_are_refused_unless_forced_or_taken_offline(old, new):
    with pytest.raises(PathError, match="stop all members"):
        plan_path(old, new, Switches())
    assert len(stages(old, new, force=True)) == len(stages(old, new, offline=True)) == 1


def test_a_rolling_restart_is_one_bounce():
    assert stages("native", "native") == [("native", None)]


def moved(old, new, **switches):
    plan = plan_path(old, new, Switches(rebalance_protocol="cooperative", **switches))
    return plan.before.rebalance_protocol, [stage.rebalance_protocol for stage in plan.stages]


@pytest.mark.parametrize(
    ("old", "new", "before", "bounces"),
    [
        ("2.8", "native", "cooperative", ["cooperative"]),
        ("native", "next", "eager", ["cooperative"]),
        ("2.3", "2.8", "eager", ["eager", "cooperative"]),
        # Native has no pin for it; it waits until no leader is left that does not wait for owners.
        ("2.3", "native", "eager", ["eager", "cooperative"]),
        ("0.10.2", "native", "eager", ["eager", "eager", "cooperative"]),
        ("native", "2.3", "eager", ["eager"]),
    ],
)
def test_cooperative_members_come_in_a_bounce_in_which_every_leader_waits_for_owners(
    old, new, before, bounces
):
    assert moved(old, new) == (before, bounces)


def test_the_reason_for_a_separate_bounce_of_cooperative_members_comes_first():
    plan = plan_path("2.3", "native", Switches(rebalance_protocol="cooperative"))
    assert plan.notes[0].startswith("eager members first, cooperative ones in a second bounce")


def test_one_bounce_to_cooperative_members_on_request():
    assert moved("2.3", "native", no_pin=True) == ("eager", ["cooperative"])


def test_members_are_eager_by_default():
    plan = plan_path("2.8", "native", Switches())
    assert {stage.rebalance_protocol for stage in (plan.before, *plan.stages)} == {"eager"}
    assert "cooperative" not in plan.stages[0].describe()


def test_static_members_may_stay_at_the_version_until_there_is_a_rebalance():
    assert plan_path("native", "next", Switches(static=True)).promised_versions == (102, 101)
    assert plan_path("native", "native", Switches(static=True)).promised_versions == (101,)


def test_a_foreign_member_joins_under_a_native_leader_or_at_once_where_none_ever_comes():
    to_native = plan_path("3.1", "native", Switches())
    assert [to_native.admits_foreign(leader) for leader in (None, "3.1.2", "native")] == [
        False,
        False,
        True,
    ]
    to_jvm = plan_path("3.1", "3.9", Switches(force=True))
    assert [to_jvm.admits_foreign(leader) for leader in (None, "3.1.2", "native")] == [
        False,
        True,
        True,
    ]
