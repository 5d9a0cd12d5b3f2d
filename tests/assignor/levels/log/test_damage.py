"""Damage in a feature log: remains of a power cut are dropped, all else is an error."""

import re

import pytest

from assignor.levels.log import FeatureLog, LogFormat, Note, format_log, look_at_log, opened_log
from assignor.stores import FolderDisk, StoreError
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA, TASK_PLACEMENT, LevelRange
from tests.assignor.stores.crashing_disk import MemoryDisk

FORMAT = LogFormat(log_id="a1", levels={PERSISTENT_METADATA: 2}, at_ms=5)
RANGES = {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=101)}
RECORDS = f"{0:020}.records"


@pytest.fixture
def disk():
    """A log with three registrations that were acknowledged."""
    disk = MemoryDisk()
    format_log(disk, FORMAT)
    log = FeatureLog(disk)
    for number in range(3):
        log.register(f"m{number}", RANGES)
    return disk


def last_frame(disk):
    """Return the offset of the last frame."""
    *_, (_, _, frame) = (step for step in disk.steps if step[0] == "append")
    return len(disk.files[RECORDS]) - len(frame)


def opened(disk, data):
    """Open the log with these records; files must not change if it fails."""
    damaged = MemoryDisk({**disk.files, RECORDS: bytes(data)})
    before = dict(damaged.files)
    try:
        return FeatureLog(damaged)
    except StoreError:
        assert damaged.files == before
        raise


def test_every_changed_bit_of_the_last_frame_is_an_error_or_changes_nothing(disk):
    whole, start = disk.files[RECORDS], last_frame(disk)
    state = FeatureLog(disk).state
    errors = []
    for at in range(start, len(whole)):
        for change in (*(1 << bit for bit in range(8)), 255, whole[at]):
            if not change:
                continue
            data = bytearray(whole)
            data[at] ^= change
            try:
                assert opened(disk, data).state == state, (at - start, change)
            except StoreError as error:
                errors.append(str(error))
    assert len(errors) > 8 * (len(whole) - start)
    expected = re.compile(rf"record 2 in {RECORDS}.* at byte {start}.*truncate")
    assert all(expected.search(error) for error in errors)


def test_a_frame_that_is_cut_short_is_dropped_and_the_log_goes_on(disk):
    whole, start = disk.files[RECORDS], last_frame(disk)
    for end in range(start, len(whole)):
        log = opened(disk, whole[:end])
        assert sorted(log.state.ranges_by_member) == ["m0", "m1"]
        assert log.register("m3", RANGES).ranges_by_member.keys() == {"m0", "m1", "m3"}


@pytest.mark.parametrize("zeros", [1, 3, 11, 12, 20, 511, 4096])
def test_zeros_that_a_file_system_left_are_dropped(disk, zeros):
    log = opened(disk, disk.files[RECORDS] + bytes(zeros))
    assert sorted(log.state.ranges_by_member) == ["m0", "m1", "m2"]
    assert f"{zeros} bytes" in log.warnings[0]


@pytest.mark.parametrize("length", [0, 1, 0xFFFF, 0xFFFFF, 1 << 20, (1 << 20) + 1, 0xFFFFFFFF])
def test_a_length_that_is_damaged_is_an_error_not_a_frame_cut_short(disk, length):
    data, start = bytearray(disk.files[RECORDS]), last_frame(disk)
    data[start : start + 4] = length.to_bytes(4, "big")
    with pytest.raises(StoreError, match=rf"at byte {start}.*truncate"):
        opened(disk, data)


@pytest.mark.parametrize(
    "junk", [b"junk!", b"\xff" * 12, b"\xff" * 100, b"\0\0\0\x05" + b"\xaa" * 9]
)
def test_bytes_behind_the_last_frame_that_no_writer_began_are_an_error(disk, junk):
    with pytest.raises(StoreError, match=rf"at byte {len(disk.files[RECORDS])}"):
        opened(disk, disk.files[RECORDS] + junk)


def test_the_error_names_the_file_and_what_to_do_and_that_works(tmp_path):
    format_log(FolderDisk(tmp_path), FORMAT)
    with opened_log(tmp_path) as log:
        for number in range(3):
            log.register(f"m{number}", RANGES)
    path = tmp_path / RECORDS
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + b"\xff" + whole[-8:])
    for open_log in (
        lambda: look_at_log(FolderDisk(tmp_path)),
        lambda: opened_log(tmp_path).__enter__(),
    ):
        with pytest.raises(StoreError) as caught:
            open_log()
        size, file = re.search(r"`truncate -s (\d+) (\S+)`", str(caught.value)).groups()
        assert file == str(path)
    assert path.read_bytes() == whole[:-9] + b"\xff" + whole[-8:]
    path.write_bytes(path.read_bytes()[: int(size)])
    with opened_log(tmp_path) as log:
        assert sorted(log.state.ranges_by_member) == ["m0", "m1"]


STRAY = (
    "²³.snapshot",
    "٣.snapshot",
    "7.records",
    "x.snapshot",
    "00000000000000000007.snapshot.bak",
)


@pytest.mark.parametrize("name", [*STRAY, f"{2**63}".zfill(20) + ".snapshot"])
def test_files_that_are_none_of_the_log_are_left_alone(disk, name):
    disk.files[name] = b"another file"
    log = FeatureLog(disk)
    log.change({TASK_PLACEMENT: 1}, Note())
    log.change({TASK_PLACEMENT: 2}, Note())
    assert FeatureLog(disk).state == log.state
    assert disk.files[name] == b"another file"


def test_a_link_to_nothing_in_place_of_records_is_an_error(tmp_path):
    format_log(FolderDisk(tmp_path), FORMAT)
    with opened_log(tmp_path) as log:
        log.register("m0", RANGES)
    (tmp_path / RECORDS).unlink()
    (tmp_path / RECORDS).symlink_to(tmp_path / "unmounted")
    with pytest.raises(StoreError, match="symbolic link"):
        FeatureLog(FolderDisk(tmp_path))
    assert not (tmp_path / "unmounted").exists()
