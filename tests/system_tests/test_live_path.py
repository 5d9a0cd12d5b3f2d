import pytest

from system_tests.live.path import PathError, Switches, plan_path


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
