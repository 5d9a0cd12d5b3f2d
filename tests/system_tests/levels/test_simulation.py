"""Groups whose levels change: no rule breaks; tests/planted/clusters.toml has faults."""

from functools import cache

import pytest

from assignor.embedding import ProcessDirectory
from assignor.stores.persisted import PROCESS_NAME
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA
from probing.persisted_formats import PersistedSettings
from system_tests.levels import (
    EventKind,
    LevelsOptions,
    LevelsWorld,
    levels_lines,
    run_levels,
)

SEEDS = range(25)
TRIED = range(150)
# Seeds with enough raised minimums and lowered levels for the checks below.
MOVED = range(40)


@cache
def whole_run(seed):
    """A run with the original rules, cached for several tests."""
    return run_levels(LevelsOptions(seed=seed))


@pytest.mark.kip("584-13", "sim")
@pytest.mark.kip("778-13", "sim")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_rule_is_broken(seed):
    outcome = whole_run(seed)
    assert outcome.ok, "\n".join(levels_lines(outcome))


@pytest.mark.kip("584-7", "sim")
def test_a_minimum_rises_once_every_member_has_it_and_no_operator_goes_below():
    """The leader raises it when it polls, from the ranges that all members reported."""
    raised, asked = 0, 0
    for seed in MOVED:
        outcome = whole_run(seed)
        assert outcome.ok, "\n".join(levels_lines(outcome))
        minimum = 0
        for event in outcome.trace:
            if event.what is EventKind.DEPRECATED:
                raised, minimum = raised + 1, event.minimum
            asked += minimum > 0 and event.what is EventKind.UPDATED
    assert raised > 3
    assert asked > 3


@pytest.mark.kip("778-16", "sim")
def test_after_the_level_was_lowered_the_group_goes_back_to_the_older_program():
    """From level 102, which the older release does not support; all tasks stay assigned."""
    lowered = 0
    for seed in MOVED:
        outcome = whole_run(seed)
        assert outcome.ok, "\n".join(levels_lines(outcome))
        levels = [0, 0]
        for event in outcome.trace:
            if event.what is EventKind.UPDATED:
                levels.append(event.levels.level_of(ASSIGNMENT_PROTOCOL))
            elif event.what is EventKind.ROLLBACK_STARTED:
                lowered += levels[-2] == 102 > levels[-1]
    assert lowered > 3


def test_the_runs_see_everything_that_can_happen():
    happened, written = set(), set()
    for seed in TRIED:
        events = whole_run(seed).trace
        happened |= {event.what for event in events}
        written |= {event.version for event in events if event.what is EventKind.WROTE}
        if happened >= set(EventKind) - {EventKind.REJOINED} and written >= {4, 9, 11, 101, 102}:
            break
    assert happened == set(EventKind) - {EventKind.REJOINED}
    assert written >= {4, 9, 11, 101, 102}
    assert any(LevelsWorld(seed, steps=1).holds_back for seed in SEEDS)


def test_the_same_seed_gives_the_same_lines():
    assert levels_lines(run_levels(LevelsOptions(seed=3))) == levels_lines(
        run_levels(LevelsOptions(seed=3))
    )


class Directories:
    """The state directories of the members, written as the adapters write them.

    A member starts with setting 1; members with even numbers are bounced to setting 2. A member
    writes the version that its leader finalized, as soon as it knows one.
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


def formats_taken(events, directories):
    """(own setting, format of the leader) of every follower; its format is the leader's."""
    taken, leader, followers = set(), "", {}
    for event in events:
        if event.what is EventKind.STARTED:
            directories.start(event.subject)
        elif event.what is EventKind.FOLLOWED:
            directories.follow(event.subject, event.levels)
            followers[event.subject] = event.levels
        elif leader in followers and followers[leader].level_of(PERSISTENT_METADATA):
            written = directories.format_of(leader)
            for name in followers:
                assert directories.format_of(name) == written, (event.step, leader, name)
                taken.add((directories.settings[name], written))
        if event.what is not EventKind.FOLLOWED:
            leader, followers = event.subject if event.what is EventKind.LED else "", {}
        if event.what in (EventKind.STOPPED, EventKind.REFUSED):
            directories.stop(event.subject)
    for name in sorted(directories.open):
        directories.stop(name)
    return taken


@pytest.mark.kip("384-6", "sim")
def test_during_a_roll_followers_write_the_leaders_format_whatever_their_setting(tmp_path):
    taken = set()
    for seed in SEEDS:
        events = whole_run(seed).trace
        taken |= formats_taken(events, Directories(tmp_path / str(seed)))
    assert taken == {(1, 1), (1, 2), (2, 1), (2, 2)}
