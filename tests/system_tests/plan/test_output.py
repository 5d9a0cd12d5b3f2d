"""What the command prints: the plan at once, costs that can be checked, names of features."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli import plan as command
from system_tests.cli.main import main
from system_tests.engine import Broken
from system_tests.plan import SIGNS, SimulatedGroup, StepCost, StepRun, Use, costs_lines, make_plan


def run(words):
    return CliRunner().invoke(main, ["plan", *words.split()])


def cost_of(**fields):
    zeros = dict.fromkeys(StepRun.__dataclass_fields__, 0) | {"broken": (), "known": ()}
    return StepCost((StepRun(**(zeros | fields)),))


def lines_of(group, **fields):
    made = make_plan(find_release("3.9"), find_release("4.3"))
    return "\n".join(costs_lines(made.steps, (cost_of(**fields),), group))


def test_sources_and_what_to_know_of_rehearsals_stand_once_after_the_instructions():
    lines, _, sources = run("--from 2.3.1 --to 4.4 --no-costs").stdout.partition("\nsources:\n")
    numbers = [int(found) for found in re.findall(r" \[(\d+)\]$", lines, re.MULTILINE)]
    assert list(dict.fromkeys(numbers)) == list(range(1, max(numbers) + 1))
    rows = dict(row.strip().split("] ", 1) for row in sources.splitlines())
    assert list(rows) == [f"[{number}" for number in range(1, max(numbers) + 1)]
    assert len(set(rows.values())) == len(rows)
    assert "[K" not in lines
    assert lines.count("\n  try:  ") == 3
    assert lines.count("give --members") == 1


def test_the_plan_is_printed_before_anything_is_simulated(monkeypatch):
    def simulate(*_args, **_options):
        command.click.echo("<simulated>")
        return (cost_of(membership=7),)

    monkeypatch.setattr(command, "step_costs", simulate)
    shown = run("--from 3.9 --to 4.3").stdout
    order = ["step 1:", "Before you start:", "not checked:", "<simulated>", "\nCosts, ", "7 rebal"]
    assert [shown.index(words) for words in order] == sorted(shown.index(w) for w in order)


def test_without_costs_nothing_is_simulated(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "step_costs", None)
    page = tmp_path / "plan.html"
    done = run(f"--from 3.9 --to 4.3 --no-costs --report {page}")
    assert done.exit_code == 0, done.output
    assert "Costs, " not in done.stdout
    assert "<svg" not in page.read_text(encoding="utf-8")
    assert "not Stable 90 s" in page.read_text(encoding="utf-8")  # twice the session timeout of 3.9
    (step,) = json.loads(run("--from 3.9 --to 4.3 --no-costs --format json").stdout)["steps"]
    assert step["cost"] is None
    assert run("--from 3.9 --to 4.3 --no-costs --seeds 2").exit_code == 2


def test_seconds_of_restore_follow_from_the_records_that_are_printed():
    group = SimulatedGroup(restore=20_000)
    shown = lines_of(group, restored=900_000, largest=250_000, restore_ms=30_000, waiting=4)
    records, rate, seconds = re.search(r"([\d,]+) / ([\d,]+) a second = ([\d.]+) s", shown).groups()
    assert (records, rate, seconds) == ("250,000", "20,000", "12")
    assert "4 pauses wait 30 s together" in shown
    assert "a partition waits for" not in lines_of(group, restored=0)


def test_the_largest_changelog_that_is_read_is_that_of_the_simulation():
    words = "--from 2.3.1 --to 2.5 --seeds 1 --restore-rate 1000 --format json"
    cost = json.loads(run(words).stdout)["steps"][0]["cost"]
    assert 0 < cost["largest"] <= cost["restored"]
    assert cost["largest"] <= cost["longest_pause_ms"]  # at 1,000 records a second
    assert cost["waits_ms"]["restore_ms"] <= cost["waiting"] * cost["largest"] + cost["waiting"]


@pytest.mark.parametrize("static", [False, True])
def test_the_time_that_a_member_is_down_is_printed_and_can_be_given(static):
    drawn = lines_of(SimulatedGroup(is_static=static), pause_ms=9, session_ms=9)
    assert "starts again after 0.2 to 8 s, and 15 to 60 s in 25 % of restarts (assumed" in drawn
    given = lines_of(SimulatedGroup(is_static=static, restart_ms=5000), pause_ms=9, session_ms=9)
    assert "starts again after 5 s\n" in given.replace(";", "\n")
    assert ("until it is back, after 5 s, or until its session of 45 s" in given) == static


def test_members_that_are_back_at_once_pause_less():
    words = "--from 3.9 --to 4.3 --uses static --seeds 2 --format json --restart-ms"
    (quick,), (slow,) = (json.loads(run(f"{words} {ms}").stdout)["steps"] for ms in (1000, 30_000))
    assert quick["cost"]["longest_pause_ms"] < 10_000 < slow["cost"]["longest_pause_ms"]


def test_features_are_explained_in_the_help_and_read_in_any_case():
    shown = CliRunner().invoke(main, ["plan", "--help"]).stdout
    for use in Use:
        assert re.search(rf"^ +{use} +{re.escape(SIGNS[use][:30])}", shown, re.MULTILINE)
    made = json.loads(run("--from 3.9 --to 4.3 --no-costs --uses EOS,Fk-Join --format json").stdout)
    assert made["uses"] == ["eos", "fk-join"]
    done = run("--from 3.9 --to 4.3 --uses eso")
    assert done.exit_code == 2
    assert all(use in done.stderr for use in Use)
    assert "eos (exactly-once)" in done.stderr


def test_going_back_has_its_price_if_it_deletes_state():
    back = cost_of(duration_ms=180_000, longest_pause_ms=45_000, pause_ms=90_000, restored=600_000)
    made = make_plan(find_release("3.9"), find_release("4.3"))
    shown = "\n".join(costs_lines(made.steps, (replace(cost_of(), back=back),), SimulatedGroup()))
    assert (
        "the way back (1 rolling bounce) takes about 180 s with one member after the other; each"
        " member deletes its state and restores it"
    ) in shown
    assert (
        "on the way back the longest pause of a partition 45 s; of all partitions together 90 s;"
        " 600,000 records to restore"
    ) in shown
    made = make_plan(find_release("3.8"), find_release("3.9"))
    assert "way back" not in "\n".join(costs_lines(made.steps, (cost_of(),), SimulatedGroup()))


def test_the_ways_back_of_all_steps_are_added_up():
    made = make_plan(find_release("2.3.1"), find_release("4.3"))
    back = cost_of(duration_ms=1_000_000, longest_pause_ms=45_000, restored=7)
    costs = (replace(cost_of(), back=back),) * 3
    shown = "\n".join(costs_lines(made.steps, costs, SimulatedGroup()))
    assert re.search(
        r"all steps: the way back \([2-9] rolling bounces\) takes about 50 min .* deletes its state"
        r" 2 times",
        shown,
    )
    assert "all steps: on the way back the longest pause of a partition 45 s" in shown


def test_a_way_back_that_breaks_a_rule_has_no_figures():
    broken = (Broken(rule="nobody dies", at_ms=9, sentence="b died"),)
    back = StepCost((replace(cost_of().runs[0], broken=broken),))
    made = make_plan(find_release("3.9"), find_release("4.3"))
    shown = "\n".join(costs_lines(made.steps, (replace(cost_of(), back=back),), SimulatedGroup()))
    assert "the way back (1 rolling bounce): this way kills members: in 1 of 1" in shown
    assert "on the way back" not in shown


def test_what_shortens_pauses_is_named_before_the_start_with_its_share():
    shown = lines_of(SimulatedGroup(), pause_ms=100, session_ms=85, restore_ms=8)
    actions = shown.partition("before you start, to shorten the pauses:")[2]
    assert "85 % of all pauses together are waits for stopped members: set a shorter" in actions
    assert "restores" not in actions
    assert "before you start" not in lines_of(SimulatedGroup())


def test_what_exactly_once_changes_of_the_costs_is_said():
    made = make_plan(find_release("3.9"), find_release("4.3"))
    costs = (made.steps, (cost_of(),), SimulatedGroup())
    words = "exactly-once: the figures are the same with and without it"
    assert words in "\n".join(costs_lines(*costs, [Use.EOS]))
    assert words not in "\n".join(costs_lines(*costs))


def test_the_status_is_1_if_a_simulated_bounce_kills_members(monkeypatch):
    death = Broken(rule="nobody dies", at_ms=1, sentence="a died")
    monkeypatch.setattr(
        command, "step_costs", lambda *_args, **_options: (cost_of(broken=(death,), known=()),)
    )
    done = run("--from 3.9 --to 4.3")
    assert done.exit_code == 1
    assert "this way kills members" in done.stdout
    assert "this step has no costs" in done.stdout
    assert "takes about" not in done.stdout
