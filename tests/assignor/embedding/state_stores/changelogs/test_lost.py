"""Changelogs that were deleted, made anew or cut off: what their tasks' own copies have is kept.

Kafka Streams makes such a changelog anew in silence, and wipes the store that it does not fit
(KAFKA-10357, KIP-698; `TaskCorruptedException`).
"""

import os
import shutil
from contextlib import suppress
from types import SimpleNamespace

import pytest

from assignor.embedding import CopiesKept, DictStore, SqliteStore, StoreNotHeld
from assignor.embedding.kept import kept_notes
from assignor.embedding.process_id import LockedDirectory
from assignor.embedding.state_stores import takeover
from assignor.embedding.state_stores.local_state import LocalState
from assignor.stores import StoreError
from encoding import TaskId, TopicPartition
from tests.assignor.embedding.state_stores.changelogs.losses import (
    FILE,
    NOTE,
    OLD,
    cut_off,
    is_lost,
    lose_and_stop,
    losses,
    make_anew,
    poll,
    run_and_compare,
    set_ids,
)
from tests.assignor.embedding.state_stores.logs import (
    CHANGELOGS,
    INPUTS,
    TASK,
    WORDS,
    restored,
    write_back,
)


def kept_state(owner):
    """What the copy of a task has that is not restored."""
    owner.stores._fresh = frozenset()
    return owner.state()


@losses
@pytest.mark.parametrize("when", ["it writes", "it is assigned again", "it starts"])
def test_the_copy_of_the_owner_is_kept_and_each_start_says_why(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, lose, when
):
    before = owner.state()
    lose(cluster)
    if when == "it writes":
        cluster.write("one")
    elif when == "it is assigned again":
        owner.revoke()
        owner.assign()
    else:
        owner.stores.close()
        owner = member("one")
        owner.assign()
    found = is_lost(owner, tmp_path)
    was, now = "A" * 21 + "Q", "A" * 21 + ("Q" if lose is cut_off else "g")
    assert f"its id was {was} and is {now}" in found
    assert is_lost(owner, tmp_path) == found, "the next call reads on nowhere"
    if when == "it starts":
        with pytest.raises(StoreNotHeld, match="is not restored yet"):
            owner.state()
        assert kept_state(owner) == before
    else:
        assert owner.state() == before
    owner.stores.close()
    for _ in range(2):
        with pytest.raises(CopiesKept) as raised:
            member("one")
        assert str(raised.value) == found
    LockedDirectory(tmp_path / "one").close()
    # The operator does without the copy.
    shutil.rmtree(tmp_path / "one/0_0")
    cluster.committed.clear()
    again = member("one")
    again.assign()
    again.finish()
    assert again.state() == restored(cluster)
    assert kept_notes(tmp_path / "one") == []


def plant_pipe(note):
    os.mkfifo(note)


def plant_folder(note):
    note.mkdir()


def plant_link(note):
    note.symlink_to("/dev/zero")


def plant_empty(note):
    note.write_bytes(b"")


def plant_huge(note):
    with note.open("wb") as file:
        file.truncate(300 << 20)


def plant_binary(note):
    note.write_bytes(b'\x00\x1b[31m{"why": 3}')


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (plant_pipe, "not a regular file"),
        (plant_folder, "is a directory"),
        (plant_link, "is a symbolic link to /dev/zero"),
        (plant_empty, "it is empty, or no such note"),
        (plant_huge, "has 314572800 bytes; the limit is 16384"),
        (plant_binary, "it is empty, or no such note"),
    ],
)
def test_a_note_that_cannot_be_read_keeps_the_copy_all_the_same(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, plant, why
):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    note = tmp_path / "one" / NOTE
    note.unlink()
    plant(note)
    with pytest.raises(StoreError) as raised:
        member("one")
    found = str(raised.value)
    assert why in found
    assert found.isprintable()
    assert f"run assignor write-back --state-dir {tmp_path}/one" in found
    assert (tmp_path / "one" / FILE).exists()
    if plant is not plant_folder:
        assert write_back(cluster, tmp_path / "one") == []
        run_and_compare(cluster, member)


def test_a_copy_that_another_owner_has_left_behind_is_cleared(cluster, member, owner, caplog):
    standby = member("two", kind=SqliteStore)
    standby.assign(active=False)
    standby.poll()
    assert standby.state() == owner.state()
    owner.revoke()
    owner.stores.on_tasks_assigned({}, {})
    owner.stores.process({}, owner.count)
    standby.assign()
    standby.finish()
    owner.assign(active=False)
    owner.poll()
    make_anew(cluster)
    owner.access.followed.clear()
    owner.poll()
    assert owner.state() == {"by-word": {}, "by-letter": {}}
    assert caplog.text.count("is rebuilt: the changelog was deleted and made anew") == 2
    standby.stores.close()


