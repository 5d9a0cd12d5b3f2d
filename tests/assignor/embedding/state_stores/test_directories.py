"""State directories: shared by members of one process, unusable, or older than tombstones."""

from dataclasses import replace

import pytest

from assignor.embedding.process_id import LockedDirectory
from assignor.embedding.state_stores.records import Owner, owned_record
from assignor.stores import StoreError
from tests.assignor.embedding.state_stores.logs import CHANGELOGS, INPUTS, TASK, restored


def test_members_of_one_process_hand_a_task_over_in_the_directory_that_they_share(
    cluster, member, tmp_path
):
    first, second = member("shared"), member("shared")
    first.assign()
    first.finish()
    assert second.stores.task_offsets() == {}
    first.revoke()
    first.stores.on_tasks_assigned({}, {})
    # The first one still has the file open: two writers of one file would undo each other's work.
    second.assign()
    second.poll()
    assert second.stores.waiting == frozenset(INPUTS)
    assert set(second.stores.restoring_tasks()) == {TASK}
    first.stores.process({}, first.count)
    second.finish()
    assert second.sentences[-1] == "restored tasks: 0_0; 0 changelog records read"
    # The first one would remove it, had no other member of the process opened it since.
    first.stores._local._cleanup_delay_s = 0.0
    for _ in range(2):
        first.stores.process({}, first.count)
    assert first.stores.task_offsets() == {}
    assert (tmp_path / "shared/0_0/by-word.db").exists()
    cluster.write("one")
    second.finish()
    assert second.state() == restored(cluster) == cluster.expected()
    second.stores._local._cleanup_delay_s = 0.0
    second.revoke()
    second.stores.on_tasks_assigned({}, {})
    for _ in range(2):
        second.stores.process({}, second.count)
    assert not (tmp_path / "shared/0_0").exists()


def test_a_copy_that_another_member_of_the_process_has_opened_is_reported_by_that_one(member):
    first, second = member("shared"), member("shared")
    first.assign()
    first.finish()
    first.revoke()
    first.stores.on_tasks_assigned({}, {})
    first.stores.process({}, first.count)
    assert set(first.stores.task_offsets()) == {TASK}
    second.assign()
    second.finish()
    first.stores.process({}, first.count)
    assert first.stores.task_offsets() == {}
    assert set(second.stores.task_offsets()) == {TASK}


def test_a_task_directory_that_cannot_be_made_or_emptied_is_one_sentence(member, tmp_path):
    owner = member()
    (tmp_path / "one/0_0").write_text("a file", encoding="utf-8")
    owner.assign()
    with pytest.raises(StoreError, match="0_0 of task 0_0 cannot be made: File exists; remove"):
        owner.poll()
    (tmp_path / "one/0_0").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "one/0_0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"0_0 is a symbolic link to .*elsewhere, and nothing"):
        owner.poll()
    assert not list((tmp_path / "elsewhere").iterdir())
    (tmp_path / "one/0_0").unlink()
    owner.finish()
    owner.revoke()
    owner.stores.on_tasks_assigned({}, {})
    owner.stores.process({}, owner.count)
    owner.stores._local._cleanup_delay_s = 0.0
    file = tmp_path / "one/0_0/by-word.db"
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreError, match=r"by-word\.db cannot be removed: "):
        owner.stores.process({}, owner.count)


@pytest.mark.parametrize(("minutes", "is_kept"), [(25, True), (35, False)])
def test_a_copy_is_rebuilt_when_brokers_may_have_removed_tombstones(
    cluster, member, minutes, is_kept
):
    owner = member(delete_retention_ms=3600 * 1000)
    owner.assign()
    owner.finish()
    for replica in owner.stores._copies[TASK].replicas.values():
        table = replica.table
        then_ms = table.progress.complete_ms - minutes * 60_000
        table.apply({}, replace(table.progress, complete_ms=then_ms))
    owner.stores.close()
    for log in cluster.logs.values():
        log.append(owned_record(CHANGELOGS[0], b"new", b"1", Owner(2, b"12345678")))
    again = member(delete_retention_ms=3600 * 1000)
    again.assign()
    again.finish()
    assert ("; 2 changelog records read" in again.sentences[-1]) is is_kept


def test_a_state_directory_that_is_a_file_is_one_sentence(tmp_path):
    (tmp_path / "state").write_text("a file", encoding="utf-8")
    for path in (tmp_path / "state", tmp_path / "state/deeper"):
        with pytest.raises(StoreError, match="it, or one of its parents, is a file; give another"):
            LockedDirectory(path)
