from dataclasses import replace

import pytest

from probing.features import (
    METADATA_VERSION,
    FinalizedLevels,
    LevelRecord,
    Role,
    find_kafka_release,
)
from system_tests.cluster.machines.content import KAFKA_CONTENT, Entry
from system_tests.cluster.machines.replica import (
    BatchRead,
    ContentRecord,
    LeaveCluster,
    MinimumRecord,
    PublishLevels,
    Renegotiate,
    ReplicaState,
    RewriteState,
    WriteSnapshot,
    check_levels,
    load_snapshot,
    replica_step,
)
from system_tests.cluster.machines.roles import Reaction

TOPIC = Entry(kind="topic", key="t", fields={"id": 1})
SCRAM = Entry(kind="scram_credential", key="alice", fields={"hash": 1})


def node(role=Role.BROKER, series="4.0", **fields):
    ranges = find_kafka_release(series).ranges
    return ReplicaState(role=role, ranges=ranges, schema=KAFKA_CONTENT, **fields)


def read(state, *batches):
    done = []
    for records in batches:
        event = BatchRead(offset=state.next_offset, records=records)
        state, commands = replica_step(state, event)
        done.append(commands)
    return state, done


def to(level):
    return (LevelRecord(feature=METADATA_VERSION, level=level),)


def holds(*entries):
    return tuple(ContentRecord(entry=entry) for entry in entries)


@pytest.mark.kip("778-5", "core")
def test_a_change_is_a_snapshot_of_before_a_rewrite_and_only_then_published():
    state, done = read(node(), to(20), holds(TOPIC, SCRAM), to(21))
    assert done[1] == ()
    before, rewritten, published, renegotiate = done[2]
    assert isinstance(before, WriteSnapshot)
    assert before.snapshot.end_offset == 2
    assert before.snapshot.finalized.level_of(METADATA_VERSION) == 20
    assert before.snapshot.entries == (SCRAM, TOPIC)
    assert isinstance(rewritten, RewriteState)
    assert rewritten.snapshot == state.snapshot
    assert rewritten.dropped == ()
    assert published == PublishLevels(finalized=state.finalized)
    assert renegotiate == Renegotiate(level_by_feature={METADATA_VERSION: 21})
    assert state.finalized == FinalizedLevels(levels={METADATA_VERSION: 21}, epoch=2)


@pytest.mark.kip("778-4", "core")
def test_a_lossy_downgrade_writes_a_snapshot_without_what_the_level_does_not_know():
    state, done = read(node(), to(21), holds(TOPIC, SCRAM), to(10))
    before, rewritten = done[2][:2]
    assert SCRAM in before.snapshot.entries
    assert [str(record) for record in rewritten.dropped] == ["scram_credential alice"]
    assert rewritten.snapshot.entries == (TOPIC,)
    assert state.snapshot.entries == (TOPIC,)


def test_the_state_from_a_snapshot_is_that_from_the_log():
    state, done = read(node(), to(21), holds(TOPIC, SCRAM), to(10), holds(TOPIC))
    for snapshot in (done[2][0].snapshot, done[2][1].snapshot):
        batches = (to(21), holds(TOPIC, SCRAM), to(10), holds(TOPIC))[snapshot.end_offset :]
        assert read(load_snapshot(node(), snapshot), *batches)[0] == state


def test_one_batch_is_one_step_of_the_epoch_and_content_is_none():
    two = (*to(24), LevelRecord(feature="transaction.version", level=2))
    state, _ = read(node(), two, holds(TOPIC), (LevelRecord(feature="group.version", level=1),))
    assert state.finalized.epoch == 2
    off = (LevelRecord(feature="transaction.version", level=0),)
    assert read(state, off)[0].finalized.levels == {"group.version": 1, METADATA_VERSION: 24}


def test_a_batch_that_was_read_before_changes_nothing():
    state, _ = read(node(), to(20), to(21))
    assert replica_step(state, BatchRead(offset=1, records=to(20))) == (state, ())


@pytest.mark.kip("584-6", "core")
@pytest.mark.parametrize(
    ("role", "is_active", "reaction"),
    [
        (Role.CONTROLLER, True, Reaction.RESIGN),
        (Role.CONTROLLER, False, Reaction.TERMINATE),
        (Role.BROKER, False, Reaction.UNREGISTER),
    ],
)
def test_who_reads_a_level_that_it_does_not_support_leaves_and_uses_nothing_of_it(
    role, is_active, reaction
):
    state, _ = read(node(role, "3.8", is_active=is_active), to(20))
    after, done = read(state, (*to(21), *holds(TOPIC)))
    (leave,) = done[0]
    assert isinstance(leave, LeaveCluster)
    assert leave.reaction is reaction
    assert "metadata.version to 21" in leave.why
    assert "supports 1..20" in leave.why
    assert after == replace(state, has_left=True)
    assert read(after, to(20)) == (after, [()])


def test_levels_found_at_start_are_checked_like_those_that_are_read():
    state = node(series="3.8")
    assert check_levels(state, {METADATA_VERSION: 20}) is None
    assert check_levels(state, {METADATA_VERSION: 20, "group.version": 1}).rule == "broker cannot"


@pytest.mark.kip("584-7", "core")
def test_a_deprecated_minimum_in_the_log_never_falls():
    batches = [(MinimumRecord(feature="a", level=level),) for level in (3, 7, 5)]
    assert read(node(), *batches)[0].minimums == {"a": 7}


@pytest.mark.kip("584-12", "core")
def test_before_the_migration_version_levels_are_read_and_neither_checked_nor_used():
    state, done = read(node(series="3.8", is_enabled=False), to(22))
    assert done == [()]
    assert state.finalized.level_of(METADATA_VERSION) == 22
    assert not state.has_left
