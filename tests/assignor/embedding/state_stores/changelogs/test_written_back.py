"""Copies that are kept, written back to their changelogs: a restore has exactly what they have."""

import re
import shutil
import sqlite3
import time
from contextlib import closing, suppress
from itertools import count
from types import SimpleNamespace

import pytest

from assignor.embedding import ClusterUnavailable, CopiesKept
from assignor.embedding.kept import kept_notes
from assignor.embedding.state_stores import takeover
from assignor.embedding.write_back import open_kept, refuse_topics
from assignor.stores import StoreError
from tests.assignor.embedding.state_stores.changelogs.losses import (
    FILE,
    NOTE,
    cut_off,
    keep_both,
    lose_and_stop,
    losses,
    make_anew,
    owner_state,
    poll,
    run_and_compare,
    run_other,
)
from tests.assignor.embedding.state_stores.logs import (
    CHANGELOGS,
    Access,
    Killed,
    Steps,
    restored,
    write_back,
)

lost_changelogs = pytest.mark.parametrize(
    "changelogs", [CHANGELOGS, CHANGELOGS[:1], CHANGELOGS[1:]], ids=["both", "first", "second"]
)


@losses
@lost_changelogs
@pytest.mark.parametrize("has_other", [False, True])
def test_the_operator_has_the_copies_written_to_the_changelogs(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, lose, has_other, changelogs
):
    lose_and_stop(cluster, owner, tmp_path, lose, changelogs)
    if has_other:
        run_other(cluster, member, "one", "two", "seven")
    assert write_back(cluster, tmp_path / "one") == []
    assert kept_notes(tmp_path / "one") == []
    assert restored(cluster) == owner_state(cluster, 12)
    run_and_compare(cluster, member)
    last = member("one")
    last.assign()
    last.finish()
    assert last.sentences[-1] == "restored tasks: 0_0; 0 changelog records read"
    last.stores.close()
    run_and_compare(cluster, member, "two")


@pytest.mark.parametrize("has_other", [False, True])
@pytest.mark.parametrize("at", [1, 4, 7, 10, 13, 16, 19, 22])
def test_a_write_back_that_is_killed_leaves_the_notes_and_is_done_again(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, at, has_other
):
    lose_and_stop(cluster, owner, tmp_path, make_anew, CHANGELOGS[:1])
    run_other(cluster, member, "one", "two", "seven")
    with pytest.raises(Killed):
        write_back(cluster, tmp_path / "one", steps=Steps(at))
    assert (tmp_path / "one" / NOTE).exists()
    with pytest.raises(CopiesKept):
        member("one")
    if has_other:
        run_other(cluster, member, "odd", "one", name="three")
    assert write_back(cluster, tmp_path / "one") == []
    assert restored(cluster) == owner_state(cluster, 12)
    run_and_compare(cluster, member)


def test_of_two_copies_of_a_task_the_one_with_more_input_counts(cluster, member, owner, tmp_path):
    owner.stores.close()
    run_other(cluster, member, "seven", "six")  # the last owner
    make_anew(cluster)
    keep_both(member)
    assert write_back(cluster, tmp_path / "one") == []
    assert restored(cluster) == owner_state(cluster, 12)
    assert write_back(cluster, tmp_path / "two") == []
    assert restored(cluster) == cluster.expected() == owner_state(cluster, 14)
    run_and_compare(cluster, member, "two")


def test_a_copy_with_less_input_than_one_that_was_written_back_is_refused(
    cluster, member, owner, tmp_path
):
    owner.stores.close()
    run_other(cluster, member, "seven", "six")
    make_anew(cluster)
    keep_both(member)
    assert write_back(cluster, tmp_path / "two") == []
    run_and_compare(cluster, member, "two")
    [refused] = write_back(cluster, tmp_path / "one")
    assert refused.startswith("another copy of task 0_0 was written back, and the changelogs have")
    assert refused.endswith(
        f"the copy in {tmp_path}/one/0_0 has it up to 6: nothing of it is needed; delete the "
        f"directory {tmp_path}/one/0_0, then start the application"
    )
    assert (tmp_path / "one" / NOTE).exists()
    run_and_compare(cluster, member, "two")


