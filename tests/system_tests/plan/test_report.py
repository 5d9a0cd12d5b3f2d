"""The page of a plan: what it names, how large it is, and that a browser can draw it."""

import json
import re

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli.main import main
from system_tests.engine import Broken
from system_tests.plan import NOT_REHEARSED, SimulatedGroup, StepCost, StepRun, Use, make_plan
from system_tests.plan.report import plan_page, signs_of
from system_tests.plan.report.signs import version_text
from tests.system_tests.report.browser import drawn

MOST_BYTES = 1_000_000
# Appended to the page: labels of the pictures that overlap, and the width of the page.
PROBE = """<script>
const boxes = [...document.querySelectorAll("svg")].flatMap((svg, at) =>
  [...svg.querySelectorAll("text")].map(
    text => ({at, text: text.textContent, box: text.getBBox()})));
const meets = (a, b) => a.at === b.at && a.box.x < b.box.x + b.box.width
  && b.box.x < a.box.x + a.box.width && a.box.y + 1 < b.box.y + b.box.height
  && b.box.y + 1 < a.box.y + a.box.height;
const found = document.createElement("pre");
found.id = "found";
found.textContent = JSON.stringify({
  labels: boxes.map(one => one.text),
  overlaps: boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => meets(a, b))
    .map(b => [a.text, b.text])),
  width: document.documentElement.scrollWidth,
});
document.body.append(found);
</script>"""


def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def costs_of(made, **fields):
    numbers = dict.fromkeys(StepRun.__dataclass_fields__, 0) | fields
    return (StepCost((StepRun(**numbers),)),) * len(made.steps)


@pytest.fixture(scope="module")
def page():
    made = plan("2.3.1", "4.3", Use.EOS)
    group = SimulatedGroup(name="shop")
    return plan_page(made, costs_of(made, pause_ms=100_000, longest_pause_ms=50_000), group)


def test_a_page_has_the_decision_every_step_and_what_is_not_checked(page):
    assert '<span class="verdict check">go, if the points below are met' in page
    assert "group, assumed (give --problem or --group):" in page
    assert re.findall(r"<tr><th>(\d)", page) == ["1", "2", "3"]
    for words in (
        "processing.guarantee=<wbr>exactly_once_v2",
        "point of no return",
        "not Stable 100 s after a start",
        "--group shop --watch 2",
        "KIP-896",
        "Not checked",
    ):
        assert words in page


def test_a_page_explains_its_seconds_and_draws_every_step(page):
    assert "the seconds are 2 times the longest pause of a partition in the step" in page
    assert "Stable is the state that inspect shows" in page
    assert re.findall('<b>(steps? .*?)</b></p>\n<div class="wide"><svg', page) == [
        "steps 1 and 2: 2.3.1 to 3.9.2",
        "step 3: 3.9.2 to 4.3.1",
    ]


def test_a_page_is_small_and_asks_for_nothing(page):
    assert len(page.encode()) < MOST_BYTES
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert re.findall(r"(?:src|href)\s*=\s*[\"'](?!data:)", page) == []


def test_a_narrow_screen_has_each_cell_of_a_step_under_its_head(page):
    table, *_ = re.findall(r'<table class="steps">.*?</table>', page)
    heads = re.findall(r'<td data-head="(.*?)">', table)
    assert heads[:5] == re.findall(r'<th style="width:\d+%">([^<]+)</th>', page)
    assert len(heads) == 3 * 5
    assert "content:attr(data-head)" in page
    assert '<td data-head="what to do">' in page


def test_a_page_without_costs_names_no_group_that_nothing_is_simulated_with():
    made = plan("2.3.1", "4.3")
    assert "group, assumed" not in plan_page(made, None, SimulatedGroup())
    assert "<b>group:</b>" in plan_page(made, None, SimulatedGroup(is_real=True))


def test_members_that_can_die_and_offline_upgrades_are_no_go():
    fatal, offline = plan("2.3.0", "2.4"), plan("3.2", "3.3", Use.FK_JOIN)
    assert "no go: members can die" in plan_page(fatal, costs_of(fatal), SimulatedGroup())
    shown = plan_page(offline, costs_of(offline), SimulatedGroup())
    assert "no go by rolling bounces" in shown
    assert "stop all members" in shown


