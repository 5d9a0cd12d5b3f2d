"""Behaviour of each release besides its versions."""

import pytest

from probing import RELEASES, ReleaseError
from system_tests.sim.world.behaviour import behaviour_of


@pytest.mark.parametrize(
    ("release", "name", "expected"),
    [
        ("2.2.2", "may_be_static", False),
        ("2.3.0", "may_be_static", True),
        ("native", "may_be_static", True),
        ("2.3.1", "cooperative", False),
        ("2.4.0", "cooperative", True),
        ("native", "cooperative", False),
        ("2.5.1", "names_given_up_tasks", True),
        ("2.6.0", "names_given_up_tasks", False),
        ("native", "names_given_up_tasks", True),
        ("2.5.1", "forces_by_leaving", True),
        ("2.6.0", "forces_by_leaving", False),
        ("3.3.1", "fires_during_rebalance", True),
        ("3.3.2", "fires_during_rebalance", False),
        ("3.9.1", "leaves_on_close", False),
        ("native", "leaves_on_close", True),
        ("2.8.2", "session_timeout_ms", 10_000),
        ("3.0.0", "session_timeout_ms", 45_000),
        ("3.1.0", "may_skip_assignment", False),
        ("3.2.0", "may_skip_assignment", True),
    ],
)
def test_a_release_has_the_documented_behaviour(release, name, expected):
    assert getattr(behaviour_of(release, None), name) == expected


def test_upgrade_from_holds_a_cooperative_release_at_the_eager_protocol():
    assert not behaviour_of("3.9.1", "2.3").cooperative
    assert behaviour_of("3.9.1", "2.4").cooperative


def test_a_refused_setting_is_refused_here_too():
    with pytest.raises(ReleaseError, match="cannot be used"):
        behaviour_of("4.1.0", "2.3")


def test_every_release_has_a_row():
    assert all(behaviour_of(release.name, None).versions for release in RELEASES)
