"""Simulated clusters: the promises of KIP-584 and KIP-778 in traces of drawn experiments."""

import os
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from probing.features import METADATA_VERSION, find_kafka_release
from system_tests.cluster import SCENARIOS, KraftOptions, kraft_lines, run_kraft
from system_tests.cluster.events import (
    Acknowledged,
    Asked,
    Committed,
    Left,
    Loaded,
    Published,
    Regarded,
    Rested,
    Rewritten,
    SnapshotWritten,
    Spoke,
    Standing,
    Started,
    Stopped,
)
from system_tests.cluster.machines.content import KAFKA_CONTENT
from system_tests.cluster.machines.replica import MinimumRecord

SEEDS = range(8)
ROOT = Path(__file__).resolve().parents[3]


@cache
def experiment(scenario, seed, **fields):
    return run_kraft(KraftOptions(seed=seed, scenario=scenario, **fields))


def experiments(scenario):
    return [experiment(scenario, seed) for seed in SEEDS]


def upgrades():
    """Upgrades of one pair of releases: without one, a new release changes what a seed draws."""
    return [experiment("upgrade", seed, old="3.9", new="4.3") for seed in range(16)]


def found(outcome, what, **fields):
    return [
        event
        for event in outcome.trace
        if isinstance(event, what) and all(getattr(event, k) == v for k, v in fields.items())
    ]


def all_found(scenario, what, **fields):
    return [event for outcome in experiments(scenario) for event in found(outcome, what, **fields)]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenario_ends_at_rest_and_breaks_no_rule(scenario):
    for outcome in experiments(scenario):
        assert outcome.broken == ()
        assert isinstance(outcome.trace[-1], Rested)


@pytest.mark.kip("584-4", "sim")
def test_a_level_that_a_live_broker_lacks_is_refused_and_named():
    refused = all_found("upgrade", Asked, rule="a node cannot")
    assert refused
    assert all(event.error == "FEATURE_UPDATE_FAILED" for event in refused)
    assert any("broker b" in event.why and ".." in event.why for event in refused)
    for outcome in experiments("upgrade"):
        done = {event.request for event in found(outcome, Acknowledged)}
        assert not done & {event.request for event in found(outcome, Asked, rule="a node cannot")}


def rejections(outcome):
    return found(outcome, Regarded, standing=Standing.REJECTED)


@pytest.mark.kip("584-6", "sim")
def test_a_node_started_with_an_older_release_is_rejected_with_the_reason():
    outcomes = upgrades()
    rejected = [event for outcome in outcomes for event in rejections(outcome)]
    assert rejected
    assert all("start it with a release that does" in event.why for event in rejected)
    for outcome in outcomes:
        for reject in rejections(outcome):
            after = outcome.trace[outcome.trace.index(reject) :]
            until = next((n for n, event in enumerate(after) if _starts(event, reject.node)), None)
            let_in = [
                event
                for event in after[:until]
                if isinstance(event, Regarded)
                and event.standing in (Standing.REGISTERED, Standing.UNFENCED)
            ]
            assert reject.node not in {event.node for event in let_in}


def _starts(event, node):
    return isinstance(event, Started) and event.node == node


@pytest.mark.kip("584-7", "sim")
def test_a_minimum_rises_with_the_last_node_and_outlives_a_software_downgrade():
    outcome = next(
        outcome
        for outcome in (experiment("downgrade", n, old="3.9", new="4.0") for n in range(20))
        if found(outcome, Asked, rule="deprecated level")
    )
    assert outcome.ok
    rises = [
        event
        for event in found(outcome, Committed)
        if MinimumRecord(feature=METADATA_VERSION, level=7) in event.records
    ]
    assert len(rises) == 1
    newest = {}
    for event in outcome.trace[: outcome.trace.index(rises[0])]:
        if isinstance(event, Started):
            newest[event.node] = event.release
    assert set(newest.values()) == {"4.0"}
    refused = found(outcome, Asked, rule="deprecated level")[0]
    assert refused.at_ms > rises[0].at_ms
    assert {event.release for event in outcome.trace if _is_late_start(event, refused.at_ms)} == {
        "3.9"
    }


def _is_late_start(event, until_ms):
    return isinstance(event, Started) and until_ms - 5_000 < event.at_ms <= until_ms


@pytest.mark.kip("584-12", "sim")
def test_the_setting_decides_until_the_flag_does_and_can_go_back_in_an_emergency():
    for outcome in experiments("double-roll"):
        early = found(outcome, Asked)[0]
        assert early.rule == "not switched on yet"
        speaks = [event.level for event in found(outcome, Spoke)]
        assert speaks[0] == 4
        assert max(speaks) in (5, 6)
    back = [
        outcome
        for outcome in experiments("double-roll")
        if _last_start(outcome).release == "before"
    ]
    forth = [
        outcome for outcome in experiments("double-roll") if _last_start(outcome).release == "after"
    ]
    assert back
    assert forth
    assert all(found(outcome, Spoke)[-1].level == 4 for outcome in back)
    # Phase 4: the setting is gone, and the flag decides alone.
    assert all(_last_start(outcome).setting is None for outcome in forth)
    assert all(found(outcome, Spoke)[-1].level in (5, 6) for outcome in forth)
    # The levels stay finalized; programs that ignore them can join.
    assert all(found(outcome, Rested)[-1].finalized.levels for outcome in back)


