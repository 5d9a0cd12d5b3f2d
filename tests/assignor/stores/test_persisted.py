"""State directories: all formats are read, the configured one is written, no downgrade."""

import json
from dataclasses import replace
from uuid import UUID

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignor.levels.log import FeatureLog, LogFormat, Note, format_log
from assignor.placement.builtin import sticky
from assignor.stores import (
    Checkpoint,
    PlanStore,
    ProcessRecord,
    StateStores,
    StoreError,
    plan_for,
    seal,
    unseal,
)
from assignor.stores.checkpoints import checkpoint_bytes, read_checkpoint
from assignor.stores.persisted import PROCESS_NAME
from assignor.stores.process_file import process_bytes, read_process
from encoding import (
    Subscription,
    TaskId,
    TopicPartition,
    encode_subscription,
)
from probing.features import PERSISTENT_METADATA, TASK_PLACEMENT
from probing.persisted_formats import PersistedSettings
from tests.assignor.problems.small_groups import state
from tests.assignor.stores.crashing_disk import MemoryDisk

ID = UUID("00000000-0000-0000-0000-00000000002a")
NOW_MS = 1_700_000_000_000
RECORD = ProcessRecord(process_id=ID, made_at_ms=5, remembered_version=11)
CHECKPOINT = Checkpoint(
    offsets={TopicPartition("b-changelog", 1): 7, TopicPartition("a-changelog", 1): 35},
    end_offset_sum=50,
)
TASK = TaskId(0, 1)


def stores(directory, version=None, *, message=1, wire=False):
    settings = PersistedSettings(
        message_format_version=message, persistent_metadata_version=version
    )
    return StateStores(directory, settings, now_ms=NOW_MS, is_wire_raised=wire)


def written_on_the_wire(used):
    value = Subscription(version=used, latest_supported_version=used, process_id=ID)
    return encode_subscription(value)


def write_all(place):
    place.write_process(RECORD)
    place.write_checkpoint(TASK, CHECKPOINT)


# Formats


def test_format_1_of_a_process_is_what_kafka_streams_writes():
    assert json.loads(process_bytes(RECORD, 1)) == {"processId": str(ID)}


def test_format_1_of_a_checkpoint_is_what_kafka_streams_writes():
    assert checkpoint_bytes(CHECKPOINT, 1) == b"0\n2\na-changelog 1 35\nb-changelog 1 7\n"
    assert checkpoint_bytes(Checkpoint(), 1) == b"0\n0\n"


@pytest.mark.kip("384-4", "core")
def test_a_compatible_change_is_written_at_once_and_skipped_by_who_does_not_know_it(tmp_path):
    stores(tmp_path, 1).write_process(RECORD)
    written = json.loads((tmp_path / PROCESS_NAME).read_bytes())
    assert written == {"processId": str(ID), "madeAtMs": 5, "rememberedVersion": 11}
    later = json.dumps({**written, "colour": "green"}).encode()
    assert read_process(later, name="it") == RECORD


@pytest.mark.parametrize("file_format", [1, 2, 3])
def test_every_format_of_a_process_is_read(file_format):
    found = read_process(process_bytes(RECORD, file_format), name="it")
    assert found == (RECORD if file_format > 1 else ProcessRecord(process_id=ID))


@given(
    st.dictionaries(
        st.builds(TopicPartition, st.text("abc.-", min_size=1), st.integers(0, 9)),
        st.integers(-4, 2**62),
    ),
    st.none() | st.integers(0, 2**62),
)
def test_every_format_of_a_checkpoint_is_read(offsets, end):
    checkpoint = Checkpoint(offsets=offsets, end_offset_sum=end)
    assert read_checkpoint(checkpoint_bytes(checkpoint, 2), name="it") == checkpoint
    text = read_checkpoint(checkpoint_bytes(checkpoint, 1), name="it")
    assert text == replace(checkpoint, end_offset_sum=None)


def test_a_checkpoint_has_the_lag_of_the_state():
    assert (CHECKPOINT.offset_sum, CHECKPOINT.lag) == (42, 8)
    unknown = Checkpoint(offsets={TopicPartition("a", 0): -4}, end_offset_sum=3)
    assert (unknown.offset_sum, unknown.lag) == (0, 3)
    assert Checkpoint().lag is None


