"""Deprecated levels of a group: minimums rise with its members, and never fall (KIP-584)."""

from dataclasses import replace

import msgpack
import pytest

from assignor.levels.log import Note, TopicRecord, change_record, opened_log, read_topic
from assignor.levels.log.directory import FeatureLog, LogFormat, format_log, look_at_log
from assignor.levels.log.records import LogState, encode_batch, level_change, replay, snapshot
from assignor.levels.watcher import FolderLevels
from assignor.stores import FolderDisk
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    PERSISTENT_METADATA,
    TASK_PLACEMENT,
    LevelRange,
    NodeSupport,
    Role,
    raised_minimums,
)
from tests.assignor.stores.crashing_disk import MemoryDisk

NOTE = Note(at_ms=1, who="ada", why="try it")


def supports(name, first, last=101):
    ranges = {ASSIGNMENT_PROTOCOL: LevelRange(min=first, max=last)}
    return NodeSupport(node_id=name, role=Role.MEMBER, ranges=ranges)


def finalized(level):
    return replay(LogState(), level_change(LogState(), {ASSIGNMENT_PROTOCOL: level}, NOTE)).levels


@pytest.mark.kip("584-7", "core")
@pytest.mark.parametrize(
    ("firsts", "before", "expected"),
    [
        ((1, 9, 11), 0, {}),
        ((9, 11), 0, {ASSIGNMENT_PROTOCOL: 9}),
        ((9, 11), 9, {}),
        ((9, 11), 11, {}),
        ((11, 11), 9, {ASSIGNMENT_PROTOCOL: 11}),
        ((101, 101), 9, {}),
        ((), 0, {}),
    ],
    ids=str,
)
def test_a_minimum_is_the_lowest_that_all_support_and_not_above_the_level(firsts, before, expected):
    nodes = [supports(f"m{number}", first) for number, first in enumerate(firsts)]
    minimums = {ASSIGNMENT_PROTOCOL: before} if before else {}
    assert raised_minimums(finalized(11), minimums, nodes) == expected
    silent = NodeSupport(node_id="x", role=Role.MEMBER, ranges={})
    assert raised_minimums(finalized(11), minimums, [*nodes, silent]) == {}


@pytest.mark.kip("584-7", "core")
@pytest.mark.parametrize("persistent", [1, 2])
def test_a_minimum_in_a_folder_rises_with_the_next_epoch_and_outlives_all_changes(persistent):
    disk = MemoryDisk()
    format_log(disk, LogFormat(log_id="a", levels={PERSISTENT_METADATA: persistent}, at_ms=1))
    log = FeatureLog(disk)
    log.change({ASSIGNMENT_PROTOCOL: 101}, NOTE)
    state = log.change({}, NOTE, minimums={ASSIGNMENT_PROTOCOL: 11}).state
    assert (state.levels.epoch, state.levels.level_of(ASSIGNMENT_PROTOCOL)) == (2, 101)
    for change, minimums in (
        ({TASK_PLACEMENT: 2}, {}),
        ({PERSISTENT_METADATA: 2}, {}),
        ({}, {ASSIGNMENT_PROTOCOL: 9}),
        ({PERSISTENT_METADATA: 1}, {}),
    ):
        log.change(change, NOTE, minimums=minimums)
        assert FeatureLog(disk).state.minimums == {ASSIGNMENT_PROTOCOL: 11}
    assert log.change({}, NOTE, minimums={ASSIGNMENT_PROTOCOL: 101}).state.minimums == {
        ASSIGNMENT_PROTOCOL: 101
    }


@pytest.mark.kip("584-7", "core")
def test_a_minimum_in_a_topic_is_in_every_record_from_then_on():
    records = []

    def change(levels, **minimums):
        found = change_record(
            read_topic(records), levels, NOTE, nonce=str(len(records)), members={}, **minimums
        )
        records.append(TopicRecord(offset=len(records), key=found.key, value=found.value))
        return read_topic(records).state

    assert change({ASSIGNMENT_PROTOCOL: 101}).minimums == {}
    raised = change({}, minimums={ASSIGNMENT_PROTOCOL: 11})
    assert (raised.levels.epoch, raised.minimums) == (2, {ASSIGNMENT_PROTOCOL: 11})
    later = change({ASSIGNMENT_PROTOCOL: 11})
    assert (later.levels.epoch, later.minimums) == (3, {ASSIGNMENT_PROTOCOL: 11})
    assert change({}, minimums={ASSIGNMENT_PROTOCOL: 4}).minimums == {ASSIGNMENT_PROTOCOL: 11}


@pytest.mark.kip("584-7", "core")
def test_logs_without_minimums_are_read_and_written_as_before():
    state = replay(LogState(), level_change(LogState(), {TASK_PLACEMENT: 2}, NOTE))
    for log_format in (1, 2, 3):
        fields = msgpack.unpackb(encode_batch(snapshot(state), log_format=log_format))
        assert "minimums" not in fields
    assert state.minimums == {}


@pytest.mark.kip("584-7", "core")
def test_a_leader_of_members_that_share_a_disk_raises_the_minimum_once(tmp_path):
    format_log(FolderDisk(tmp_path), LogFormat(log_id="a", levels={}, at_ms=1))
    source = FolderLevels(tmp_path)
    with opened_log(tmp_path) as log:
        log.change({ASSIGNMENT_PROTOCOL: 101}, NOTE)
    source.raise_minimums([supports("m1", 1), supports("m2", 11)])
    assert source().epoch == 1
    for _ in range(2):
        source.raise_minimums([supports("m1", 9), supports("m2", 11)])
        assert source().epoch == 2
    state = look_at_log(FolderDisk(tmp_path)).state
    assert state.minimums == {ASSIGNMENT_PROTOCOL: 9}
    assert state.note.why == "every member supports assignment.protocol from 9 on only"


@pytest.mark.parametrize("minimum", [10**12, 2**63 - 1, 0, -1])
def test_a_minimum_that_is_no_level_counts_for_nothing(minimum):
    before = replay(LogState(), level_change(LogState(), {ASSIGNMENT_PROTOCOL: 11}, NOTE))
    batch = level_change(before, {}, NOTE, minimums={ASSIGNMENT_PROTOCOL: minimum})
    assert replay(before, batch).minimums == {}


def test_a_minimum_in_a_topic_outlives_a_record_of_a_program_that_does_not_know_it():
    records = []

    def write(levels, **minimums):
        found = change_record(
            read_topic(records), levels, NOTE, nonce=str(len(records)), members={}, **minimums
        )
        records.append(TopicRecord(offset=len(records), key=found.key, value=found.value))

    write({ASSIGNMENT_PROTOCOL: 101})
    write({}, minimums={ASSIGNMENT_PROTOCOL: 11})
    whole = read_topic(records)
    assert whole.state.minimums == {ASSIGNMENT_PROTOCOL: 11}
    blind = replace(whole, state=replace(whole.state, minimums={}))
    found = change_record(blind, {ASSIGNMENT_PROTOCOL: 101}, NOTE, nonce="old", members={})
    records.append(TopicRecord(offset=len(records), key=found.key, value=found.value))
    after = read_topic(records)
    assert after.head == len(records) - 1
    assert after.state.minimums == {ASSIGNMENT_PROTOCOL: 11}
