"""The verdict of a plan: the same in text, JSON, report and table, with costs and without."""

import json

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli.main import main
from system_tests.plan import Use, make_plan

STUCK = "no go: the group does not reach the new version"
REPEATED = "no go: members can die; two threads process the same task"
CASES = {
    "--from 2.2.2 --to 3.6.1 --threads 2": "go, if the points below are met",
    "--from 2.2.1 --to 3.6.1 --threads 2": REPEATED,
    "--from 3.6 --to 2.2.1 --threads 2": "no go: members can die",
    "--from 2.3.1 --to 2.5.1 --uses static": STUCK,
    # Members come back as their sessions end, with copies that an old leader cannot see.
    "--from 2.6.3 --to 3.9.2 --session-timeout-ms 6000 --restart-ms 6001": (
        "go, if the points below are met"
    ),
    "--from 3.2 --to 3.3 --uses fk-join": "no go by rolling bounces",
    "--from 3.9 --to 3.4": (
        "a rollback, as 3.4.1 is older than 3.9.2: go, if the points below are met"
    ),
}


def run(words):
    return CliRunner().invoke(main, ["plan", *words.split(), "--members", "2", "--partitions", "4"])


@pytest.mark.parametrize("words", CASES)
def test_the_verdict_is_the_same_with_and_without_costs_in_text_json_and_report(words, tmp_path):
    verdict, page = CASES[words], tmp_path / "plan.html"
    text = run(f"{words} --no-costs --report {page}")
    assert [line for line in text.stdout.splitlines() if "verdict: " in line] == [
        f"  verdict: {verdict}"
    ]
    assert f">{verdict}</span>" in page.read_text(encoding="utf-8")
    with_costs = run(f"{words} --seeds 3 --format json")
    found = json.loads(with_costs.stdout)
    assert found["verdict"] == verdict
    is_red = verdict.startswith("no go")
    assert found["is_red"] is is_red is bool(found["reasons"])
    assert with_costs.exit_code == text.exit_code == is_red
    for trap, sentence in found["traps"].items():
        assert trap in verdict
        assert sentence.startswith("!! ")
        assert sentence in found["reasons"]
        assert f"  - {sentence}" in text.stdout


def test_threads_of_one_process_are_a_trap_up_to_2_3_0_and_the_way_round_is_a_bridge():
    for old, way in (("2.3.0", "bounce to 2.3.1 first"), ("2.0.1", "stop all members and start")):
        made = make_plan(find_release(old), find_release("3.9"), threads=2)
        (note,) = (text for trap, text in made.traps.items() if "two threads" in trap)
        assert "2 threads process the same records" in note
        assert way in note
    for threads, old in ((1, "2.3.0"), (2, "2.3.1"), (2, "2.2.2"), (2, "2.4.1"), (2, "2.5.1")):
        made = make_plan(find_release(old), find_release("3.9"), threads=threads)
        assert not any("two threads" in trap for trap in made.traps)


def test_what_members_of_two_releases_run_into_together_is_no_warning_where_all_are_stopped():
    made = make_plan(find_release("2.3.1"), find_release("4.3"), frozenset({Use.SUPPRESS, Use.IQ}))
    assert not made.rolling
    assert made.warnings == ("4.3.1 rejects upgrade.from values up to 2.3",)
    assert not made.traps
    assert not made.back_traps
    mixed = make_plan(find_release("2.3.1"), find_release("4.3"), frozenset({Use.IQ}))
    assert any("side by side" in text for text in mixed.warnings)
    assert any("returns each member its previous tasks" in text for text in mixed.warnings)


def test_on_the_way_down_members_are_started_on_the_old_release():
    made = make_plan(find_release("3.4"), find_release("2.0.1"))
    (note,) = made.traps.values()
    assert "stop all members and start them on 2.0.1" in note
