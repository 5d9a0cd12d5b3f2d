"""The chart has every bar of the story, in its lane, from start to end."""

import re

import pytest

from system_tests.report.figure import chart_html
from system_tests.report.sim import story_of_simulation
from system_tests.sim import BounceOptions, run_bounce


def played(**options):
    return story_of_simulation(
        run_bounce(BounceOptions(seed=4, old="3.1", new="native", **options))
    )


BAR = re.compile(
    r'<svg class="bar" data-lane="([^"]*)" data-t="([^"]*)" data-u="([^"]*)" x="([^"]*)"'
    r' y="([^"]*)" width="([^"]*)".*?fill="([^"]*)"',
    re.DOTALL,
)
NAME = re.compile(r'<text class="name" x="[^"]*" y="([^"]*)">([^<]*)<')


# More owners than there are colours, too.
@pytest.mark.parametrize("options", [{}, {"members": 14, "partitions": 28}])
def test_bars_lie_in_the_lane_of_their_name_from_beginning_to_end(options):
    story = played(**options)
    html = chart_html(story)
    bars = BAR.findall(html)
    expected = [*story.versions, *story.owners]
    assert [bar[0] for bar in bars] == [bar.lane for bar in expected]
    heights = [(float(y), name) for y, name in NAME.findall(html)]
    scale = (1300 - 110 - 20) / story.end_ms
    for (lane, begin, end, x, y, width, _), bar in zip(bars, expected, strict=True):
        assert (float(begin), float(end)) == (
            pytest.approx(bar.from_ms, rel=1e-4),
            pytest.approx(bar.until_ms, rel=1e-4),
        )
        assert float(x) == pytest.approx(110 + bar.from_ms * scale, abs=0.1)
        wanted = max((bar.until_ms - bar.from_ms) * scale, 0.5)
        assert float(width) == pytest.approx(wanted, abs=0.1)
        assert min(heights, key=lambda row: abs(row[0] - float(y) - 14))[1] == lane


def test_every_owner_has_a_colour():
    story = played()
    html = chart_html(story)
    owners = {bar.key for bar in story.owners}
    colours = {bar[6] for bar in BAR.findall(html)[len(story.versions) :]}
    assert len(colours) == len(owners) == 3
    for name in story.lanes:
        assert f"</i> {name}</span>" in html


def test_a_report_is_far_below_a_megabyte():
    assert len(chart_html(played(members=14, partitions=28)).encode()) < 1_000_000
