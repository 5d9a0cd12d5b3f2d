"""The chart has every bar of the story, in its lane, from start to end."""

import json

import pytest

from system_tests.report.figure import chart_html
from system_tests.report.sim import story_of_simulation
from system_tests.sim import BounceOptions, run_bounce


def played(**options):
    return story_of_simulation(
        run_bounce(BounceOptions(seed=4, old="3.1", new="native", **options))
    )


def chart(story):
    """Traces and layout that are passed to plotly."""
    called = chart_html(story).rpartition("Plotly.newPlot(")[2]
    decoder = json.JSONDecoder()
    start = called.index("[{")
    data, length = decoder.raw_decode(called[start:])
    rest = called[start + length :]
    return data, decoder.raw_decode(rest[rest.index("{") :])[0]


def drawn(data, layout, group):
    axis = {"versions": "yaxis", "owners": "yaxis2"}[group]
    names = layout[axis]["ticktext"]
    return sorted(
        (names[y], base, base + x)
        for trace in data
        if trace["type"] == "bar" and trace["legendgroup"] == group
        for y, base, x in zip(trace["y"], trace["base"], trace["x"], strict=True)
    )


# More owners than there are colours, too.
@pytest.mark.parametrize("options", [{}, {"members": 14, "partitions": 28}])
def test_bars_lie_in_the_lane_of_their_name_from_beginning_to_end(options):
    story = played(**options)
    data, layout = chart(story)
    for group, bars in (("versions", story.versions), ("owners", story.owners)):
        expected = sorted((bar.lane, bar.from_ms / 1000, bar.until_ms / 1000) for bar in bars)
        found = drawn(data, layout, group)
        assert [pair[0] for pair in found] == [pair[0] for pair in expected]
        for own, wanted in zip(found, expected, strict=True):
            assert own[1:] == (pytest.approx(wanted[1]), pytest.approx(wanted[2]))


def test_every_owner_has_a_colour():
    story = played()
    data, _ = chart(story)
    colour_of = {
        trace["name"]: trace["marker"]["color"]
        for trace in data
        if trace["type"] == "bar" and trace["legendgroup"] == "owners"
    }
    assert list(colour_of) == list(story.lanes)
    assert len(set(colour_of.values())) == 3