def test_simulated_bounces_that_kill_members_are_no_go_and_no_figures():
    made, death = plan("3.9", "4.1"), Broken(rule="nobody dies", at_ms=1, sentence="a died")
    page = plan_page(made, costs_of(made, broken=(death,), known=()), SimulatedGroup(is_real=True))
    assert '<span class="verdict stop">no go: this way kills members' in page
    assert "this way kills members: in 1 of 1 simulated bounces, a died" in page
    assert "a partition pauses" not in page
    assert "longest pause of a partition</" not in page


@pytest.mark.parametrize(
    ("new", "is_real", "colour"),
    [("3.9", True, "go"), ("3.9", False, "check"), ("4.3", True, "check")],
)
def test_only_a_real_group_without_a_point_of_no_return_is_green(new, is_real, colour):
    made = plan("3.6", new)
    group = SimulatedGroup(is_real=is_real)
    assert f'<span class="verdict {colour}">' in plan_page(made, costs_of(made), group)


def test_names_cannot_become_markup():
    made = plan("3.9", "3.9")
    shown = plan_page(made, (), SimulatedGroup(name="<img src=x>", notes=("<i>",)))
    assert "<img" not in shown
    assert "<i>" not in shown


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        (
            "1.1",
            "2.0",
            [
                "version 2 all the time",
                "version 2 until the last member of 2.0.1 with upgrade.from=1.1 has stopped,",
            ],
        ),
        ("2.8", "3.9", ["version 9 until the last member of 2.8.2 has stopped, then 11"]),
        ("3.9", "2.8", ["version 9 from the first member on"]),
        ("3.9", "4.3", ["version 11 all the time"]),
    ],
)
def test_the_version_of_the_group_in_each_step_is_said(old, new, texts):
    steps = plan(old, new).steps
    assert all(version_text(step).startswith(text) for step, text in zip(steps, texts, strict=True))


def test_a_member_is_done_when_its_log_shows_what_the_step_changes():
    made, group = plan("2.3.1", "4.3", Use.EOS), SimulatedGroup()
    found = [
        signs_of(made, step, (cost,), group).done[0].removeprefix("the log of the member shows ")
        for step, cost in zip(made.steps, costs_of(made), strict=True)
    ]
    assert found == [
        "Kafka version: 3.9.2",
        "upgrade.from = null and processing.guarantee = exactly_once_v2",
        "Kafka version: 4.3.1",
    ]


def test_an_operator_waits_twice_the_longest_pause_before_stopping():
    made = plan("3.9", "4.3")
    (cost,) = costs_of(made, longest_pause_ms=60_000, session_ms=50_000, pause_ms=60_000)
    signs = signs_of(made, made.steps[0], (cost,), SimulatedGroup())
    assert signs.stop[0] == "not Stable 120 s after a start"
    assert "83 % of all pauses together: members stop without leaving" in "".join(signs.seen)
    (odd,) = costs_of(made, longest_pause_ms=53_400)
    twice = signs_of(made, made.steps[0], (odd,), SimulatedGroup())
    assert "a partition pauses 53 s at most" in twice.seen
    assert twice.stop[0] == "not Stable 106 s after a start"
    (quick,) = costs_of(made)
    assert (
        signs_of(made, made.steps[0], (quick,), SimulatedGroup())
        .stop[0]
        .startswith("not Stable 30 s")
    )


def test_each_sentence_of_a_step_is_in_one_place_only(page):
    rows = re.findall(r"<tr><th>\d</th>(.*?)</tr>", page)
    for row in rows:
        sentences = re.findall(r"<li>(.*?)</li>", row)
        assert len(sentences) == len(set(sentences)) > 0
    common = page.split("Watch in every step:")[1].split("</p>")[0]
    for words in ("state Stable", "lag that falls again", "--watch 2"):
        assert common.count(words) == 1
        assert not any(words in row for row in rows)