@pytest.mark.parametrize(
    "junk",
    [b"", b"1\n0\n", b"0\n2\na 1 2\n", b"0\nx\n", b"0\n1\na 1\n", b"\xff", b"SRBchkp2" + bytes(30)],
)
def test_a_broken_checkpoint_is_refused_with_what_to_do(junk):
    with pytest.raises(StoreError, match=r"is restored|not used|cut off"):
        read_checkpoint(junk, name="it")


@pytest.mark.parametrize("junk", [b"", b"{}", b"[]", b'{"processId": "x"}', b"SRPROC01"])
def test_a_broken_process_file_is_refused(junk):
    with pytest.raises(StoreError, match=r"has no valid process id|truncated"):
        read_process(junk, name="it")


def test_a_topic_that_the_text_cannot_hold_is_refused():
    with pytest.raises(StoreError, match="a checkpoint of format 1 cannot contain"):
        checkpoint_bytes(Checkpoint(offsets={TopicPartition("a b", 0): 1}), 1)


@pytest.mark.parametrize("version", [1, 2])
def test_plans_and_snapshots_are_written_as_set_and_read_in_both_formats(tmp_path, version):
    group = state("aabbcc", standbys=1)
    writer = PlanStore(tmp_path, persistent_version=version)
    reader = PlanStore(tmp_path, persistent_version=3 - version)
    fingerprint = writer.write_snapshot("g", group)
    snapshot = reader.read_snapshot("g")
    assert (snapshot.fingerprint, snapshot.format) == (fingerprint, version)
    # A plan has the format of the leader, which reads it.
    reader.write_plan("g", plan_for(snapshot, sticky(group)))
    plan = writer.read_plan("g")
    assert (plan.format, plan.fingerprint) == (version, fingerprint)
    assert plan.assignment.active.tolist() == sticky(group).active.tolist()
    assert plan.assignment.standbys == sticky(group).standbys


def test_format_2_of_a_snapshot_is_smaller(tmp_path):
    group = state("aabbcc")
    sizes = {}
    for version in (1, 2):
        store = PlanStore(tmp_path, persistent_version=version)
        store.write_snapshot("g", group)
        sizes[version] = store.snapshot_path("g").stat().st_size
    assert sizes[2] < sizes[1] - 300


# The setting


@pytest.mark.kip("384-1", "core")
def test_the_setting_decides_how_every_store_is_written_and_every_format_is_read(tmp_path):
    magics = {
        1: (b'{"proces', b"0\n2\na-ch", b"SRBsnap1", 2),
        2: (b"SRPROC01", b"SRBchkp2", b"SRBsnap2", 3),
    }
    for version, (process, checkpoint, plan, log_format) in magics.items():
        place = stores(tmp_path / "state", version)
        write_all(place)
        plans = place.plans(tmp_path / "plans")
        plans.write_snapshot("g", state("aabbcc"))
        disk = MemoryDisk()
        format_log(disk, LogFormat(log_id="a", levels={PERSISTENT_METADATA: version}, at_ms=1))
        log = FeatureLog(disk)
        log.change({TASK_PLACEMENT: 2}, Note())
        for path, magic in (
            (tmp_path / "state" / PROCESS_NAME, process),
            (tmp_path / "state" / "0_1" / ".checkpoint", checkpoint),
            (plans.snapshot_path("g"), plan),
        ):
            assert path.read_bytes()[:8] == magic
        newest = disk.files[max(name for name in disk.files if name.endswith(".snapshot"))]
        assert msgpack.unpackb(newest[16:-16])["format"] == log_format
        # Both read files of the version before.
        assert place.read_process() == RECORD
        assert place.read_checkpoint(TASK).offsets == CHECKPOINT.offsets


def test_nothing_there_is_nothing_and_makes_no_file(tmp_path):
    place = stores(tmp_path / "state")
    found = (place.read_process(), place.read_checkpoint(TASK), place.written)
    assert found == (None, None, None)
    assert not (tmp_path / "state").exists()


