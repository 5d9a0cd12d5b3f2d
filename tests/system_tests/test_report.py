"""Bars that begin and end while a trace is read, and words for what happened."""

import pytest

from system_tests.report import (
    MarkKind,
    OpenBars,
    RebalanceCause,
    causes_of,
    rebalance_of,
    rejoin_kind,
)


def spans(bars):
    return [(bar.lane, bar.key, bar.from_ms, bar.until_ms) for bar in bars.finished()]


def test_a_bar_that_has_begun_goes_on_until_it_is_ended():
    bars = OpenBars()
    bars.begin("p", "a", 1, text="a", hover="first")
    bars.begin("p", "a", 5, text="a", hover="second")
    assert bars.finished() == ()
    bars.end("p", "a", 9)
    bars.end("p", "a", 10)
    assert spans(bars) == [("p", "a", 1, 9)]
    assert bars.finished()[0].hover == "first"


def test_two_keys_may_share_a_lane_and_a_switch_lets_only_one_stay():
    bars = OpenBars()
    bars.begin("p", "a", 1, text="", hover="")
    bars.begin("p", "b", 2, text="", hover="")
    bars.begin("q", "a", 2, text="", hover="")
    bars.switch("p", "b", 4, text="", hover="")
    assert spans(bars) == [("p", "a", 1, 4)]
    bars.end_where(6, key="a")
    bars.end_where(7, lane="p")
    assert spans(bars) == [("p", "a", 1, 4), ("p", "b", 2, 7), ("q", "a", 2, 6)]


def test_what_lasted_no_time_is_no_bar():
    bars = OpenBars()
    bars.begin("p", "a", 3, text="", hover="")
    bars.end("p", "a", 3)
    assert bars.finished() == ()


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (4, 11, MarkKind.UPGRADES),
        (11, 4, MarkKind.DOWNGRADES),
        (11, 101, MarkKind.UPGRADES),
        (11, 11, MarkKind.REJOINS),
    ],
)
def test_a_rejoin_is_called_by_what_it_does_to_the_version(before, after, kind):
    assert rejoin_kind(before, after) is kind


def test_a_generation_that_nobody_counted_is_at_the_edge():
    causes = causes_of(membership=[2], version=[3], followup=[4], repeated=[5])
    found = [rebalance_of(number, 1.0, 3, causes).cause for number in range(1, 6)]
    assert found == [
        RebalanceCause.EDGE,
        RebalanceCause.MEMBERSHIP,
        RebalanceCause.VERSION,
        RebalanceCause.FOLLOWUP,
        RebalanceCause.REPEATED,
    ]
    assert rebalance_of(3, 1.0, 3, causes).hover == "generation 3, 3 members: for the version"
