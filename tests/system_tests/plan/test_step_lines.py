"""Lines of steps: settings, waits and commands, with the names of the group in every output."""

import json
import re
from html import unescape

import pytest

from probing import find_release
from system_tests.plan import (
    SimulatedGroup,
    Use,
    make_plan,
    plan_document,
    plan_streams_move,
)
from system_tests.plan.report import plan_page
from system_tests.plan.text import back_lines, demands_of, plan_lines, step_text
from system_tests.plan.uses import read_uses

TAG = re.compile("<[^>]*>")
V1, V2 = (f"processing.guarantee=exactly_once{end}" for end in ("", "_v2"))


def plan(old, new, *uses):
    return make_plan(find_release(old), find_release(new), frozenset(uses))


def test_settings_in_force_are_in_every_line_and_only_bounced_members_are_bounced_back():
    made = plan("2.3.1", "4.3", Use.EOS)
    backs = [back_lines(step)[0] for step in made.steps]
    assert [V1 in backs[0], V1 in backs[1], V2 in backs[2]] == [True] * 3
    assert all(line.startswith("bounce each member that this step has restarted") for line in backs)
    assert [V1 in step_text(made.steps[0]), V2 in step_text(made.steps[2])] == [True] * 2


@pytest.mark.parametrize(
    ("old", "new", "uses", "action"),
    [
        ("2.3.1", "4.3", "eos", "step 2 switches to it"),
        ("4.3", "2.3.1", "eos", "step 2 switches to it"),
    ],
)
def test_a_row_names_the_step_that_switches(old, new, uses, action):
    made = make_plan(find_release(old), find_release(new), read_uses(uses))
    words = ("only exactly_once_v2 is accepted", "only exactly_once exists")
    (row,) = (row for row in made.changes if any(word in row.what for word in words))
    assert row.action == action
    assert not any("(a step of this plan)" in str(row) for row in made.changes)


def test_what_a_step_stops_it_starts_again_and_a_reset_names_group_and_topics():
    drained, reset = plan("3.2", "3.3.0", Use.FK_JOIN), plan("3.9", "3.2", Use.FK_JOIN)
    assert step_text(drained.steps[0]).endswith("and then what writes the input topics")
    topics = {"input_topics": ("orders", "users"), "internal_topics": ("shop-a-changelog",)}
    group = SimulatedGroup(name="shop", longer_groups=("shop-2",), **topics)
    lines = "\n".join(plan_lines(reset, group))
    page = unescape(TAG.sub("", plan_page(reset, None, group)))
    words = "--application-id shop --input-topics orders,users --internal-topics shop-a-changelog"
    assert page.count(words) == 1
    assert words in lines
    assert (
        "of other groups whose id begins with shop-, here shop-2; assignor reset --group shop"
        in lines
    )
    unnamed = "\n".join(plan_lines(reset))
    assert "--input-topics TOPIC,TOPIC --internal-topics TOPIC,TOPIC" in unnamed
    assert "those that the tool lists without this option, except topics of other" in unnamed


def test_a_group_is_never_printed_as_another_group():
    made = plan("3.9", "3.1", Use.KTABLE, Use.EOS)
    group = SimulatedGroup(name="a\nb")
    page = unescape(TAG.sub("", plan_page(made, None, group)))
    assert "--describe --group $'a\\012b'" in page
    assert "--describe --group $'a\\012b'" in "\n".join(plan_lines(made, group))
    assert r"group a\nb" in page


def test_the_names_of_a_group_are_in_text_json_and_report_alike():
    made = plan("3.9", "3.1", Use.KTABLE, Use.EOS)
    group = SimulatedGroup(name="my shop", repartition_topics=("shop-a-repartition",))
    text = "\n".join(plan_lines(made, group))
    document = json.dumps(plan_document(made, None, group))
    page = unescape(TAG.sub("", plan_page(made, None, group)))
    for found in (text, document, page):
        assert "each repartition topic (shop-a-repartition) has been consumed" in found
        assert "--describe --group 'my shop'" in found
        assert "GROUP" not in found
    move = plan_streams_move(
        *map(find_release, ("4.3", "4.3")), frozenset(), streams_version=1, group=group
    )
    assert "--group 'my shop': streams" in move.steps[1].seen


@pytest.mark.parametrize(
    ("old", "new", "uses", "is_named"),
    [
        ("3.9", "3.1", (Use.KTABLE, Use.EOS), True),
        ("3.9", "3.1", (Use.KTABLE,), False),
        ("3.2", "3.3.0", (Use.FK_JOIN, Use.EOS), True),
        ("3.2", "3.4.0", (Use.FK_JOIN, Use.EOS), False),
    ],
)
def test_lag_that_only_transaction_markers_make_does_not_hold_up_a_step(old, new, uses, is_named):
    step = plan(old, new, *uses).steps[0]
    lines = "\n".join(demands_of(step))
    assert ("where only transaction markers follow" in lines) is is_named
    assert ("--isolation-level read_committed --timeout-ms 10000" in lines) is is_named
