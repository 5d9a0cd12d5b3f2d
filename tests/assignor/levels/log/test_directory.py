"""The feature log: levels, members, snapshots around changes, formats, broken files."""

import msgpack
import pytest

from assignor.levels.log.directory import (
    FeatureLog,
    LogFormat,
    format_log,
    look_at_log,
    opened_log,
    read_format,
)
from assignor.levels.log.records import (
    LogState,
    Note,
    decode_batch,
    encode_batch,
    level_change,
    replay,
    snapshot,
)
from assignor.stores import StoreError
from assignor.stores.disk import FolderDisk
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA, TASK_PLACEMENT, LevelRange
from tests.assignor.stores.crashing_disk import MemoryDisk
from tests.versions import LATER

FORMAT = LogFormat(log_id="a1", levels={PERSISTENT_METADATA: 1}, at_ms=5)
NOTE = Note(at_ms=1_700_000_000_000, who="ada", why="try it")
RANGES = {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=101)}


def formatted(levels=None):
    disk = MemoryDisk()
    format_log(disk, LogFormat(log_id="a1", levels=levels or FORMAT.levels, at_ms=5))
    return disk


def kinds(disk):
    return [(kind, name.rsplit(".", 1)[-1]) for kind, name, _ in disk.steps]


# Content


def test_the_error_for_a_folder_without_a_log_names_the_command_to_make_one():
    with pytest.raises(StoreError, match="assignor storage format"):
        FeatureLog(MemoryDisk())


@pytest.mark.kip("584-2", "core")
def test_levels_and_epoch_outlive_the_process():
    disk = formatted()
    log = FeatureLog(disk)
    log.change({ASSIGNMENT_PROTOCOL: 11, TASK_PLACEMENT: 2}, NOTE)
    log.change({TASK_PLACEMENT: 0}, NOTE)
    again = FeatureLog(disk)
    assert again.state.levels.levels == {ASSIGNMENT_PROTOCOL: 11, PERSISTENT_METADATA: 1}
    assert again.state.levels.epoch == 2
    assert again.state.note == NOTE


def test_an_unknown_level_is_refused_and_nothing_is_written():
    disk = formatted()
    before = dict(disk.files)
    with pytest.raises(StoreError, match=f"has no level '{LATER}'"):
        FeatureLog(disk).change({ASSIGNMENT_PROTOCOL: LATER}, NOTE)
    with pytest.raises(StoreError, match="no feature 'nonsense'"):
        FeatureLog(disk).change({"nonsense": 1}, NOTE)
    assert disk.files == before


@pytest.mark.kip("778-7", "core")
def test_without_a_record_the_level_of_the_format_holds_or_1():
    assert FeatureLog(formatted({PERSISTENT_METADATA: 2})).state.persistent_version == 2
    preview = MemoryDisk()
    format_log(preview, LogFormat(log_id="a1", levels={}, at_ms=5))
    assert FeatureLog(preview).state.persistent_version == 1


@pytest.mark.kip("778-8", "core")
def test_a_formatted_folder_is_not_formatted_again_unless_that_is_to_be_ignored():
    disk = formatted({PERSISTENT_METADATA: 2})
    before = dict(disk.files)
    wanted = LogFormat(log_id="b2", levels={PERSISTENT_METADATA: 1}, at_ms=6)
    with pytest.raises(StoreError, match="a1 already exists; add --ignore-formatted"):
        format_log(disk, wanted)
    assert format_log(disk, wanted, ignore_formatted=True) is False
    assert disk.files == before
    assert read_format(disk).levels == {PERSISTENT_METADATA: 2}


# Level changes


@pytest.mark.kip("778-5", "core")
def test_a_level_change_stands_between_a_snapshot_before_and_the_state_at_the_new_level():
    disk = formatted()
    log = FeatureLog(disk)
    disk.steps.clear()
    log.change({PERSISTENT_METADATA: 2}, NOTE)
    assert kinds(disk) == [("replace", "snapshot"), ("append", "records"), ("replace", "snapshot")]
    before, _, after = (data for _, _, data in disk.steps)
    old = decode_batch(before[16:-16], name="old")
    new = decode_batch(after[16:-16], name="new")
    assert (old.is_snapshot, old.epoch, old.levels) == (True, 0, {PERSISTENT_METADATA: 1})
    assert (new.is_snapshot, new.epoch, new.levels) == (True, 1, {PERSISTENT_METADATA: 2})
    assert b"members" not in before
    assert b"members" in after
    assert log.state.levels.level_of(PERSISTENT_METADATA) == 2