def test_a_step_that_cannot_be_rehearsed_says_why_in_the_words_of_live(page):
    made = plan("3.9", "4.3", Use.EOS)
    alone = plan_page(made, costs_of(made), SimulatedGroup())
    assert alone.count("cannot be rehearsed: exactly-once: members of a rehearsal") == 1
    assert "Not rehearsed" in page
    command = re.sub("</?span[^>]*>", "", page)
    assert "--to 4.3.1 --static --session-timeout-ms 45000 --heartbeat-ms 3000 --broker" in command
    assert '<span class="box">--from</span>' in page
    spoken = " ".join(CliRunner().invoke(main, ["live", "--help"]).stdout.split())
    for sentence in NOT_REHEARSED:
        assert sentence in spoken


def test_a_rollback_is_amber_and_names_the_deletion_of_state_if_there_is_one():
    made = plan("4.1", "3.9", Use.KTABLE)
    known = SimulatedGroup(is_real=True)
    page = plan_page(made, costs_of(made), known)
    assert '<span class="verdict check">' in page
    assert "</span>Rollback of Kafka Streams, 4.1.2 to 3.9.2" in page
    assert "delete its state directories while it is stopped" in page
    assert "point of no return" in page
    free = plan("3.9", "3.8", Use.KTABLE)
    page = plan_page(free, costs_of(free), known)
    assert '<span class="verdict check">' in page
    assert "delete its state directories while it is stopped" not in page


def test_the_command_writes_the_page(tmp_path):
    words = ["plan", "--from", "3.9", "--to", "4.3", "--seeds", "1", "--report"]
    file = tmp_path / "plan.html"
    assert CliRunner().invoke(main, [*words, str(file)]).exit_code == 0
    assert re.search(
        ">[abc] 4.3.1<", file.read_text(encoding="utf-8")
    )  # the owners' half names releases
    done = CliRunner().invoke(main, [*words, str(tmp_path / "missing" / "plan.html")])
    assert done.exit_code == 3
    assert "does not exist; choose another file for --report" in done.stderr


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_real_browser_draws_the_page_without_colliding_labels(page, tmp_path):
    allowed = page.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
    dom, console = drawn(allowed.replace("</body>", f"{PROBE}</body>"), tmp_path)
    assert console == []
    found = json.loads(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1])
    assert found["overlaps"] == []
    assert any(label.endswith(" 4.3.1") for label in found["labels"])
    assert found["width"] <= 1400


def test_warnings_and_what_shortens_pauses_have_a_box_to_tick():
    made = plan("2.3.1", "3.9")
    costs = costs_of(made, pause_ms=100, session_ms=85)
    page = plan_page(made, costs, SimulatedGroup())
    before = page.partition("<h2>Before you start</h2>")[2].partition("<h2>")[0]
    boxes = [row for row in before.split("<tr") if "&#9744;" in row]
    assert any("returns each member its previous tasks" in row for row in boxes)
    assert any("85 % of all pauses together are waits for stopped members" in row for row in boxes)


@pytest.mark.parametrize("uses", [(), (Use.EOS, Use.KTABLE, Use.IQ)])
def test_the_header_counts_the_boxes_of_the_page(uses):
    made = plan("2.3.1", "4.3", *uses)
    page = plan_page(made, costs_of(made, pause_ms=100, session_ms=85), SimulatedGroup())
    everything, before = map(int, re.search(r"(\d+) boxes, (\d+) of them before", page).groups())
    assert page.count("&#9744;") == everything
    start = page.partition("<h2>Before you start</h2>")[2].partition("<h2>")[0]
    assert start.count("&#9744;") == before > 0


def test_the_lanes_of_a_saved_group_are_its_tasks():
    made = plan("3.9", "4.3")
    group = SimulatedGroup(members=2, partitions=2, tasks=("0_7", "1_3"), is_real=True)
    page = plan_page(made, costs_of(made), group)
    lanes = re.findall(r'class="lane"[^>]*>([^<]*)<', page)
    assert lanes[2:] == ["task 0_7", "task 1_3"]
    assert "lines-" not in page
