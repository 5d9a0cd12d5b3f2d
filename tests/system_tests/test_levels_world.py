"""Groups whose levels are moved: no rule breaks, and every planted mistake breaks one."""

from dataclasses import replace

import pytest

import assignor.leader
import assignor.levels
import assignor.native_facts
import probing.member
import probing.member_state
from probing.features import UNKNOWN_LEVELS
from system_tests.levels import LevelsOptions, LevelsWorld, What, levels_lines, run_levels
from system_tests.levels.checkers import LEVEL_RULES

SEEDS = range(25)
TRIED = range(150)


@pytest.mark.kip("778-13", "sim")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_is_broken(seed):
    outcome = run_levels(LevelsOptions(seed=seed))
    assert outcome.ok, "\n".join(levels_lines(outcome))


def test_the_runs_see_everything_that_can_happen():
    seen = [one for seed in SEEDS for one in run_levels(LevelsOptions(seed=seed)).seen]
    assert {one.what for one in seen} == set(What) - {What.REJOINED}
    assert {one.version for one in seen if one.what is What.WROTE} >= {4, 9, 11, 101, 102}
    assert any(LevelsWorld(seed, steps=1).holds_back for seed in SEEDS)


def test_the_same_seed_gives_the_same_lines():
    assert levels_lines(run_levels(LevelsOptions(seed=3))) == levels_lines(
        run_levels(LevelsOptions(seed=3))
    )


def adopts_anything(state, levels, go_by=probing.member_state.go_by):
    return go_by(replace(state, levels=UNKNOWN_LEVELS), levels)


def uncapped(known_versions, version, level):
    return version


def own_view(polled, carried):
    return polled


def nothing_said(levels, epoch):
    return UNKNOWN_LEVELS


def nobody_lacks(read, levels):
    return {}


PLANTED = {
    "nobody is capped": (
        "nobody writes above its level",
        [
            (probing.member_state, "capped_version", uncapped),
            (probing.member, "capped_version", uncapped),
        ],
    ),
    "a stale broker is believed": (
        "never back to an older epoch",
        [(probing.member_state, "go_by", adopts_anything)],
    ),
    "a leader goes by its own view": (
        "the newest levels win",
        [(assignor.levels, "group_levels", own_view)],
    ),
    "answers carry no levels": (
        "the newest levels win",
        [(assignor.native_facts, "levels_said", nothing_said)],
    ),
    "who cannot follow gets tasks": (
        "every task has one owner",
        [(assignor.leader, "lacking_members", nobody_lacks)],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_found(mistake, monkeypatch):
    rule, patches = PLANTED[mistake]
    assert rule in LEVEL_RULES
    for module, name, wrong in patches:
        monkeypatch.setattr(module, name, wrong)
    found = set()
    for seed in TRIED:
        found |= {one.rule for one in run_levels(LevelsOptions(seed=seed)).broken}
        if rule in found:
            return
    raise AssertionError(f"{len(TRIED)} runs broke {sorted(found)} and never {rule!r}")