def test_a_copy_in_memory_can_be_read_until_the_process_ends(cluster, member):
    set_ids(cluster, OLD)
    made = member(kind=DictStore)
    made.assign()
    made.finish()
    make_anew(cluster)
    cluster.write("six")
    with pytest.raises(CopiesKept, match=r"by-letter-changelog-0, has all .*stores\[task\]"):
        made.finish()
    assert made.state()["by-word"]["one"] == 2


def test_copies_of_all_tasks_are_kept_also_of_those_that_do_not_run(
    cluster, member, owner, tmp_path
):
    other, inputs = TaskId(0, 1), (TopicPartition("orders", 1),)
    both = {TASK: INPUTS, other: inputs}
    owner.stores.on_tasks_assigned(both, {})
    owner.finish()
    words = SimpleNamespace(topic="orders", partition=1, offset=0, timestamp=0, word="one")
    owner.stores.process({inputs[0]: [words]}, owner.count)
    # A task of which nothing was processed has nothing to keep.
    owner.stores.on_tasks_assigned({**both, TaskId(0, 2): (TopicPartition("orders", 2),)}, {})
    owner.finish()
    owner.stores.on_tasks_assigned({TASK: INPUTS}, {})
    owner.finish()
    make_anew(cluster)
    cluster.write("one")
    with pytest.raises(CopiesKept):
        poll(owner)
    names = {f"{note.parent.name}/{note.name}" for note in kept_notes(tmp_path / "one")}
    assert names == {f"0_{n}/by-{s}.db.kept" for n in (0, 1) for s in ("letter", "word")}


def test_an_interrupt_in_close_leaves_no_file_in_use(cluster, member, owner, monkeypatch):
    def interrupt(*_):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalState, "close_copy", interrupt)
    with pytest.raises(KeyboardInterrupt):
        owner.stores.close()
    run_and_compare(cluster, member)
    owner.stores.close()


def test_a_task_that_waits_for_its_files_is_logged_once(cluster, member, owner, caplog):
    caplog.set_level("INFO")
    second = member("one")
    second.assign()
    for _ in range(3):
        second.stores.process({}, second.count)
    assert caplog.text.count("task 0_0 waits: another member of this process has its files") == 1
    owner.stores.close()
    second.finish()
    assert second.state() == cluster.expected()


def test_a_kept_copy_is_not_removed_as_one_of_a_task_that_moved_away(
    cluster, member, owner, tmp_path
):
    second = member("one")  # of the same process
    owner.revoke()
    owner.stores.on_tasks_assigned({}, {})
    owner.stores.process({}, owner.count)
    second.assign()
    make_anew(cluster)
    is_lost(second, tmp_path)
    second.stores.close()
    owner.stores._local._cleanup_delay_s = 0.0
    for _ in range(2):
        owner.stores.process({}, owner.count)
    assert (tmp_path / "one" / FILE).exists()


@pytest.mark.parametrize("records", [1, 2, 5])
@pytest.mark.parametrize("changelogs", [CHANGELOGS, CHANGELOGS[:1], CHANGELOGS[1:]])
def test_a_running_owner_ends_when_its_changelogs_have_lost_what_it_wrote(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, records, changelogs
):
    """The offset of its next record is one that it has written before."""
    cut_off(cluster, changelogs, records)
    cluster.write(*WORDS)
    is_lost(owner, tmp_path)
    owner.stores.close()
    assert write_back(cluster, tmp_path / "one") == []
    run_and_compare(cluster, member)


@pytest.mark.parametrize("at", range(1, 12))
@pytest.mark.parametrize("records", [1, 2])
def test_records_that_are_lost_while_a_task_is_claimed_again_are_noticed(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, at, records, monkeypatch
):
    """Those of a claim are written again; others are of the copy, which is kept."""
    monkeypatch.setattr(takeover, "_ASK_S", 0.01)
    owner.revoke()
    owner.assign()
    steps = owner.steps
    steps.at, steps.then = steps.taken + at, lambda: cut_off(cluster, records=records)
    cluster.write(*WORDS)
    with suppress(CopiesKept):
        poll(owner)
        assert owner.state() == restored(cluster) == cluster.expected()
    assert steps.taken >= steps.at
    owner.stores.close()
    assert write_back(cluster, tmp_path / "one") == []
    run_and_compare(cluster, member)
