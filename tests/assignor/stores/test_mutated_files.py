"""Every file that outlives a process, mutated: a value or the documented error, lock free."""

from contextlib import suppress

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assignor.embedding import ProcessDirectory
from assignor.levels.log import FeatureLog, LogFormat, Note, format_log, opened_log
from assignor.placement.builtin import sticky
from assignor.stores import (
    Checkpoint,
    FolderDisk,
    OffloadedPlans,
    PlanStore,
    StateStores,
    StoreError,
    plan_for,
    seal,
)
from encoding import TaskId, TopicPartition
from probing.features import ASSIGNMENT_PROTOCOL, PERSISTENT_METADATA, TASK_PLACEMENT, LevelRange
from probing.persisted_formats import PersistedSettings
from tests.assignor.problems.small_groups import state
from tests.nightly import examples

TASK = TaskId(0, 1)
NOW_MS = 1_700_000_000_000
QUICK = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
HEAD, CHECKSUM = 16, 16


@st.composite
def changes(draw):
    """Edits of the bytes of a file, and whether its checksum is recomputed."""
    edit = st.tuples(
        st.sampled_from(("flip", "put", "insert", "delete", "cut", "zeros", "double")),
        st.integers(0, 2**16),
        st.binary(min_size=1, max_size=8),
    )
    return draw(st.lists(edit, min_size=1, max_size=4)), draw(st.booleans())


def changed(data, edits):
    data = bytearray(data)
    for kind, number, given_bytes in edits:
        at = number % (len(data) + 1)
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << given_bytes[0] % 8
        elif kind == "put":
            data[at : at + len(given_bytes)] = given_bytes
        elif kind == "insert":
            data[at:at] = given_bytes
        elif kind == "delete":
            del data[at : at + len(given_bytes)]
        elif kind == "cut":
            del data[at:]
        elif kind == "zeros":
            data[at:] = bytes(max(len(data) - at, given_bytes[0]))
        elif kind == "double":
            data[at:at] = data[:at]
    return bytes(data)


def mutated(whole, change, *, has_checksum):
    """The changed file; if sealed, only its body changes, with a new checksum."""
    edits, is_resealed = change
    if has_checksum and is_resealed:
        return seal(whole[:8], changed(whole[HEAD:-CHECKSUM], edits))
    return changed(whole, edits)


def opens_or_refuses(path, data, read, lock=None):
    """Read a changed file: only `StoreError` may come out, and a refused file stays as it is."""
    path.write_bytes(data)
    message = ""
    try:
        read()
    except StoreError as error:
        message = str(error)
    if message:
        assert path.read_bytes() == data
        assert message.isprintable()
    if lock is not None:
        with FileLock(lock, timeout=0):
            pass


@pytest.mark.parametrize("version", [1, 2])
def test_a_process_file(tmp_path, version):
    persisted = PersistedSettings(persistent_metadata_version=version)
    place = ProcessDirectory(tmp_path, persisted)
    place.remember(11)
    place.close()

    def read():
        ProcessDirectory(tmp_path, persisted).close()

    for name in ("kafka-streams-process-metadata", "persistent-version"):
        path = tmp_path / name
        whole = path.read_bytes()

        @QUICK
        @given(changes())
        def check(change):
            data = mutated(whole, change, has_checksum=whole.startswith(b"SR"))  # noqa: B023 called at once
            opens_or_refuses(path, data, read, tmp_path / "process.lock")  # noqa: B023 called at once

        check()
        path.write_bytes(whole)


@pytest.mark.parametrize("version", [1, 2])
def test_a_checkpoint(tmp_path, version):
    given_settings = PersistedSettings(persistent_metadata_version=version)
    stores = StateStores(tmp_path, given_settings, now_ms=NOW_MS)
    offsets = {TopicPartition("a-changelog", 1): 35, TopicPartition("b-changelog", 1): -4}
    stores.write_checkpoint(TASK, Checkpoint(offsets=offsets, end_offset_sum=50))
    path = tmp_path / "0_1" / ".checkpoint"
    whole = path.read_bytes()

    def read():
        found = stores.read_checkpoint(TASK)
        assert found.offset_sum >= 0
        assert found.lag is None or found.lag >= 0

    @QUICK
    @given(changes())
    def check(change):
        opens_or_refuses(path, mutated(whole, change, has_checksum=version > 1), read)

    check()


@pytest.mark.parametrize("version", [1, 2])
def test_snapshots_and_plans(tmp_path, version):
    store = PlanStore(tmp_path, persistent_version=version)
    group = state("aabbcc", standbys=1, rack="r1", tags=(("z", "1"),))
    store.write_snapshot("g", group)
    store.write_plan("g", plan_for(store.read_snapshot("g"), sticky(group)))
    offloaded = OffloadedPlans(PlanStore(tmp_path / "other"), group="g", tasks_at_least=1)
    offloaded._store = store

    def plan_again():
        snapshot = store.read_snapshot("g")
        plan_for(snapshot, sticky(snapshot.state))

    def take_plan():
        store.read_plan("g")
        assert len(offloaded(group).active) == 6

    for path, read in ((store.snapshot_path("g"), plan_again), (store.plan_path("g"), take_plan)):
        whole = path.read_bytes()

        @QUICK
        @given(changes())
        def check(change):
            data = mutated(whole, change, has_checksum=True)  # noqa: B023 called at once
            opens_or_refuses(path, data, read)  # noqa: B023 called at once

        check()
        path.write_bytes(whole)
        store.write_snapshot("g", group)


def test_a_feature_log(tmp_path):
    disk = FolderDisk(tmp_path)
    format_log(disk, LogFormat(log_id="a1", levels={PERSISTENT_METADATA: 2}, at_ms=5))
    with opened_log(tmp_path) as log:
        log.change({TASK_PLACEMENT: 2}, Note(at_ms=NOW_MS, who="ada", why="try it"))
        for number in range(3):
            log.register(f"m{number}", {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=101)})
    files = {name: disk.read(name, 1 << 20) for name in disk.names() if name != ".lock"}

    def restore():
        for path in tmp_path.iterdir():
            path.unlink()
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)

    def read():
        with suppress(StoreError):
            FeatureLog(disk, is_reader=True)
        with opened_log(tmp_path) as log:
            log.register("m9", {TASK_PLACEMENT: LevelRange(min=1, max=2)})

    for name, whole in files.items():

        @QUICK
        @given(changes())
        def check(change):
            restore()
            data = mutated(whole, change, has_checksum=not name.endswith(".records"))  # noqa: B023 called at once
            opens_or_refuses(tmp_path / name, data, read, tmp_path / ".lock")  # noqa: B023 called at once

        check()
