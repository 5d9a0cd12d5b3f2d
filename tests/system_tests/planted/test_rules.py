"""Every rule is needed: without it a bounce fails, or a stored reason says why none does."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from probing import MEMBER_RULES, MemberModel
from probing.leader import next_version
from system_tests.explore import Bounds, expansion, explore, liveness
from system_tests.sim import SAFETY, BounceOptions, check_step, plan_bounce
from tests.nightly import is_nightly
from tests.system_tests.planted.bounces import EXPLORED, HARMLESS, PINNED_BESIDE_1_1
from tests.system_tests.planted.rules import LIVENESS, STORED, key_of, tables

MAX_STATES = 6_000
ROOT = Path(__file__).resolve().parents[3]


def stored():
    return json.loads(STORED.read_text(encoding="utf-8"))


def test_every_row_and_every_checker_was_taken_out_once():
    rows = [f"{row['table']}: {row['rule']}" for row in stored()["rows"]]
    assert rows == [key_of(table, row) for table in tables() for row in table.rows]
    names = [checker["checker"] for checker in stored()["checkers"]]
    assert names == [*(rule.name for rule in SAFETY), *LIVENESS]


def test_a_row_that_nothing_misses_has_its_reason_and_no_other_row_has_one():
    silent = {f"{r['table']}: {r['rule']}" for r in stored()["rows"] if "bounce" not in r}
    assert silent == set(HARMLESS)
    assert all(HARMLESS.values())


def test_of_two_rules_that_replace_each_other_one_is_needed(monkeypatch):
    assert PINNED_BESIDE_1_1.broken() == set()
    member = MEMBER_RULES[MemberModel.NATIVE]
    without = tuple(row for row in member if row.name != "pin stays")
    monkeypatch.setitem(MEMBER_RULES, MemberModel.NATIVE, without)
    assert PINNED_BESIDE_1_1.broken() == set()
    rows = tuple(row for row in next_version.NEXT_VERSION_RULES if row.name != "pinned")
    monkeypatch.setattr(next_version, "NEXT_VERSION_RULES", rows)
    assert "nobody dies" in PINNED_BESIDE_1_1.broken()


@pytest.mark.parametrize(("checker", "asked"), sorted(EXPLORED.items()))
def test_without_the_checker_a_known_issue_is_not_found(monkeypatch, checker, asked):
    old, new, kind, issue = asked.split()
    static = kind == "static"
    plan = plan_bounce(BounceOptions(old=old, new=new, static=static, force=True))
    bounds = Bounds(members=2, partitions=4, static=static, max_states=MAX_STATES)
    wanted = frozenset({(checker, issue)})

    def found():
        explored = explore(plan, bounds, wanted=wanted).found
        return {(finding.finding.broken.rule, finding.issue) for finding in explored}

    assert wanted <= found()
    others = tuple(rule for rule in SAFETY if rule.name != checker)
    for module in (expansion, liveness):
        monkeypatch.setattr(module, "check_step", partial(check_step, rules=others))
    assert not wanted & found()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_stored_is_what_happens_without_each_rule_today():
    tenth = [] if is_nightly() else ["--tenth"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.system_tests.planted.rules", "--check", *tenth],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
