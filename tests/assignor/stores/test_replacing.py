"""Files replaced by several writers at once: every write succeeds, every read is complete."""

import os
import threading
import time
import tracemalloc

import pytest

from assignor.stores import StoreError, disk, read_sealed, replacing, write_sealed
from assignor.stores.disk import FolderDisk

MAGIC = b"TESTfile"
HOUR_S = 3600


def age(path, seconds):
    past = time.time() - seconds
    os.utime(path, (past, past))


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.endswith(".partial"))


def write_and_read(path, mark):
    os.getpid = lambda: 1  # in containers every program is process 1
    for number in range(60):
        write_sealed(path, MAGIC, mark * (1 + number * 997 % 20_000))
        body = read_sealed(path, MAGIC, limit=1 << 20)
        assert body
        assert body == body[:1] * len(body)


def forked(work, *arguments):
    """Call a function in a process of its own; return the number of the process."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work(*arguments)
            status = 0
        finally:
            os._exit(status)
    return child


@pytest.mark.usefixtures("clock")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_processes_with_one_process_id_write_the_same_file(tmp_path):
    writers = [forked(write_and_read, tmp_path / "file", mark) for mark in (b"a", b"b", b"c", b"d")]
    assert [os.waitpid(writer, 0)[1] for writer in writers] == [0] * 4
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("clock")
def test_threads_write_and_read_the_same_file(tmp_path):
    path, failures, done = tmp_path / "file", [], threading.Event()
    write_sealed(path, MAGIC, b"x")

    def write(mark):
        try:
            for number in range(40):
                write_sealed(path, MAGIC, mark * (1 + number * 997 % 20_000))
        except StoreError as error:
            failures.append(str(error))

    def read():
        while not done.is_set():
            try:
                body = read_sealed(path, MAGIC, limit=1 << 20)
                assert body
                assert body == body[:1] * len(body)
            except (StoreError, AssertionError) as error:
                failures.append(repr(error))

    reader = threading.Thread(target=read)
    reader.start()
    writers = [threading.Thread(target=write, args=(mark,)) for mark in (b"a", b"b", b"c", b"d")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert failures == []
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_what_killed_writers_left_is_removed_after_an_hour(tmp_path):
    path = tmp_path / "file"
    old, older_release, fresh, other = (
        tmp_path / name
        for name in (
            ".file.1.00112233445566ff.partial",
            ".file.7.partial",
            ".file.1.ffeeddccbbaa9988.partial",
            ".neighbour.1.0011223344556677.partial",
        )
    )
    for leftover in (old, older_release, fresh, other):
        leftover.write_bytes(b"half a fi")
    for leftover in (old, older_release, other):
        age(leftover, 2 * HOUR_S)
    write_sealed(path, MAGIC, b"body")
    assert leftovers(tmp_path) == [fresh.name, other.name]
    assert read_sealed(path, MAGIC, limit=100) == b"body"


@pytest.mark.usefixtures("clock")
def test_a_leftover_that_a_living_writer_holds_is_never_removed(tmp_path, monkeypatch):
    path, paused, go_on = tmp_path / "file", threading.Event(), threading.Event()
    fsync, slow = os.fsync, []

    def slow_fsync(descriptor):
        if threading.current_thread() in slow:
            slow.clear()
            paused.set()
            assert go_on.wait(120)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    writer = threading.Thread(target=write_sealed, args=(path, MAGIC, b"slow"))
    slow.append(writer)
    writer.start()
    assert paused.wait(120)
    [partial] = leftovers(tmp_path)
    age(tmp_path / partial, 100 * HOUR_S)
    write_sealed(path, MAGIC, b"fast")
    assert leftovers(tmp_path) == [partial]
    go_on.set()
    writer.join()
    assert read_sealed(path, MAGIC, limit=100) == b"slow"
    assert leftovers(tmp_path) == []


def test_a_log_that_is_opened_leaves_another_writers_file_alone(tmp_path):
    disk = FolderDisk(tmp_path)
    disk.replace("format.bin", b"x")
    live = tmp_path / ".format.bin.1.00112233445566ff.partial"
    live.write_bytes(b"half")
    disk.replace("format.bin", b"y")
    assert leftovers(tmp_path) == [live.name]


def test_an_unfinished_file_that_was_removed_is_written_again(tmp_path, monkeypatch):
    path, fsync, removed = tmp_path / "file", os.fsync, []

    def remove_once(descriptor):
        fsync(descriptor)
        if not removed:
            removed.extend(leftovers(tmp_path))
            (tmp_path / removed[0]).unlink()

    monkeypatch.setattr(os, "fsync", remove_once)
    write_sealed(path, MAGIC, b"body")
    assert removed
    assert read_sealed(path, MAGIC, limit=100) == b"body"


def test_a_link_is_read_and_not_written_through(tmp_path):
    """Another user who may write in the directory can put a link there, to any file."""
    write_sealed(tmp_path / "volume" / "file", MAGIC, b"old")
    link = tmp_path / "file"
    link.symlink_to(tmp_path / "volume" / "file")
    with pytest.raises(StoreError, match=r"file is a symbolic link to .*volume/file, and nothing"):
        write_sealed(link, MAGIC, b"new")
    with pytest.raises(StoreError, match="is a symbolic link"):
        FolderDisk(tmp_path).append("file", b"more")
    assert link.is_symlink()
    assert read_sealed(link, MAGIC, limit=100) == b"old"
    # A link above it is the operator's way to another volume.
    (tmp_path / "linked").symlink_to(tmp_path / "volume")
    write_sealed(tmp_path / "linked" / "file", MAGIC, b"new")
    assert read_sealed(tmp_path / "volume" / "file", MAGIC, limit=100) == b"new"


def test_a_link_that_appears_after_the_check_is_not_written_through(tmp_path, monkeypatch):
    monkeypatch.setattr(replacing, "check_no_link", lambda _: None)
    monkeypatch.setattr(disk, "check_no_link", lambda _: None)
    victim, link = tmp_path / "victim", tmp_path / "file"
    victim.write_bytes(b"kept")
    link.symlink_to(victim)
    with pytest.raises(StoreError, match=r"file cannot be written"):
        FolderDisk(tmp_path).append("file", b"more")
    write_sealed(link, MAGIC, b"new")
    assert not link.is_symlink(), "it is replaced, as it is renamed to"
    assert victim.read_bytes() == b"kept"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "file"
    write_sealed(path, MAGIC, b"old")
    path.chmod(mode)
    write_sealed(path, MAGIC, b"new")
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.usefixtures("clock")
def test_a_pipe_that_nobody_reads_is_no_place_to_append_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="pipe cannot be written"):
        FolderDisk(tmp_path).append("pipe", b"more")


def test_a_link_to_nothing_is_an_error_for_readers_and_writers(tmp_path):
    link = tmp_path / "file"
    link.symlink_to(tmp_path / "unmounted" / "file")
    with pytest.raises(StoreError, match=r"file is a symbolic link to .*unmounted.*mount"):
        read_sealed(link, MAGIC, limit=100)
    with pytest.raises(StoreError, match="symbolic link"):
        write_sealed(link, MAGIC, b"new")
    assert link.is_symlink()
    assert not (tmp_path / "unmounted").exists()


def test_a_pipe_or_a_folder_in_place_of_a_file_is_an_error_and_nobody_waits(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(StoreError, match=r"not a regular file"):
            read_sealed(tmp_path / name, MAGIC, limit=100)


def test_a_new_file_is_readable_for_those_whom_the_umask_allows(tmp_path):
    before = os.umask(0o022)
    try:
        write_sealed(tmp_path / "file", MAGIC, b"body")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_a_small_file_takes_little_memory_whatever_the_limit(tmp_path):
    write_sealed(tmp_path / "file", MAGIC, b"body")
    tracemalloc.start()
    read_sealed(tmp_path / "file", MAGIC, limit=1 << 31)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1_000_000
