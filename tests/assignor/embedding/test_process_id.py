"""The identity of a process in its state directory, and the lock on it."""

import subprocess
import sys
from contextlib import suppress

import pytest
from filelock import FileLock, Timeout

from assignor.embedding import ProcessDirectory, StateDirectoryLocked
from assignor.embedding.process_id import LockedDirectory
from assignor.stores import StoreError
from assignor.stores.persisted import PROCESS_NAME
from encoding import TaskId
from probing.persisted_formats import PersistedSettings

OTHER = """
import sys
from assignor.embedding import ProcessDirectory, StateDirectoryLocked
try:
    place = ProcessDirectory(sys.argv[1])
except StateDirectoryLocked as error:
    sys.exit(str(error))
print(place.process_id)
"""


def in_another_process(path):
    return subprocess.run(
        [sys.executable, "-c", OTHER, str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def is_free(monkeypatch):
    """Return whether another process would get the lock of a directory.

    A lock that is not released is kept, where the garbage collector would release it.
    """
    kept = []

    def keeping(*arguments, **options):
        kept.append(FileLock(*arguments, **options))
        return kept[-1]

    def is_free(path):
        lock = FileLock(path / "process.lock")
        with suppress(Timeout), lock.acquire(timeout=0):
            return True
        return False

    monkeypatch.setattr("assignor.embedding.process_id.FileLock", keeping)
    return is_free


def test_a_lock_that_is_a_link_leaves_what_it_leads_to(tmp_path):
    (tmp_path / "victim").write_text("kept", encoding="utf-8")
    (tmp_path / "process.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(StoreError, match=r"process\.lock is a symbolic link to .*victim"):
        LockedDirectory(tmp_path)
    assert (tmp_path / "victim").read_text(encoding="utf-8") == "kept"


def test_a_restarted_process_has_its_former_process_id(tmp_path):
    place = ProcessDirectory(tmp_path / "state")
    place.remember(9)
    first = place.process_id
    place.close()
    again = ProcessDirectory(tmp_path / "state")
    assert (again.process_id, again.remembered_version) == (first, 9)
    again.close()


@pytest.mark.kip("384-2", "core")
@pytest.mark.parametrize(("version", "magic"), [(1, b'{"proces'), (2, b"SRPROC01")])
def test_the_wire_goes_up_and_down_and_the_files_keep_their_format(tmp_path, version, magic):
    settings = PersistedSettings(persistent_metadata_version=version)
    for used in (11, 101, 102, 11, 101):
        place = ProcessDirectory(tmp_path, settings)
        place.remember(used)
        assert place.remembered_version == used
        assert place.stores.version == version
        assert (tmp_path / PROCESS_NAME).read_bytes()[:8] == magic
        place.close()


def test_two_directories_are_two_processes(tmp_path):
    first, second = ProcessDirectory(tmp_path / "1"), ProcessDirectory(tmp_path / "2")
    assert first.process_id != second.process_id
    first.close()
    second.close()


@pytest.mark.usefixtures("clock")
def test_another_process_is_refused_until_the_last_consumer_is_closed(tmp_path):
    first, second = ProcessDirectory(tmp_path), ProcessDirectory(tmp_path)
    assert first.process_id == second.process_id
    first.close()
    first.close()
    refused = in_another_process(tmp_path)
    assert refused.returncode == 1
    assert f"{tmp_path} is used by another process" in refused.stderr
    second.close()
    let_in = in_another_process(tmp_path)
    assert let_in.stdout.strip() == str(first.process_id)


@pytest.mark.usefixtures("clock")
def test_a_killed_process_leaves_no_lock_behind(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", OTHER + "sys.stdout.flush(); sys.stdin.read()", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    held = holder.stdout.readline().strip()
    with pytest.raises(StateDirectoryLocked):
        ProcessDirectory(tmp_path)
    holder.kill()
    holder.communicate()
    place = ProcessDirectory(tmp_path)
    assert str(place.process_id) == held
    place.close()


def test_broken_content_is_refused_and_lets_go_of_the_lock(tmp_path, is_free):
    (tmp_path / "kafka-streams-process-metadata").write_bytes(b"not sealed at all")
    for _ in range(2):
        with pytest.raises(StoreError, match="process"):
            ProcessDirectory(tmp_path)
    assert is_free(tmp_path)


def test_a_path_that_is_a_file_is_a_sentence(tmp_path):
    (tmp_path / "state").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="state directory"):
        ProcessDirectory(tmp_path / "state")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_path_that_no_directory_can_have_is_a_sentence(tmp_path, name):
    with pytest.raises(StoreError, match=r"state directory .*: (File name too long|embedded null)"):
        ProcessDirectory(tmp_path / name)


def test_state_of_a_task_has_a_directory_of_the_tasks_name(tmp_path):
    place = ProcessDirectory(tmp_path)
    assert place.open_task(TaskId(0, 1)) == tmp_path.resolve() / "0_1"
    assert place.open_task(TaskId(0, 1)).is_dir()
    place.close()


def test_formats_are_written_as_set_and_never_lower_than_before(tmp_path):
    persisted = PersistedSettings(persistent_metadata_version=2)
    place = ProcessDirectory(tmp_path, persisted)
    first = place.process_id
    place.close()
    with pytest.raises(StoreError, match=r"version=1 cannot be lowered: version 2"):
        ProcessDirectory(tmp_path)
    again = ProcessDirectory(tmp_path, persisted)
    assert again.process_id == first
    again.close()


def test_a_finalized_level_goes_before_the_setting_and_is_kept(tmp_path):
    place = ProcessDirectory(tmp_path)
    file = tmp_path / "kafka-streams-process-metadata"
    assert file.read_bytes().startswith(b"{")
    place.follow(2)
    assert file.read_bytes().startswith(b"SRPROC01")
    before = file.stat().st_ino
    place.follow(2)
    assert file.stat().st_ino == before, "it is not written again"
    place.follow(1)
    place.close()
    assert file.read_bytes().startswith(b"SRPROC01")
    with pytest.raises(StoreError, match=r"is unknown|does not read"):
        ProcessDirectory(tmp_path, PersistedSettings(persistent_metadata_version=2)).follow(9)


HOSTILE = {
    "nested": b"[" * 4000,
    "nested objects": b'{"a":' * 800,
    "infinity": b'{"processId": "00000000-0000-0000-0000-00000000002a", "madeAtMs": Infinity}',
    "overflow": b'{"processId": "00000000-0000-0000-0000-00000000002a", "madeAtMs": 1e999}',
    "not a number": b'{"processId": "00000000-0000-0000-0000-00000000002a", "madeAtMs": NaN}',
    "text": b'{"processId": "00000000-0000-0000-0000-00000000002a", "madeAtMs": "5"}',
    "negative": b'{"processId": "00000000-0000-0000-0000-00000000002a", "rememberedVersion": -1}',
    "a number": b'{"processId": 42}',
    "twice": b'{"processId": "00000000-0000-0000-0000-00000000002a", "processId": "x"}',
    "no text": b"\xff\xfe{}",
    "too large": b" " * 5000,
    "huge number": b'{"processId": "x", "madeAtMs": ' + b"9" * 4000 + b"}",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_content_is_one_error_with_file_reason_and_remedy_and_frees_the_lock(
    tmp_path, is_free, content
):
    file = tmp_path / "kafka-streams-process-metadata"
    file.write_bytes(content)
    for _ in range(2):
        with pytest.raises(StoreError, match=r"kafka-streams-process-metadata.*; (restore|delete)"):
            ProcessDirectory(tmp_path)
    assert file.read_bytes() == content
    file.unlink()
    assert is_free(tmp_path)


def test_whatever_fails_on_the_way_the_lock_is_released(tmp_path, is_free, monkeypatch):
    def explode(*_, **__):
        raise MemoryError

    monkeypatch.setattr("assignor.embedding.process_id.StateStores", explode)
    with pytest.raises(MemoryError):
        ProcessDirectory(tmp_path)
    assert is_free(tmp_path)


def test_a_dangling_link_makes_no_new_process_id(tmp_path, is_free):
    state = tmp_path / "state"
    state.mkdir()
    link = state / "kafka-streams-process-metadata"
    link.symlink_to(tmp_path / "unmounted")
    with pytest.raises(StoreError, match=r"symbolic link to .*unmounted"):
        ProcessDirectory(state)
    assert link.is_symlink()
    link.unlink()
    assert is_free(state)


def test_a_state_directory_on_a_volume_that_is_not_mounted_is_not_made(tmp_path):
    (tmp_path / "state").symlink_to(tmp_path / "volume" / "state")
    for path in (tmp_path / "state", tmp_path / "state" / "member"):
        with pytest.raises(StoreError, match=r"state is a symbolic link to .*volume"):
            ProcessDirectory(path)
    assert not (tmp_path / "volume").exists()


def test_only_names_of_ascii_digits_are_tasks(tmp_path):
    place = ProcessDirectory(tmp_path)
    for name in ("0_1", "\u0660_\u0661", "0_\u00b2", "0_1x", "0_1\n"):
        (tmp_path / name).mkdir()
    assert place.tasks() == (TaskId(0, 1),)
    place.close()


def test_files_of_a_task_belong_to_one_user_at_a_time(tmp_path):
    task, files = TaskId(0, 1), [tmp_path.resolve() / "0_1/a", tmp_path.resolve() / "0_1/b"]
    first, second = LockedDirectory(tmp_path), LockedDirectory(tmp_path)
    assert first.open_task(task, files[:1]) == second.open_task(task, files[1:])
    assert second.open_task(task, files) is None
    assert second.is_open_elsewhere(files)
    assert not first.is_open_elsewhere(files[:1])
    files[0].touch()
    assert not second.remove_task(task, files[:1], unused_s=0.0)
    first.close()
    assert not second.remove_task(task, files[:1], unused_s=60.0)
    assert second.remove_task(task, files[:1], unused_s=0.0)
    assert not files[0].exists()
    assert second.open_task(task, files) is not None
    second.close()