def test_a_level_is_published_only_when_its_record_is_on_the_disk():
    disk = formatted()
    log = FeatureLog(disk)

    def refuse(name, data):
        raise StoreError("the disk is full")

    disk.append = refuse
    with pytest.raises(StoreError, match="full"):
        log.change({PERSISTENT_METADATA: 2}, NOTE)
    assert log.state.levels.level_of(PERSISTENT_METADATA) == 1
    del disk.append
    with pytest.raises(StoreError, match="open the log again"):
        log.change({PERSISTENT_METADATA: 2}, NOTE)


def test_a_change_is_kept_when_only_the_snapshot_after_it_fails():
    disk = formatted()
    log = FeatureLog(disk)
    replaces = []

    def refuse_the_second(name, data):
        replaces.append(name)
        if len(replaces) == 2:
            raise StoreError("the disk is full")
        MemoryDisk.replace(disk, name, data)

    disk.replace = refuse_the_second
    assert log.change({TASK_PLACEMENT: 2}, NOTE).state.levels.level_of(TASK_PLACEMENT) == 2
    assert log.warnings == ("the change is saved, but without a snapshot: the disk is full",)
    log.change({TASK_PLACEMENT: 1}, NOTE)
    again = FeatureLog(MemoryDisk(disk.files))
    assert again.state == log.state
    assert again.state.levels.epoch == 2


@pytest.mark.kip("778-4", "core")
def test_a_downgrade_drops_records_that_the_lower_level_does_not_know_and_reports_them():
    disk = formatted({PERSISTENT_METADATA: 2})
    log = FeatureLog(disk)
    log.register("m1", RANGES)
    log.register("m2", RANGES)
    committed = log.change({PERSISTENT_METADATA: 1}, NOTE)
    assert committed.dropped == (
        (
            "the supported levels of 2 members (m1, m2): format 2 of the feature log does not "
            "contain members"
        ),
    )
    assert committed.state.ranges_by_member == {}
    again = FeatureLog(disk)
    assert again.state.ranges_by_member == {}
    newest = disk.files[max(name for name in disk.files if name.endswith(".snapshot"))]
    assert b"members" not in newest
    # For a manual rollback: the former snapshot stays until the next change.
    kept = min(name for name in disk.files if name.endswith(".snapshot"))
    assert b"m1" in disk.files[kept]


def test_a_change_that_loses_nothing_reports_nothing():
    log = FeatureLog(formatted({PERSISTENT_METADATA: 2}))
    assert log.change({PERSISTENT_METADATA: 1}, NOTE).dropped == ()
    assert log.change({TASK_PLACEMENT: 2}, NOTE).dropped == ()


def test_members_register_only_where_the_level_knows_them_and_only_what_is_new():
    disk = formatted()
    log = FeatureLog(disk)
    assert log.register("m1", RANGES).ranges_by_member == {}
    log.change({PERSISTENT_METADATA: 2}, NOTE)
    disk.steps.clear()
    assert log.register("m1", RANGES).ranges_by_member == {"m1": RANGES}
    log.register("m1", RANGES)
    assert kinds(disk) == [("append", "records")]
    log.register("m1", None)
    assert FeatureLog(disk).state.ranges_by_member == {}


def test_only_two_snapshots_and_what_follows_them_are_kept():
    disk = formatted({PERSISTENT_METADATA: 2})
    log = FeatureLog(disk)
    for number in range(20):
        log.register(f"m{number % 3}", {TASK_PLACEMENT: LevelRange(min=1, max=1 + number)})
        log.change({TASK_PLACEMENT: 1 + number % 2}, NOTE)
    assert sum(name.endswith(".snapshot") for name in disk.files) == 2
    assert sum(name.endswith(".records") for name in disk.files) == 1
    assert FeatureLog(disk).state == log.state


def test_a_long_row_of_registrations_is_cut_by_a_snapshot(monkeypatch):
    monkeypatch.setattr("assignor.levels.log.directory.SEGMENT_LIMIT", 1_000)
    disk = formatted({PERSISTENT_METADATA: 2})
    log = FeatureLog(disk)
    for number in range(60):
        log.register("m", {TASK_PLACEMENT: LevelRange(min=1, max=1 + number)})
    assert sum(len(data) for data in disk.files.values()) < 4_000
    assert FeatureLog(disk).state == log.state


# Formats


@pytest.mark.kip("778-6", "core")
@pytest.mark.parametrize("log_format", [1, 2, 3])
@pytest.mark.parametrize("is_snapshot", [False, True])
def test_the_bytes_of_a_record_hold_one_level_of_a_feature_and_no_minimum(log_format, is_snapshot):
    batch = level_change(LogState(), {TASK_PLACEMENT: 2, PERSISTENT_METADATA: 1}, NOTE)
    written = snapshot(replay(LogState(), batch)) if is_snapshot else batch
    fields = msgpack.unpackb(encode_batch(written, log_format=log_format))
    assert fields.pop("levels") == [[PERSISTENT_METADATA, 1], [TASK_PLACEMENT, 2]]
    later = {"note"} if log_format > 1 else set()
    later |= {"members"} if log_format > 2 else set()
    assert fields.keys() == {"format", "readable_since", "epoch", "snapshot"} | later
    assert fields.get("members", []) == []


