"""What the command prints: the plan at once, costs that can be checked, names of features."""

import json
import re

import pytest
from click.testing import CliRunner

from probing import find_release
from system_tests.cli import plan as command
from system_tests.cli.main import main
from system_tests.plan import SIGNS, SimulatedGroup, StepCost, StepRun, Use, costs_lines, make_plan
from system_tests.sim import Broken


def run(words):
    return CliRunner().invoke(main, ["plan", *words.split()])


def cost_of(**fields):
    return StepCost((StepRun(**(dict.fromkeys(StepRun.__dataclass_fields__, 0) | fields)),))


def lines_of(group, **fields):
    made = make_plan(find_release("3.9"), find_release("4.3"))
    return "\n".join(costs_lines(made.steps, (cost_of(**fields),), group))


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
    shown = lines_of(SimulatedGroup(restore=20_000))
    assert "the way back is 1 rolling bounce and restores all state: 600,000 records" in shown
    assert "the largest changelog takes 100,000 / 20,000 a second = 5 s; at least" in shown
    assert "at least 3 x 5 s = 15 s for 3 members, which delete their state and restore" in shown
    made = make_plan(find_release("3.8"), find_release("3.9"))
    assert "way back" not in "\n".join(costs_lines(made.steps, (cost_of(),), SimulatedGroup()))


def test_going_back_is_a_bounce_in_which_each_member_restores_in_turn():
    many = SimulatedGroup(members=40, partitions=80, sizes=(2_000_000,) * 80, growth=0)
    assert "at least 40 x 40 s = 27 min for 40 members, which" in lines_of(many)
    # The largest three are on one member at best, and the others wait for 1 s each.
    sizes = (2_000_000,) * 3 + (50_000,) * 6
    some = SimulatedGroup(members=3, partitions=9, sizes=sizes, growth=0)
    assert "at least 42 s for 3 members, which" in lines_of(some)
    made = make_plan(find_release("2.3.1"), find_release("4.3"))
    costs = (cost_of(),) * 3
    shown = "\n".join(costs_lines(made.steps, costs, many))
    assert "at least 2 x 40 x 40 s = 53 min" in shown
    assert re.search(r"the way back is [2-9] rolling bounces and restores all state", shown)


def test_going_back_never_restores_less_than_the_steps_before():
    group = SimulatedGroup(restore=20_000, growth=100)
    grown = lines_of(group, duration_ms=1_000_000)
    assert "restores all state: 1,200,000 records" in grown
    assert "the largest changelog takes 200,000 / 20,000 a second = 10 s" in grown
    read = lines_of(group, largest=300_000, restored=2_000_000, restore_ms=1)
    assert "restores all state: 2,000,000 records" in read
    assert "the largest changelog takes 300,000 / 20,000 a second = 15 s" in read


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