@pytest.mark.kip("384-2", "core")
def test_the_wire_goes_up_and_down_while_what_is_persisted_stays(tmp_path):
    files = []
    for used in (11, 101, 11):
        place = stores(tmp_path, 1)
        assert written_on_the_wire(used)
        write_all(place)
        files.append({p.name: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()})
        assert place.read_process() == RECORD
    assert files[0] == files[1] == files[2]
    for version, used in ((2, 101), (2, 11)):
        place = stores(tmp_path, version)
        write_all(place)
        assert written_on_the_wire(used)
        assert place.read_process() == RECORD


@pytest.mark.kip("384-5", "core")
def test_once_raised_and_written_a_lower_setting_is_refused_and_nothing_is_lost(tmp_path):
    write_all(stores(tmp_path, 1))
    write_all(stores(tmp_path, 2))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match=r"version 2 was first written here at 2023-11-14T22:13"):
        stores(tmp_path, 1)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    again = stores(tmp_path, 2)
    assert (again.read_process(), again.read_checkpoint(TASK)) == (RECORD, CHECKPOINT)


@pytest.mark.kip("384-5", "core")
def test_raised_but_not_written_yet_the_setting_may_go_back(tmp_path):
    write_all(stores(tmp_path, 1))
    assert stores(tmp_path, 2).read_process() == RECORD
    assert stores(tmp_path, 1).version == 1


def test_the_step_up_is_remembered_before_the_first_raised_byte(tmp_path, monkeypatch):
    place = stores(tmp_path, 2)

    def refuse(*_):
        raise StoreError("the power failed")

    monkeypatch.setattr("assignor.stores.persisted.replace_file", refuse)
    with pytest.raises(StoreError, match="power"):
        place.write_process(RECORD)
    with pytest.raises(StoreError, match="cannot be lowered"):
        stores(tmp_path, 1)


@pytest.mark.kip("384-6", "core")
def test_a_follower_takes_the_leaders_format_and_keeps_it(tmp_path):
    place = stores(tmp_path, 1)
    write_all(place)
    decision = place.follow(2, now_ms=NOW_MS + 1)
    assert (decision.version, decision.rule) == (2, "as the leader writes")
    write_all(place)
    assert (tmp_path / PROCESS_NAME).read_bytes()[:8] == b"SRPROC01"
    # Its setting was never raised, so it can restart before its bounce.
    again = stores(tmp_path, 1)
    assert (again.version, again.decision.rule) == (2, "as a leader wrote")
    # A leader that was not bounced yet does not take it back.
    assert place.follow(1, now_ms=NOW_MS + 2).version == 2
    other = stores(tmp_path / "other", 2)
    assert other.follow(1, now_ms=NOW_MS).version == 1
    write_all(other)
    assert other.written.version == 1


@pytest.mark.kip("384-7", "core")
def test_raising_both_together_is_allowed_and_warned_of(tmp_path):
    decision = stores(tmp_path, 2, wire=True).decision
    assert decision.prevents_rollback
    assert "together with the wire version" in decision.why


def test_a_broken_memory_of_what_was_written_is_refused(tmp_path):
    write_all(stores(tmp_path, 2))
    (tmp_path / "persistent-version").write_bytes(b"SRBpver1")
    with pytest.raises(StoreError, match="truncated"):
        stores(tmp_path, 2)


@pytest.mark.kip("778-17", "core")
def test_files_with_optional_fields_of_a_later_program_are_read():
    sealed = unseal(b"SRPROC01", process_bytes(RECORD, 3), name="it")
    body = json.dumps({**json.loads(sealed), "colour": "green"}).encode()
    assert read_process(seal(b"SRPROC01", body), name="it") == RECORD
    columns = msgpack.unpackb(unseal(b"SRBchkp2", checkpoint_bytes(CHECKPOINT, 2), name="it"))
    later = seal(b"SRBchkp2", msgpack.packb({**columns, "colour": "green"}))
    assert read_checkpoint(later, name="it") == CHECKPOINT


@pytest.mark.kip("778-17", "core")
def test_no_file_is_written_again_because_a_leader_writes_less(tmp_path):
    store = stores(tmp_path, 2)
    store.write_process(RECORD)
    store.write_checkpoint(TASK, CHECKPOINT)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    store.follow(1, now_ms=9)
    assert store.read_checkpoint(TASK) == CHECKPOINT
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
