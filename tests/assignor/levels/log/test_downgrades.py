"""Feature logs across downgrades: of a level that loses nothing, and of the program."""

import msgpack
import pytest

from assignor.levels.log.directory import FeatureLog, LogFormat, format_log
from assignor.levels.log.records import (
    LogState,
    Note,
    decode_batch,
    encode_batch,
    level_change,
    replay,
    snapshot,
)
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA, TASK_PLACEMENT, LevelRange
from tests.assignor.stores.crashing_disk import MemoryDisk

NOTE = Note(at_ms=1_700_000_000_000, who="ada", why="try it")
RANGES = {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=101)}


def formatted():
    disk = MemoryDisk()
    format_log(disk, LogFormat(log_id="a1", levels={PERSISTENT_METADATA: 2}, at_ms=5))
    return disk


@pytest.mark.kip("778-17", "core")
def test_a_lossless_downgrade_leaves_all_else_as_it_was():
    disk = formatted()
    log = FeatureLog(disk)
    for member in ("m1", "m2"):
        log.register(member, RANGES)
    log.change({ASSIGNMENT_PROTOCOL: 101, TASK_PLACEMENT: 2}, NOTE)
    before, state = dict(disk.files), log.state
    committed = log.change({ASSIGNMENT_PROTOCOL: 11}, NOTE)
    assert committed.dropped == ()
    after = FeatureLog(disk).state
    assert after.ranges_by_member == state.ranges_by_member
    assert after.levels.levels == {**state.levels.levels, ASSIGNMENT_PROTOCOL: 11}
    assert after.levels.epoch == state.levels.epoch + 1
    # Files are unchanged, or removed with the snapshot before the last.
    kept = before.keys() & disk.files.keys()
    assert {name: disk.files[name] for name in kept if name.endswith(".snapshot")} == {
        name: before[name] for name in kept if name.endswith(".snapshot")
    }
    assert all(disk.files[name].startswith(before[name]) for name in kept)
    # Only one number is new, besides epoch and note.
    old, new = (
        msgpack.unpackb(encode_batch(snapshot(log_state), log_format=3))
        for log_state in (state, after)
    )
    changed = {name for name in old if old[name] != new[name]}
    assert changed == {"levels", "epoch"}


@pytest.mark.kip("778-17", "core")
@pytest.mark.parametrize("log_format", [1, 2, 3])
def test_what_a_later_program_added_as_optional_is_skipped_by_this_one(log_format):
    state = replay(LogState(), level_change(LogState(), {PERSISTENT_METADATA: 2}, NOTE))
    written = encode_batch(snapshot(state), log_format=log_format)
    later = {**msgpack.unpackb(written), "format": 7, "readable_since": log_format, "colour": [1]}
    data = msgpack.packb(later)
    assert decode_batch(data, name="it") == decode_batch(written, name="it")


@pytest.mark.kip("778-17", "core")
def test_a_log_that_a_later_program_wrote_is_opened_and_written_on_by_this_one(monkeypatch):
    """A later program adds a field to every batch; then this program starts again."""

    def with_a_new_field(batch, *, log_format):
        fields = msgpack.unpackb(encode_batch(batch, log_format=log_format))
        return msgpack.packb({**fields, "format": log_format + 1, "colour": "green"})

    disk = formatted()
    with monkeypatch.context() as later:
        later.setattr("assignor.levels.log.directory.encode_batch", with_a_new_field)
        log = FeatureLog(disk)
        log.register("m1", RANGES)
        log.change({ASSIGNMENT_PROTOCOL: 101}, NOTE)
    assert any(b"colour" in data for data in disk.files.values())
    again = FeatureLog(disk)
    assert again.state == log.state
    again.change({ASSIGNMENT_PROTOCOL: 11}, NOTE)
    assert FeatureLog(disk).state.ranges_by_member == {"m1": RANGES}