def test_a_task_of_which_one_copy_is_gone_is_not_written_back(cluster, member, owner, tmp_path):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    (tmp_path / "one" / FILE).unlink()
    [refused] = write_back(cluster, tmp_path / "one")
    assert refused.startswith("store by-letter has no copy in")


def test_a_store_without_a_copy_stays_if_its_changelog_fits(cluster, member, owner, tmp_path):
    lose_and_stop(cluster, owner, tmp_path, make_anew, CHANGELOGS[1:])
    (tmp_path / "one" / FILE).unlink()
    assert write_back(cluster, tmp_path / "one") == []
    run_and_compare(cluster, member)


def test_a_copy_that_lacks_commits_is_not_written_back(cluster, member, owner, tmp_path):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    with closing(sqlite3.connect(tmp_path / "one" / FILE)) as file, file:
        file.execute("update progress set last_commit = x''")
    [refused] = write_back(cluster, tmp_path / "one")
    assert "by-letter lacks commits that others have" in refused


def test_hours_that_pass_before_a_write_back_change_nothing(
    cluster, member, owner, tmp_path, monkeypatch
):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    real_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real_ns() + 40 * 3600 * 10**9)
    run_other(cluster, member, "seven")
    assert write_back(cluster, tmp_path / "one") == []
    run_and_compare(cluster, member)


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ({}, "does not exist: create it with 1 partitions "),
        (
            {"app-by-word-changelog": 3},
            "has 3 partitions instead of 1: delete this topic, and create it with 1 partitions ",
        ),
        (
            {"app-by-word-changelog": 1, "app-by-letter-changelog": 2, "visits": 2},
            "has 1 partitions instead of 2: add partitions to it, which keeps .* has, ",
        ),
    ],
)
def test_a_changelog_with_other_partitions_is_refused(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, counts, found
):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    with open_kept(tmp_path / "one") as [kept]:
        known = {"orders": 1, "visits": 1, "app-by-letter-changelog": 1, **counts}
        [refused] = refuse_topics(kept, known)
    wanted = f"changelog app-by-word-changelog {found}and (set )?cleanup.policy=compact, then run "
    wanted += "this command again; keep the state directory, it has the only copy"
    assert re.fullmatch(wanted, refused)


@pytest.mark.parametrize(
    ("policy", "refusals"),
    [("delete", 1), ("compact", 0), ("compact,delete", 0), ("delete, compact", 0), (None, 0)],
)
def test_a_changelog_that_would_delete_what_is_written_back_is_refused(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, policy, refusals
):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    topic = "app-by-word-changelog"
    with open_kept(tmp_path / "one") as [kept]:
        counts = dict.fromkeys(("orders", "visits", "app-by-letter-changelog", topic), 1)
        refused = refuse_topics(kept, counts, {topic: policy} if policy else {})
    assert len(refused) == refusals
    for sentence in refused:
        assert sentence.startswith(f"changelog {topic} has cleanup.policy=delete, which deletes ")
        assert sentence.endswith("--add-config cleanup.policy=compact; then run this command again")


@pytest.mark.parametrize("is_killed", [False, True])
def test_copies_are_not_changed_unless_they_are_written_back(
    cluster, member, owner, tmp_path, is_killed
):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    folder = tmp_path / "one" / "0_0"
    if is_killed:  # what a process has written is in the file beside it
        with closing(sqlite3.connect(folder / "by-word.db")) as file:
            file.execute("update items set value = x'00'")
            file.commit()
            shutil.copytree(tmp_path / "one", tmp_path / "two")
        folder = tmp_path / "two" / "0_0"
        assert (folder / "by-word.db-wal").stat().st_size
    files = {each: each.read_bytes() for each in folder.iterdir() if each.suffix != ".db-shm"}
    with open_kept(folder.parent, is_read_only=True) as [kept]:
        assert not kept.problem
        assert ({v for _, v in kept.stores["by-word"].table.items()} == {b"\0"}) == is_killed
        with pytest.raises(StoreError, match="cannot be written"):
            kept.stores["by-word"].table.clear()
    assert {each: each.read_bytes() for each in files} == files
    assert {*folder.iterdir()} - {*files} <= {folder / "by-word.db-shm"}


