"""The rebalance that is forced at the end, and pauses."""

from dataclasses import replace

import pytest

from probing.leader import next_version
from system_tests.sim import BounceOptions, run_bounce
from system_tests.sim.events import Happened, Settled, Started
from system_tests.sim.world import behaviour_of


def bounce(old, new, seed=0, **options):
    return run_bounce(BounceOptions(seed=seed, old=old, new=new, **options))


@pytest.mark.parametrize("options", [{}, {"static": True}, {"offline": True}])
def test_a_group_that_stays_below_the_version_of_all_its_members_is_found(monkeypatch, options):
    rows = next_version.NEXT_VERSION_RULES
    stuck = replace(rows[-1], says=lambda _: 11)
    assert stuck.name == "natives only"
    assert bounce("3.9.1", "native", **options).ok
    monkeypatch.setattr(next_version, "NEXT_VERSION_RULES", (*rows[:-1], stuck))
    broken = bounce("3.9.1", "native", **options).broken
    assert [violation.rule for violation in broken] == ["final versions"]
    assert broken[0].sentence == (
        "after one more rebalance all members write v101, and the members write a v11, b v11, c v11"
    )


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize(
    ("old", "new", "version"),
    [("2.3.1", "2.5.1", 6), ("2.8.2", "3.9.1", 11), ("native", "next", 102)],
)
def test_the_last_rebalance_is_forced_and_ends_at_the_version_that_all_members_know(
    old, new, version, static
):
    outcome = bounce(old, new, static=static)
    assert outcome.ok
    assert outcome.afterwards
    resting = [event for event in outcome.trace if isinstance(event, Settled)]
    (settled,) = [event for event in outcome.afterwards if isinstance(event, Settled)]
    assert {used for _, used in settled.used_versions} == {version}
    assert settled.generation > resting[-1].generation


def test_a_pause_lasts_longer_than_the_session_of_the_member_that_is_paused():
    paused = set()
    for seed in range(12):
        outcome = bounce("2.8.2", "3.9.1", seed, faults=frozenset({"pause"}), force=True)
        release = {}
        for event in outcome.trace:
            if isinstance(event, Started):
                release[event.thread] = event.release
            if isinstance(event, Happened) and event.text.startswith("pauses for "):
                session_ms = behaviour_of(release[event.thread], None).session_timeout_ms
                assert event.text == f"pauses for {session_ms * 13 // 10} ms"
                paused.add(session_ms)
    assert paused == {10_000, 45_000}
