"""Bounces that change the topology: what is drawn, what is printed, and that no rule is broken."""

import pytest

from system_tests.sim import BounceOptions, Started, outcome_document, outcome_lines, run_bounce
from system_tests.topology_changes import ChangeKind
from tests.nightly import sample

FAULTS = frozenset({"crash", "leader", "disk", "duplicate"})


def broken(**options):
    outcome = run_bounce(BounceOptions(draw_topology=True, **options))
    return [(outcome.replay, rule.rule, rule.sentence) for rule in outcome.broken]


@pytest.mark.slow
def test_every_kind_of_change_is_drawn_and_breaks_no_rule():
    outcomes = [run_bounce(BounceOptions(seed=n, draw_topology=True)) for n in range(40)]
    assert [each.replay for each in outcomes if not each.ok] == []
    changes = {(each.options.topology, each.options.carries_both) for each in outcomes}
    assert changes == {(kind, both) for kind in ChangeKind for both in (False, True)}
    assert {each.options.static for each in outcomes} == {False, True}
    assert {each.options.dimensions.cooperative for each in outcomes} == {False, True}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("faults", [frozenset(), FAULTS], ids=["no faults", "faults"])
@pytest.mark.parametrize("threads", [1, 2])
def test_changes_break_no_rule(faults, threads):
    for seed in sample(
        range(400), every=20, reason="all 400 seeds take 12 to 21 s a kind of group"
    ):
        assert broken(seed=seed, faults=faults, threads=threads) == []


@pytest.mark.slow
def test_crashes_break_no_rule():
    for seed in sample(range(300), every=5, reason="12 s for all 300 seeds"):
        assert broken(seed=seed, faults=FAULTS) == []


def test_a_change_is_the_same_each_time_and_says_what_it_is():
    options = BounceOptions(seed=7, topology=ChangeKind.RENAME, faults=frozenset({"crash"}))
    first, second = run_bounce(options), run_bounce(options)
    assert outcome_lines(first) == outcome_lines(second)
    started = [event.carries for event in first.trace if isinstance(event, Started)]
    assert started[:3] == [(1,)] * 3
    assert set(started[3:]) == {(1, 2)}
    assert "topology: rename, programs that carry both; members eager and dynamic" in "\n".join(
        outcome_lines(first)
    )
    assert outcome_document(first)["topology"] == {
        "kind": "rename",
        "carries_both": True,
        "cooperative": False,
        "static": False,
    }
    assert first.replay.endswith("--faults crash --topology rename")


def test_other_bounces_know_no_topology():
    outcome = run_bounce(BounceOptions(seed=7, old="3.1", new="native"))
    assert outcome.options.change is None
    assert "topology" not in outcome_document(outcome)
    assert not any("topology" in line for line in outcome_lines(outcome))
