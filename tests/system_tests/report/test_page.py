"""The page: one file that a browser shows without any request."""

import json
import re
from dataclasses import replace

import pytest

from system_tests.report.page import ReportError, report_page, write_report
from system_tests.report.sim import story_of_simulation
from system_tests.report.story import Bar, Mark, MarkKind, Rebalance, RebalanceCause, Story
from system_tests.sim import BounceOptions, run_bounce
from tests.system_tests.report.browser import drawn

# Appended to the page: reports its requests, its size, and what is drawn before and after a zoom.
PROBE = """<script>
addEventListener("load", () => setTimeout(() => {
  const chart = document.getElementById("bounce");
  const drawn = () => [...chart.querySelectorAll(".bar")].filter(
    bar => bar.style.display !== "none").length;
  const box = chart.getBoundingClientRect();
  const send = (target, type, share) => target.dispatchEvent(new MouseEvent(type, {
    bubbles: true, clientX: box.left + box.width * share, clientY: box.top + 50}));
  const bars = drawn();
  send(chart, "mousedown", 0.2);
  send(window, "mouseup", 0.3);
  const zoomed = drawn();
  const ticks = [...chart.querySelectorAll(".axis text")].map(text => text.textContent);
  send(chart, "dblclick", 0.5);
  const found = document.createElement("pre");
  found.id = "found";
  found.textContent = JSON.stringify({
    requests: performance.getEntriesByType("resource").map(entry => entry.name),
    bars, zoomed, ticks, again: drawn(), width: document.documentElement.scrollWidth,
  });
  document.body.append(found);
}, 500));
</script>"""
ASKS = '<script>fetch("https://example.org/").catch(() => 0)</script>'


@pytest.fixture(scope="module")
def story():
    return story_of_simulation(run_bounce(BounceOptions(seed=7, old="2.3.1", new="3.9")))


@pytest.fixture(scope="module")
def page(story):
    return report_page(story)


def test_a_page_names_the_verdict_the_rules_and_the_replay_command(story, page):
    assert f"<title>good: {story.title}</title>" in page
    assert "a member is not upgraded yet" in page
    assert story.replay in page
    assert "<summary>Trace</summary>" in page


def test_the_same_story_gives_the_same_bytes(story, page):
    assert report_page(story) == page


def test_a_page_has_no_address_that_a_browser_would_load(page):
    body = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert re.findall(r"(?:src|href)\s*=\s*[\"'](?!data:)", body) == []
    assert "default-src 'none'" in page


def test_texts_of_members_cannot_become_markup(story):
    mark = Mark(lane="a", at_ms=1, kind=MarkKind.NOTES, hover="<script>alert(1)</script> & so on")
    facts = ("<b>bold</b>",)
    page = report_page(replace(story, facts=facts, marks=(mark,), trace=("</pre><i>",)))
    assert "<b>bold" not in page
    assert "<script>alert" not in page
    assert "</pre><i>" not in page
    assert "&lt;script&gt;alert" in page


MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
BAR = Bar(lane=MARKUP, from_ms=0, until_ms=9, key=MARKUP, text=MARKUP, hover=MARKUP)


def test_no_field_of_a_story_becomes_markup(story):
    hostile = replace(
        story,
        **dict.fromkeys(("title", "replay", "clock"), MARKUP),
        **dict.fromkeys(("facts", "trace", "lanes", "partitions"), (MARKUP,)),
        **dict.fromkeys(("versions", "owners"), (BAR,)),
        marks=(Mark(lane=MARKUP, at_ms=1, kind=MarkKind.LEADS, hover=MARKUP),),
        rebalances=(Rebalance(at_ms=1, generation=1, cause=RebalanceCause.EDGE, hover=MARKUP),),
    )
    page = report_page(hostile)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "&lt;img src=x" in page


def test_a_group_that_never_formed_has_a_page_too(story):
    empty = dict.fromkeys(("versions", "owners", "marks", "rebalances", "partitions"), ())
    assert isinstance(story, Story)
    assert "bad" in report_page(replace(story, ok=False, end_ms=0, **empty))


def test_a_file_that_cannot_be_written_is_an_error(story, tmp_path):
    with pytest.raises(ReportError, match="choose another file"):
        write_report(tmp_path, story)


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_browser_draws_the_page_offline_without_an_error(story, page, tmp_path):
    dom, console = drawn(page.replace("</body>", f"{PROBE}</body>"), tmp_path)
    assert console == []
    for text in ("Members, by the version they write", "Partitions, by their owner", "writes v11"):
        assert text in dom
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1])
    assert found["requests"] == []
    assert found["bars"] == found["again"] == len(story.versions) + len(story.owners)
    assert 0 < found["zoomed"] < found["bars"]
    assert len(found["ticks"]) > 2
    assert found["width"] <= 1400
    assert len(page.encode()) < 1_000_000


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_page_that_asked_for_something_would_be_refused_by_its_own_policy(page, tmp_path):
    _, console = drawn(page.replace("</body>", f"{ASKS}</body>"), tmp_path)
    assert any("Content Security Policy" in line for line in console)