def _last_start(outcome):
    return found(outcome, Started)[-1]


@pytest.mark.kip("778-4", "sim")
def test_an_unsafe_downgrade_drops_what_the_level_does_not_know_and_reports_it():
    unsafe = all_found("downgrade", Asked, kind="unsafe_downgrade", error="NONE")
    assert any(event.loses for event in unsafe)
    dropped = [event for event in all_found("downgrade", Rewritten) if event.dropped]
    assert dropped
    by_outcome = [
        {
            (event.finalized.epoch, event.dropped)
            for event in found(outcome, Rewritten)
            if event.dropped
        }
        for outcome in experiments("downgrade")
    ]
    # Whole entries and single fields are dropped: all that the level does not know.
    assert {lost.field is None for event in dropped for lost in event.dropped} == {True, False}
    for event in all_found("downgrade", Rewritten):
        level = event.finalized.level_of(METADATA_VERSION)
        for entry in event.entries:
            assert KAFKA_CONTENT.kind_of(entry).since <= level
            assert KAFKA_CONTENT.unknown_fields(entry, level) == ()
    # All nodes drop the same data at the same epoch.
    for drops in by_outcome:
        assert len({epoch for epoch, _ in drops}) == len(drops)


@pytest.mark.kip("778-5", "sim")
def test_every_change_is_a_snapshot_a_rewrite_and_then_a_publication_on_every_node():
    steps = (SnapshotWritten, Rewritten, Published, Loaded, Started)
    for outcome in experiments("upgrade"):
        for node in outcome.lanes:
            did = [
                event for event in outcome.trace if isinstance(event, steps) and event.node == node
            ]
            for before, now in pairwise(did):
                if isinstance(now, Rewritten):
                    assert isinstance(before, SnapshotWritten)
                if isinstance(now, Published):
                    assert isinstance(before, Rewritten | Loaded | Started)


@pytest.mark.kip("778-7", "sim")
def test_a_cluster_begins_at_its_format_or_at_level_1_without_one():
    for outcome in experiments("upgrade"):
        first = found(outcome, Rested)[0].finalized
        assert first.level_of(METADATA_VERSION) == outcome.plan.formatted
        assert first.epoch == 1
    for outcome in experiments("preview"):
        first = found(outcome, Rested)[0].finalized
        assert (first.level_of(METADATA_VERSION), first.epoch) == (1, 0)


@pytest.mark.kip("778-9", "sim")
def test_levels_are_raised_with_a_minority_offline_and_not_without_a_majority():
    for outcome in experiments("minority"):
        assert found(outcome, Rested)[-1].finalized.level_of(METADATA_VERSION) > 0
        for event in found(outcome, Asked, error="NONE"):
            assert len(event.voters) > outcome.plan.controllers // 2
    many = [experiment("minority", seed) for seed in (77, 94, 116)]
    refused = [
        event for outcome in many for event in found(outcome, Asked) if "majority" in event.rule
    ]
    assert refused
    assert all("controllers of the quorum" in event.why for event in refused)


@pytest.mark.kip("778-10", "sim")
def test_each_role_leaves_in_its_way_when_it_reads_a_level_that_it_lacks():
    left = {}
    for outcome in (*experiments("minority"), *upgrades()):
        for event in found(outcome, Left):
            at = outcome.trace.index(event)
            left.setdefault((event.node[0], event.reaction), []).append(outcome.trace[at + 1])
    assert ("c", "terminate") in left
    assert ("b", "unregister and terminate") in left
    assert all(
        isinstance(after, Stopped) and after.how == "ended"
        for (_, reaction), those in left.items()
        if reaction != "resign and terminate"
        for after in those
    )


@pytest.mark.kip("778-11", "sim")
def test_after_one_rolling_bounce_levels_are_raised_online_and_peers_speak_them():
    for outcome in experiments("upgrade"):
        high = find_kafka_release(outcome.plan.new).metadata[1]
        reached = [
            event
            for event in found(outcome, Rested)
            if event.finalized.level_of(METADATA_VERSION) == high
        ]
        assert reached
        upgraded = max(
            event.at_ms
            for event in found(outcome, Started)
            if event.release == outcome.plan.new and event.at_ms < reached[0].at_ms
        )
        raised = [
            event
            for event in found(outcome, Published)
            if event.at_ms > upgraded and event.finalized.level_of(METADATA_VERSION) == high
        ]
        assert {event.node for event in raised} <= set(outcome.lanes)
        spoken = {(event.node, event.peer) for event in found(outcome, Spoke, level=high)}
        nodes = {event.node for event in found(outcome, Started)}
        pairs = {(a, b) for a in nodes for b in nodes if a != b}
        assert spoken == pairs


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_the_same_seed_gives_the_same_bytes_in_another_process():
    script = (
        "from system_tests.cluster import *;"
        "print('\\n'.join(kraft_lines(run_kraft(KraftOptions(seed=5, scenario='upgrade')))))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": number},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for number in ("1", "2")
    ]
    assert printed[0] == printed[1] == "\n".join(kraft_lines(experiment("upgrade", 5))) + "\n"


@pytest.mark.parametrize("fault", ["crash", "active", "pause", "drop", "lag"])
def test_no_fault_breaks_a_rule(fault):
    for seed in range(2):
        options = KraftOptions(seed=seed, scenario="upgrade", faults=frozenset({fault}))
        assert run_kraft(options).broken == ()
