"""A new release for a streams group: one bounce, what the brokers need first, who is refused."""

import json

import pytest
from click.testing import CliRunner

from assignor.problems import PROTOCOL_KEY
from probing import find_release
from system_tests.cli.main import main
from system_tests.plan import Use, plan_streams_move, plan_streams_upgrade

SAVED = {
    "name": "shop",
    PROTOCOL_KEY: "streams",
    "topics": {"orders": {"partitions": 2}},
    "subtopologies": {"0": {"sources": ["orders"], "changelogs": ["shop-totals-changelog"]}},
    "end_offset_sums": {"0_0": 1000, "0_1": 500},
    "clients": {"a": {"active": ["0_0"]}, "b": {"active": ["0_1"]}},
}


def upgrade(old, new, brokers, *uses, **more):
    return plan_streams_upgrade(*map(find_release, (old, new, brokers)), frozenset(uses), **more)


def plan(*words):
    return CliRunner().invoke(main, ["plan", *map(str, words)])


def test_members_are_bounced_once_and_no_upgrade_of_brokers_is_added():
    (step,) = upgrade("4.2", "4.4", "4.3").steps
    assert "with brokers of 4.4 or later members would report the offsets" in step.cost
    assert "without upgrade.from" in step.what
    assert "its tasks move to other members" in step.cost
    (newer,) = upgrade("4.2", "4.4", "4.4").steps
    assert newer.what == step.what
    assert "would report" not in newer.cost


def test_advice_of_a_refusal_can_be_followed():
    (down,) = upgrade("4.4", "4.2", "4.4", Use.STATIC).obstacles
    assert "upgrade the brokers" not in down
    assert "bounce them as 4.4.0 without group.instance.id" in down
    assert upgrade("4.4", "4.2", "4.4").steps


def test_classic_as_a_target_is_answered_with_the_way_back():
    done = plan("--from", "4.3", "--to", "classic")
    assert done.exit_code == 2
    assert "start them with group.protocol=classic" in done.stderr


def test_the_way_back_over_a_format_of_stores_deletes_state():
    made = upgrade("4.2", "4.4", "4.4")
    assert "delete the state directories before you start 4.2" in made.steps[-1].back[1]
    assert made.no_return.startswith("none on this path; from step 1 on, going back deletes")
    down = upgrade("4.4", "4.2", "4.4")
    assert "delete the state directories before you start 4.2" in down.steps[-1].what
    assert upgrade("4.3", "4.4", "4.4").no_return == "none on this path"


@pytest.mark.parametrize(
    ("ends", "uses", "sentence"),
    [
        (("4.1", "4.3", "4.3"), (), "or its early access: take the group to the classic protocol"),
        (("4.3", "4.1", "4.3"), (), "or its early access"),
        (("3.9", "4.4", "4.3"), (), "3.9.2 has no streams protocol, so it is not what members of"),
        (("4.2", "4.3", "4.2.0"), (), "KAFKA-20254"),
        (("4.3", "4.4", "4.4"), (Use.STATIC,), "members of 4.3.1 with brokers of 4.4.0 refuse"),
        (("4.2", "4.3", "4.3"), (Use.REGEX,), "subscribe to topics by name"),
        (("4.3", "native", "4.3"), (), "native is no release of members of a streams group"),
    ],
)
def test_groups_that_cannot_be_bounced_are_refused(ends, uses, sentence):
    made = upgrade(*ends, *uses)
    assert made.steps == ()
    assert any(sentence in obstacle for obstacle in made.obstacles)


def test_a_saved_streams_group_needs_the_releases_only(tmp_path):
    file = tmp_path / "group.json"
    file.write_text(json.dumps(SAVED), encoding="utf-8")
    page = tmp_path / "plan.html"
    words = ("--problem", file, "--from", "4.2", "--to", "4.3", "--brokers", "4.3")
    done = plan(*words, "--report", page)
    assert done.exit_code == 0, done.output
    assert "4.2.2 to 4.3.1, a streams group (KIP-1071), brokers 4.3.1: one rolling" in done.stdout
    assert "all tasks together have 1,500 records in changelogs" in done.stdout
    assert "try:" not in done.stdout
    assert "group shop" in page.read_text(encoding="utf-8")
    missing = plan("--problem", file, "--to", "4.3")
    assert missing.exit_code == 2
    assert "give --from RELEASE and --brokers RELEASE" in missing.stderr


def test_a_group_of_the_given_release_has_nothing_to_do():
    done = plan(*["--from", "4.3", "--to", "4.3", "--streams-group", "--brokers", "4.3"])
    assert done.exit_code == 0
    assert "nothing to do, every member already runs it" in done.stdout
    assert "step 1" not in done.stdout
    assert (
        plan(*["--from", "4.1", "--to", "4.3", "--streams-group", "--brokers", "4.3"]).exit_code
        == 1
    )


def test_a_fact_of_brokers_follows_from_their_release_and_not_from_the_members():
    for members, brokers, of_brokers, of_members in (
        ("4.4", "4.3", False, True),
        ("4.3", "4.4", True, False),
        ("4.4", "4.4", True, True),
    ):
        made = plan_streams_move(find_release(members), find_release(brokers), frozenset())
        text = "\n".join(map(str, made.changes))
        assert ("default, brokers 4.4.0: the broker's assignor is chosen" in text) is of_brokers
        assert ("topology.description.push.enabled" in text) is of_members


@pytest.mark.parametrize("to", ["streams", "4.4.0 --streams-group"])
def test_static_members_are_made_dynamic_before_brokers_go_below_4_4(to):
    words = ["plan", "--from", "4.4", "--brokers", "4.4", "--to", *to.split()]
    shown = CliRunner().invoke(main, [*words, "--uses", "static"]).stdout
    (end,) = (line for line in shown.splitlines() if line.startswith("point of no return: "))
    assert "before brokers go below 4.4, bounce the members and start each without" in end
    assert "INVALID_REQUEST" in end
    assert "INVALID_REQUEST" not in CliRunner().invoke(main, words).stdout
