"""Options of a bounce that do not fit together are refused, and none is drawn."""

import pytest

from probing import ReleaseError
from system_tests.engine import OptionError, Scheduler
from system_tests.sim import BounceOptions, plan_bounce, run_bounce
from system_tests.sim.draws import draw
from system_tests.sim.world.behaviour import behaviour_of


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"old": "2.0.1", "new": "2.3.0"}, OptionError, "KAFKA-8649"),
        ({"old": "9.9", "new": "2.3.0"}, ReleaseError, "unknown"),
        ({"faults": frozenset({"flood"})}, OptionError, "unknown fault 'flood'"),
        ({"old": "2.0.1", "new": "2.0.1", "threads": 2}, None, ""),
    ],
)
def test_options_that_do_not_fit_are_refused(options, error, text):
    if error is None:
        assert run_bounce(BounceOptions(**options)).plan.new == "2.0.1"
        return
    with pytest.raises(error, match=text):
        run_bounce(BounceOptions(**options))


@pytest.mark.parametrize(("old", "new"), [("2.2.2", "2.4.1"), ("2.3.1", "2.0.1")])
def test_no_member_is_static_before_static_members_exist(old, new):
    with pytest.raises(OptionError, match=r"exists since 2\.3\.0 \(KIP-345\)"):
        plan_bounce(BounceOptions(old=old, new=new, static=True, force=True))
    for seed in range(20):
        drawn = draw(BounceOptions(static=True), Scheduler(seed))
        assert all(behaviour_of(name, None).may_be_static for name in (drawn.old, drawn.new))
