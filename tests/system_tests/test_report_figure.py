"""The chart: which colours there are, and what the legend can still tell apart."""

import json
import re
from dataclasses import replace

import pytest

from system_tests.report_figure import _ordered, _shades, chart_html
from system_tests.report_sim import story_of_simulation
from system_tests.sim import BounceOptions, run_bounce


def played(**options):
    return story_of_simulation(
        run_bounce(BounceOptions(seed=4, old="3.1", new="native", **options))
    )


def chart(story):
    """What plotly is handed: its traces and its layout."""
    called = chart_html(story).rpartition("Plotly.newPlot(")[2]
    decoder = json.JSONDecoder()
    start = called.index("[{")
    data, length = decoder.raw_decode(called[start:])
    rest = called[start + length :]
    return data, decoder.raw_decode(rest[rest.index("{") :])[0]


def owners(data):
    return [one for one in data if one["type"] == "bar" and one["legendgroup"] == "owners"]


def test_every_owner_has_a_colour_and_a_line_in_the_legend():
    story = played()
    data, _ = chart(story)
    assert [one["name"] for one in owners(data)] == list(story.lanes)
    assert all(one["showlegend"] for one in owners(data))
    assert len({one["marker"]["color"] for one in owners(data)}) == 3


def test_more_owners_than_colours_share_them_and_the_legend_leaves_them_out():
    story = played(members=14, partitions=28)
    data, _ = chart(story)
    drawn = owners(data)
    assert len(drawn) == 12
    assert not any(one["showlegend"] for one in drawn)
    assert sum(len(one["x"]) for one in drawn) == len(story.owners)


def test_bars_lie_in_the_lane_of_their_name_from_beginning_to_end():
    story = played()
    data, layout = chart(story)
    names = layout["yaxis"]["ticktext"]
    drawn = [
        (names[y], base, base + x)
        for one in data
        if one["type"] == "bar" and one["legendgroup"] == "versions"
        for y, base, x in zip(one["y"], one["base"], one["x"], strict=True)
    ]
    expected = [(bar.lane, bar.from_ms / 1000, bar.until_ms / 1000) for bar in story.versions]
    assert len(drawn) == len(expected)
    for mine, wanted in zip(sorted(drawn), sorted(expected), strict=True):
        assert mine == (wanted[0], pytest.approx(wanted[1]), pytest.approx(wanted[2]))


def test_a_lane_of_the_group_is_there_only_where_something_concerns_the_group():
    story = played()
    _, layout = chart(story)
    assert layout["yaxis"]["ticktext"] == ["rebalances", "group", *story.lanes]
    _, bare = chart(replace(story, marks=()))
    assert bare["yaxis"]["ticktext"] == ["rebalances", *story.lanes]
    assert re.fullmatch(r"lines-\d", layout["yaxis2"]["ticktext"][0])


def test_colours_go_from_the_oldest_version_to_the_newest():
    assert _ordered(["v101", "v4", "v11", "v4"]) == ["v4", "v11", "v101"]
    assert [len(set(_shades(count))) for count in range(7)] == list(range(7))
    assert _shades(2) == [_shades(6)[0], _shades(6)[-1]]
    assert len(_shades(9)) == 9