def test_notes_that_are_of_no_task_keep_nothing(cluster, member, owner, tmp_path):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "0_0").symlink_to(tmp_path / "one" / "0_0")
    for name in ("00_0", "a_b"):
        (tmp_path / "two" / name).mkdir()
        (tmp_path / "two" / name / "by-word.db.kept").touch()
    assert kept_notes(tmp_path / "two") == write_back(cluster, tmp_path / "two") == []
    assert kept_notes(tmp_path / "one")
    with pytest.raises(StoreError, match="symbolic link"):
        run_other(cluster, member, "one")


class Slow(Access):
    """A broker that sends no record to some reads; each lasts a second."""

    def __init__(self, cluster, monkeypatch, reads):
        super().__init__(cluster, Steps())
        seconds = count()
        monkeypatch.setattr(takeover, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
        self.reads, self.asked, self.fails_at = reads, 0, None

    def end_offsets(self, partitions):
        self.asked += 1
        if self.asked == self.fails_at:
            raise ClusterUnavailable("the ends of changelogs cannot be read: no answer")
        return super().end_offsets(partitions)

    def read(self, stores, *, wait_s=0.0):
        stores = list(stores)
        if stores and self.reads:
            self.reads -= 1
            self.followed = {store.changelog: store.position for store in stores}
            return 0
        return super().read(stores, wait_s=wait_s)


def test_a_slow_broker_is_waited_for(cluster, member, owner, tmp_path, monkeypatch):
    lose_and_stop(cluster, owner, tmp_path, cut_off)
    slow = Slow(cluster, monkeypatch, reads=59)
    assert write_back(cluster, tmp_path / "one", access=slow) == []
    assert slow.asked > 10
    run_and_compare(cluster, member)


def test_a_broker_that_sends_nothing_is_named(cluster, member, owner, tmp_path, monkeypatch):
    lose_and_stop(cluster, owner, tmp_path, cut_off)
    slow = Slow(cluster, monkeypatch, reads=1000)
    with pytest.raises(ClusterUnavailable) as raised:
        write_back(cluster, tmp_path / "one", access=slow)
    assert str(raised.value) == (
        "app-by-letter-changelog-0 cannot be read: its broker has sent no record from offset 0 on "
        "for 60 s, and has more; look for a broker that is overloaded, or a quota of this user"
    )
    slow.fails_at = slow.asked + 2
    with pytest.raises(ClusterUnavailable, match="the ends of changelogs cannot be read: no answe"):
        write_back(cluster, tmp_path / "one", access=slow)
    assert (tmp_path / "one" / NOTE).exists()
    assert write_back(cluster, tmp_path / "one") == []
    run_and_compare(cluster, member)


def failure(cluster, tmp_path, steps):
    """Why a write-back has failed; "": it has not."""
    try:
        assert write_back(cluster, tmp_path / "one", steps=steps) == []
    except StoreError as error:
        return str(error)
    finally:
        assert steps.taken >= steps.at
    return ""


@pytest.mark.parametrize("at", range(1, 30))
def test_a_writer_is_blamed_if_there_is_one(cluster, member, owner, tmp_path, at):
    """Another member takes the task over at any step: all that is written back counts, or fails."""
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    steps = Steps(at, then=lambda: run_other(cluster, member, "one", "seven"))
    if failed := failure(cluster, tmp_path, steps):
        assert "another process has written to it meanwhile; stop all members" in failed
        assert (tmp_path / "one" / NOTE).exists()
        if refused := write_back(cluster, tmp_path / "one"):  # the other member has it all
            assert "nothing of it is needed; delete the directory" in refused[0]
            shutil.rmtree(tmp_path / "one")
    run_and_compare(cluster, member)


@pytest.mark.parametrize("at", range(1, 30))
def test_no_writer_is_blamed_if_records_are_lost_again(cluster, member, owner, tmp_path, at):
    lose_and_stop(cluster, owner, tmp_path, make_anew)
    steps = Steps(at, then=lambda: make_anew(cluster, CHANGELOGS[:1]))
    if failed := failure(cluster, tmp_path, steps):
        assert "records of it are lost again" in failed
    if not (tmp_path / "one" / NOTE).exists():
        made = member("one")
        made.assign()
        with suppress(CopiesKept):
            poll(made)
        made.stores.close()
    assert write_back(cluster, tmp_path / "one") == []
    run_and_compare(cluster, member)
