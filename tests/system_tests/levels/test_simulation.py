"""Groups whose levels are moved: no rule breaks, and every planted mistake breaks one."""

from dataclasses import replace

import pytest

import assignor.rebalance.leader.assign
import assignor.rebalance.leader.finalized_levels
import assignor.rebalance.member_facts
import probing.member.machine
import probing.member.next_subscription
from assignor.embedding import ProcessDirectory
from assignor.stores.persisted import PROCESS_NAME
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA, UNKNOWN_LEVELS
from probing.persisted_formats import PersistedSettings
from system_tests.levels import LevelsOptions, LevelsWorld, What, levels_lines, run_levels
from system_tests.levels.checkers import LEVEL_RULES

SEEDS = range(25)
TRIED = range(150)


@pytest.mark.kip("584-13", "sim")
@pytest.mark.kip("778-13", "sim")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_is_broken(seed):
    outcome = run_levels(LevelsOptions(seed=seed))
    assert outcome.ok, "\n".join(levels_lines(outcome))


@pytest.mark.kip("584-7", "sim")
def test_a_minimum_rises_once_every_member_has_it_and_no_operator_goes_below():
    """The leader raises it, by what it read of each member, when it looks for levels."""
    raised, asked = 0, 0
    for seed in range(60):
        outcome = run_levels(LevelsOptions(seed=seed))
        assert outcome.ok, "\n".join(levels_lines(outcome))
        minimum = 0
        for one in outcome.seen:
            if one.what is What.DEPRECATED:
                raised, minimum = raised + 1, one.minimum
            asked += minimum > 0 and one.what is What.UPDATED
    assert raised > 3
    assert asked > 3


@pytest.mark.kip("778-16", "sim")
def test_after_the_level_was_lowered_the_group_goes_back_to_the_older_program():
    """From level 102, which the older program lacks; every member is bounced, all tasks are run."""
    lowered = 0
    for seed in range(60):
        outcome = run_levels(LevelsOptions(seed=seed))
        assert outcome.ok, "\n".join(levels_lines(outcome))
        levels = [0, 0]
        for one in outcome.seen:
            if one.what is What.UPDATED:
                levels.append(one.levels.level_of(ASSIGNMENT_PROTOCOL))
            elif one.what is What.GOES_BACK:
                lowered += levels[-2] == 102 > levels[-1]
    assert lowered > 3


def test_the_runs_see_everything_that_can_happen():
    seen = [one for seed in TRIED for one in run_levels(LevelsOptions(seed=seed)).seen]
    assert {one.what for one in seen} == set(What) - {What.REJOINED}
    assert {one.version for one in seen if one.what is What.WROTE} >= {4, 9, 11, 101, 102}
    assert any(LevelsWorld(seed, steps=1).holds_back for seed in SEEDS)


def test_the_same_seed_gives_the_same_lines():
    assert levels_lines(run_levels(LevelsOptions(seed=3))) == levels_lines(
        run_levels(LevelsOptions(seed=3))
    )


class Directories:
    """The state directories of a run's members, written as the adapters write them.

    A member starts with setting 1; those of even numbers are bounced to setting 2. It writes the
    version that its leader finalized, once it knows one.
    """

    def __init__(self, path):
        self.path = path
        self.open = {}
        self.settings = {}

    def start(self, name):
        is_raised = (self.path / name).exists() and int(name[1:]) % 2 == 0
        self.settings[name] = 2 if is_raised else 1
        setting = PersistedSettings(persistent_metadata_version=self.settings[name])
        self.open[name] = ProcessDirectory(self.path / name, setting)

    def stop(self, name):
        self.open.pop(name).close()

    def follow(self, name, levels):
        level = levels.level_of(PERSISTENT_METADATA)
        if level > 0:
            self.open[name].follow(level)

    def format_of(self, name):
        return 2 if (self.path / name / PROCESS_NAME).read_bytes().startswith(b"SRPROC01") else 1


def formats_taken(seen, directories):
    """(own setting, format of the leader) of every follower; its format is the leader's."""
    taken, leader, followers = set(), "", {}
    for one in seen:
        if one.what is What.STARTED:
            directories.start(one.who)
        elif one.what is What.FOLLOWED:
            directories.follow(one.who, one.levels)
            followers[one.who] = one.levels
        elif leader in followers and followers[leader].level_of(PERSISTENT_METADATA):
            written = directories.format_of(leader)
            for name in followers:
                assert directories.format_of(name) == written, (one.step, leader, name)
                taken.add((directories.settings[name], written))
        if one.what is not What.FOLLOWED:
            leader, followers = one.who if one.what is What.LED else "", {}
        if one.what in (What.STOPPED, What.REFUSED):
            directories.stop(one.who)
    for name in sorted(directories.open):
        directories.stop(name)
    return taken


@pytest.mark.kip("384-6", "sim")
def test_during_a_roll_followers_write_the_leaders_format_whatever_their_setting(tmp_path):
    taken = set()
    for seed in SEEDS:
        seen = run_levels(LevelsOptions(seed=seed)).seen
        taken |= formats_taken(seen, Directories(tmp_path / str(seed)))
    assert taken == {(1, 1), (1, 2), (2, 1), (2, 2)}


def adopts_anything(state, levels, go_by=probing.member.next_subscription.go_by):
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
            (probing.member.next_subscription, "capped_version", uncapped),
            (probing.member.machine, "capped_version", uncapped),
        ],
    ),
    "a stale broker is believed": (
        "never back to an older epoch",
        [(probing.member.next_subscription, "go_by", adopts_anything)],
    ),
    "a leader goes by its own view": (
        "the newest levels win",
        [(assignor.rebalance.leader.finalized_levels, "group_levels", own_view)],
    ),
    "answers carry no levels": (
        "the newest levels win",
        [(assignor.rebalance.member_facts, "levels_said", nothing_said)],
    ),
    "who cannot follow gets tasks": (
        "every task has one owner",
        [(assignor.rebalance.leader.assign, "lacking_members", nobody_lacks)],
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
