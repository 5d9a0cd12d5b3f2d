"""Changelogs that were deleted, made anew or cut off: what their tasks' own copies have is kept.

Kafka Streams makes such a changelog anew in silence, and wipes the store that it does not fit
(KAFKA-10357, KIP-698; `TaskCorruptedException`).
"""

import shutil
from uuid import UUID

import pytest

from assignor.embedding import DictStore, MemberStopped, SqliteStore
from assignor.embedding.process_id import LockedDirectory
from tests.assignor.embedding.state_stores.logs import CHANGELOGS, Log, restored

OLD, NEW = UUID(int=1), UUID(int=2)
FILE = "0_0/by-letter.db"


def set_ids(cluster, topic_id):
    cluster.topic_ids.update({changelog.topic: topic_id for changelog in CHANGELOGS})


def make_anew(cluster):
    for changelog in CHANGELOGS:
        cluster.logs[changelog] = Log()
    set_ids(cluster, NEW)


def cut_off(cluster):
    """As an unclean leader election does."""
    for changelog in CHANGELOGS:
        log = cluster.logs[changelog]
        log.end -= 2
        log.records = [record for record in log.records if record.offset < log.end]


losses = pytest.mark.parametrize("lose", [make_anew, cut_off])


@pytest.fixture
def owner(cluster, member):
    set_ids(cluster, OLD)
    made = member("one")
    made.assign()
    made.finish()
    return made


def is_lost(made, tmp_path):
    """Whether the member ends, and says why: of any file of the task."""

    def poll():
        made.poll()
        made.finish()

    with pytest.raises(MemberStopped) as raised:
        poll()
    found = str(raised.value)
    assert f"{tmp_path}/one/{FILE} has all of the task's state, up to offset 10" in found
    assert f"rename {tmp_path}/one/{FILE}.kept to by-letter.db.write-back" in found
    assert f"delete the directory {tmp_path}/one/0_0" in found
    assert found.endswith("; kept here for the same reason: 1 more")
    return found


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
    assert owner.state() == before
    owner.stores.close()
    for _ in range(2):
        with pytest.raises(MemberStopped) as raised:
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
    assert not list((tmp_path / "one/0_0").glob("*.kept"))


@losses
@pytest.mark.parametrize("has_other", [False, True])
def test_the_operator_has_the_copy_written_to_the_changelog(  # noqa: PLR0917 fixtures
    cluster, member, owner, tmp_path, lose, has_other
):
    lose(cluster)
    owner.revoke()
    owner.assign()
    is_lost(owner, tmp_path)
    owner.stores.close()
    if has_other:  # the group had no more of the state, and ran the task
        other = member("two")
        other.assign()
        cluster.write("one", "two", "seven")
        other.finish()
        assert other.state()["by-word"]["seven"] == 1
        other.stores.close()
    cluster.committed.clear()
    for kept in sorted((tmp_path / "one/0_0").glob("*.kept")):
        kept.rename(kept.with_suffix(".write-back"))
    again = member("one")
    again.assign()
    cluster.write("one", "six")
    again.finish()
    assert again.state() == restored(cluster) == cluster.expected()
    again.stores.close()
    assert not list((tmp_path / "one/0_0").glob("*.db.*"))
    last = member("one")
    last.assign()
    last.finish()
    assert last.sentences[-1] == "restored tasks: 0_0; 0 changes read"
    assert last.state() == cluster.expected()


def test_a_copy_that_another_owner_has_left_behind_is_cleared(
    cluster,
    member,
    owner,
    caplog,
):
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
    with pytest.raises(MemberStopped, match=r"by-letter-changelog-0, has all .*stores\[task\]"):
        made.finish()
    assert made.state()["by-word"]["one"] == 2


def test_a_kept_copy_is_not_removed_as_one_of_a_task_that_moved_away(
    cluster,
    member,
    owner,
    tmp_path,
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