@pytest.mark.parametrize("log_format", [1, 2, 3])
def test_every_known_format_is_read(log_format):
    state = LogState()
    batch = level_change(state, {TASK_PLACEMENT: 2}, NOTE)
    found = decode_batch(encode_batch(batch, log_format=log_format), name="it")
    assert found.levels == {TASK_PLACEMENT: 2}
    assert found.note == (NOTE if log_format > 1 else Note())


def test_a_format_from_the_future_is_refused_with_both_numbers():
    data = msgpack.packb({"format": 9, "readable_since": 9})
    with pytest.raises(StoreError, match="has format 9; this release reads formats up to 3"):
        decode_batch(data, name="it")
    skipping = encode_batch(snapshot(LogState()), log_format=3)
    later = msgpack.packb({**msgpack.unpackb(skipping), "format": 4, "colour": "green"})
    assert decode_batch(later, name="it").is_snapshot


@pytest.mark.parametrize("junk", [b"", b"\x00", b"\xc1", b"\x81\xa5epoch\x05", bytes(40)])
def test_a_batch_of_random_bytes_is_refused(junk):
    with pytest.raises(StoreError, match="invalid content"):
        decode_batch(junk, name="it")


# Damage that no power cut causes


def test_a_broken_record_before_whole_ones_is_refused():
    disk = formatted({PERSISTENT_METADATA: 2})
    log = FeatureLog(disk)
    for number in range(3):
        log.register(f"m{number}", RANGES)
    [name] = [name for name in disk.files if name.endswith(".records")]
    data = bytearray(disk.files[name])
    data[20] ^= 1
    disk.files[name] = bytes(data)
    with pytest.raises(StoreError, match=r"complete records follow.*not the effect of a power cut"):
        FeatureLog(disk)


def test_a_broken_snapshot_is_made_again_from_the_one_before_it():
    disk = formatted({PERSISTENT_METADATA: 2})
    log = FeatureLog(disk)
    log.register("m1", RANGES)
    log.change({TASK_PLACEMENT: 2}, NOTE)
    newest = max(name for name in disk.files if name.endswith(".snapshot"))
    disk.files[newest] = disk.files[newest][:-1] + b"x"
    again = FeatureLog(disk)
    assert again.state == log.state
    assert "checksum" in again.warnings[0]
    assert FeatureLog(disk).warnings == ()


def test_a_log_whose_snapshots_are_all_broken_is_refused_and_never_begins_anew():
    disk = formatted({PERSISTENT_METADATA: 2})
    log = FeatureLog(disk)
    for level in (2, 1, 2):
        log.change({TASK_PLACEMENT: level}, NOTE)
    for name in disk.files:
        if name.endswith(".snapshot"):
            disk.files[name] = b"SRBfsna1 and so on"
    with pytest.raises(StoreError, match=r"lacks records"):
        FeatureLog(disk)


# A real disk


def test_one_process_writes_at_a_time(tmp_path):
    format_log(FolderDisk(tmp_path), FORMAT)
    with (
        opened_log(tmp_path),
        pytest.raises(StoreError, match="another process is writing"),
        opened_log(tmp_path),
    ):
        pass
    with opened_log(tmp_path) as log:
        log.change({TASK_PLACEMENT: 2}, NOTE)
    assert FeatureLog(FolderDisk(tmp_path), is_reader=True).state.levels.epoch == 1


def test_a_disk_that_refuses_is_reported_in_one_sentence(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder", encoding="utf-8")
    for work in (
        lambda disk: disk.replace("a", b""),
        lambda disk: disk.append("a", b""),
        lambda disk: disk.names(),
        lambda disk: disk.remove("a"),
        lambda disk: disk.read("a", 9),
    ):
        with pytest.raises(StoreError, match="cannot be"):
            work(FolderDisk(blocked))


def test_a_reader_looks_again_where_a_writer_removed_what_it_was_reading(tmp_path):
    disk = formatted()
    writer = FeatureLog(disk)
    reader = MemoryDisk(disk.files)
    reads = []

    def read(name, limit):
        reads.append(name)
        if len(reads) == 2:
            for level in (1, 2, 1):
                writer.change({TASK_PLACEMENT: level}, NOTE)
        return MemoryDisk.read(reader, name, limit)

    writer.change({TASK_PLACEMENT: 2}, NOTE)
    reader.read = read
    assert look_at_log(reader).state == writer.state
    assert len(reads) > 3
