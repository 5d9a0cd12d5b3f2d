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
    for old, way, is_rolling in (("2.3.0", "bounce to 2.3.1 first", True), ("2.0.1", "", False)):
        made = make_plan(find_release(old), find_release("3.9"), threads=2)
        (note,) = (text for trap, text in made.traps.items() if "two threads" in trap)
        assert "2 threads process the same records" in note
        assert way in note
        assert made.way_out.startswith(way)
        assert made.rolling is is_rolling
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


def lines_of(words):
    return run(f"{words} --no-costs").stdout.splitlines()


@pytest.mark.parametrize(("old", "new"), [("2.0", "4.4"), ("2.0.1", "2.3.1"), ("3.4", "2.0.1")])
def test_where_only_a_stop_of_all_members_is_safe_it_is_the_plan_and_its_way_back(old, new):
    made = make_plan(find_release(old), find_release(new))
    (step,) = made.steps
    assert (step.release, step.rolling) == (made.new, False)
    assert not any(again.rolling for again in step.back.steps)
    lines = lines_of(f"--from {old} --to {new}")
    assert lines[1] == "  verdict: no go by rolling bounces: members can die"
    assert lines[2] == "  way out: stop all members, as in step 1; do not bounce them one at a time"
    (number,) = (at for at, line in enumerate(lines) if line.startswith("step "))
    assert lines[number].startswith("step 1: stop all members, wait until the group is Empty, ")
    assert "crash with a NullPointerException" in lines[number + 1]


def test_a_path_over_a_bridge_has_the_step_without_it():
    started = "start all as 4.4.0"
    for uses, more in (("", ""), (" --uses eos-v1", " with processing.guarantee=exactly_once_v2")):
        lines = lines_of(f"--from 2.3.1 --to 4.4{uses}")
        (line,) = (line for line in lines if line.startswith("  or without a bridge: "))
        assert f"wait until the group is Empty, {started}{more}; " in line
        assert "3.9.2 is not needed [1]" in line
    assert "or without a bridge" not in "\n".join(lines_of("--from 3.9 --to 4.4"))
    for old, new, is_of_guide in (
        ("0.10.2.2", "4.1", True),
        ("0.10.0.0", "4.4", False),
        ("0.10.2.2", "4.2", False),
        ("0.11.0.0", "4.2", True),
    ):
        text = "\n".join(lines_of(f"--from {old} --to {new}"))
        assert "over the bridge" in text
        assert ("or without a bridge" in text) is is_of_guide
        assert ("to 4.2 and later from 0.11.0 on" in text) is is_of_guide
    way_out = lines_of("--from 2.3.0 --to 3.9")[2]
    assert way_out == "  way out: bounce to 2.3.1 first, which also writes version 4"


def test_what_ends_the_way_back_besides_steps_is_at_the_point_of_no_return():
    ends = "once brokers run 4.0 or later, no group can go back below 2.1 (KIP-896)"
    ways = (("--from 2.0 --to 2.2", "step 1"), ("--from 1.1 --to 4.4", "none among these steps"))
    for words, where in ways:
        (line,) = (line for line in lines_of(words) if line.startswith("point of no return: "))
        assert line.startswith(f"point of no return: {where}")
        assert line.endswith(f"; {ends}")
    assert ends not in "\n".join(lines_of("--from 2.1 --to 2.2"))
    assert ends not in "\n".join(lines_of("--from 2.2 --to 2.0"))


@pytest.fixture
def problem_of(tmp_path):
    def write(parts):
        file = tmp_path / f"{parts}.json"
        numbers = range(parts)
        client = {
            "threads": 1,
            "consumers": ["a-1"],
            "active": [f"{number}_0" for number in numbers],
        }
        group = {
            "name": "app",
            "topics": {f"in-{number}": {"partitions": 1} for number in numbers},
            "subtopologies": {
                str(number): {"sources": [f"in-{number}"], "changelogs": []} for number in numbers
            },
            "clients": {"00000000-0000-0000-0000-000000000001": client},
        }
        file.write_text(json.dumps(group), encoding="utf-8")
        return f"--problem {file} --from 2.0 --to 4.4"

    return write


def test_a_group_with_one_subtopology_is_bounced_and_one_with_more_is_not(problem_of):
    first, verdict, *_ = lines_of(problem_of(1))
    assert first == "2.0.1 to 4.4.0: 3 rolling bounces over the bridge 3.9.2"
    assert "no go" not in verdict
    for words, is_unknown in ((problem_of(2), False), ("--from 2.0 --to 4.4", True)):
        _, verdict, way_out, *rest = lines_of(words)
        assert verdict == "  verdict: no go by rolling bounces: members can die"
        assert way_out.startswith("  way out: stop all members, as in step 1")
        assert rest[0].startswith("  way out: only if the application has exactly") is is_unknown


@pytest.mark.parametrize("brokers", ["", " --brokers 2.0", " --brokers 4.0"])
def test_json_has_the_ways_out_of_the_text(brokers):
    title = "  way out: "
    words = f"--from 2.0 --to 4.4{brokers}"
    ways = [line.removeprefix(title) for line in lines_of(words) if line.startswith(title)]
    made = json.loads(run(f"{words} --no-costs --format json").stdout)
    assert made["way_out"] == "; ".join(ways)
    assert len(ways) == 2
