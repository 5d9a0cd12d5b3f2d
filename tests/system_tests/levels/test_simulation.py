"""Groups whose levels change: no rule breaks; tests/planted/clusters.toml has faults."""

from functools import cache
from itertools import pairwise

import pytest

from assignor.embedding import ProcessDirectory
from assignor.stores.persisted import PROCESS_NAME
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA
from probing.persisted_formats import PersistedSettings
from system_tests.levels import BACK, LevelOperator, LevelsOptions, levels_lines, run_levels
from system_tests.sim import (
    Adopted,
    Answered,
    Ended,
    Finalized,
    Happened,
    Looked,
    Settled,
    Started,
    Took,
    Wrote,
)

SEEDS = range(25)
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
    """The leader raises it when it looks, from the ranges that all members reported."""
    raised, updated = 0, 0
    for seed in MOVED:
        outcome = whole_run(seed)
        assert outcome.ok, "\n".join(levels_lines(outcome))
        minimum = 0
        for event in outcome.trace:
            if isinstance(event, Finalized):
                raised += event.minimum > minimum
                updated += event.minimum == minimum > 0
                minimum = event.minimum
    assert raised > 3
    assert updated > 3


@pytest.mark.kip("778-16", "sim")
def test_after_the_level_was_lowered_the_group_goes_back_to_the_older_program():
    """From level 102, which the older release does not support; all tasks stay assigned."""
    lowered = 0
    for seed in MOVED:
        outcome = whole_run(seed)
        assert outcome.ok, "\n".join(levels_lines(outcome))
        levels = [0, 0]
        for event in outcome.trace:
            if isinstance(event, Finalized):
                levels.append(event.levels.level_of(ASSIGNMENT_PROTOCOL))
            elif isinstance(event, Happened) and event.text.endswith(BACK):
                lowered += max(levels) == 102 > levels[-1]
    assert lowered > 3


def test_the_runs_see_everything_that_can_happen():
    happened, written, refused = set(), set(), set()
    for seed in MOVED:
        trace = whole_run(seed).trace
        happened |= {type(event) for event in trace}
        happened |= {"asks" for event in trace if isinstance(event, Looked) and event.asks}
        written |= {event.used_version for event in trace if isinstance(event, Wrote)}
        refused |= {
            isinstance(before, Took)
            for before, event in pairwise(trace)
            if isinstance(event, Ended) and event.failed
        }
    assert happened >= {Adopted, Answered, Finalized, Looked, Settled, Started, Took, "asks"}
    assert written >= {4, 9, 11, 101, 102}
    assert refused == {True, False}, "some are refused when they join, some by an answer"
    assert {LevelOperator(seed).holds_back for seed in SEEDS} == {True, False}


def test_the_same_seed_gives_the_same_lines():
    assert levels_lines(run_levels(LevelsOptions(seed=3))) == levels_lines(
        run_levels(LevelsOptions(seed=3))
    )


class Directories:
    """The state directories of the members, written as the adapters write them.

    A member starts with setting 1; every second member is bounced to setting 2. A member
    writes the version that its leader finalized, as soon as it knows one.
    """

    def __init__(self, path):
        self.path = path
        self.open = {}
        self.settings = {}

    def start(self, name):
        is_raised = (self.path / name).exists() and name in "bd"
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


def formats_taken(trace, directories):
    """(own setting, format of the leader) of every follower; its format is the leader's."""
    taken, leader, used, followers = set(), "", {}, set()
    for event in trace:
        match event:
            case Started():
                directories.start(event.thread)
                used.pop(event.thread, None)
            case Adopted():
                used[event.thread] = event.levels
            case Answered():
                leader, followers = event.thread, set()
            case Took() if not event.failure and event.thread in used:
                directories.follow(event.thread, used[event.thread])
                followers.add(event.thread)
            case Settled() if used.get(leader) and used[leader].level_of(PERSISTENT_METADATA):
                written = directories.format_of(leader)
                for name in followers:
                    assert directories.format_of(name) == written, (event.at_ms, leader, name)
                    taken.add((directories.settings[name], written))
            case Ended():
                directories.stop(event.thread)
                followers.discard(event.thread)
    for name in sorted(directories.open):
        directories.stop(name)
    return taken


@pytest.mark.kip("384-6", "sim")
def test_during_a_roll_followers_write_the_leaders_format_whatever_their_setting(tmp_path):
    taken = set()
    for seed in SEEDS:
        taken |= formats_taken(whole_run(seed).trace, Directories(tmp_path / str(seed)))
    assert taken == {(1, 1), (1, 2), (2, 1), (2, 2)}
