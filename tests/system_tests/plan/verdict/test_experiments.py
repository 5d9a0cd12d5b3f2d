"""Plans do what real members did well, and nothing that ended members or made results wrong.

Each row of experiments.toml that is about a bounce is compared with the plan between its releases:
the plan does what was run if and only if it worked.
"""

import tomllib
from pathlib import Path

import pytest

import probing
from probing import find_release
from system_tests.plan import Use, make_plan

FILE = Path(probing.__file__).parent / "releases" / "experiments.toml"
ROWS = tomllib.loads(FILE.read_text(encoding="utf-8"))["result"]


def pinned_with(made, pin):
    return made.rolling and made.steps[0].upgrade_from == (pin or None)


def keeps_state(made, _pin):
    return made.rolling and not any(step.loses for step in made.steps)


def is_rolling(made, _pin):
    return made.rolling


def waits_for_sessions(made, _pin):
    return any(step.expires for step in made.steps)


DOES = {
    "foreign-key-beside": ("up", {Use.FK_JOIN}, is_rolling),
    "foreign-key-beside-3.3": ("up", {Use.FK_JOIN}, is_rolling),
    "foreign-key-back": ("down", {Use.FK_JOIN}, is_rolling),
    "foreign-key-back-without-state": ("down", {Use.FK_JOIN}, is_rolling),
    "table-beside-without-pin": ("up", {Use.KTABLE}, lambda made, _: pinned_with(made, "")),
    "table-bounce": ("up", {Use.KTABLE}, pinned_with),
    "table-pin-3.4": ("up", {Use.KTABLE}, pinned_with),
    "table-bounce-back": ("down", {Use.KTABLE}, pinned_with),
    "static-up": ("up", {Use.STATIC}, is_rolling),
    "static-back": ("down", {Use.STATIC}, lambda made, pin: not waits_for_sessions(made, pin)),
    "static-back-later": ("down", {Use.STATIC}, waits_for_sessions),
    "exactly-once-removed": ("up", {Use.EOS_V1}, lambda made, _: made.steps[-1].version == 1),
    "timestamps-2.3-back": ("down", set(), keeps_state),
    "rocksdb-3.0-back": ("down", set(), keeps_state),
    "rocksdb-4.0-back": ("down", set(), keeps_state),
    "offsets-4.3-back": ("down", set(), keeps_state),
    "state-kept-back": ("down", set(), keeps_state),
    "state-taken-over": ("up", set(), keeps_state),
}
"""Claim -> direction, uses, and whether a plan does what was run, with the pin of the row."""


@pytest.mark.parametrize("claim", DOES)
def test_a_plan_does_what_was_run_if_and_only_if_it_worked(claim):
    direction, uses, does = DOES[claim]
    rows = [row for row in ROWS if row["claim"] == claim]
    assert rows
    for row in rows:
        ends = [find_release(row["old"]), find_release(row["new"])]
        made = make_plan(*(ends if direction == "up" else reversed(ends)), frozenset(uses))
        worked = row["seen"].startswith("works")
        assert does(made, row["pin"]) is worked, (row, made.steps)
