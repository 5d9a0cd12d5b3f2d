"""Deleted keys that come back, and changelogs that others write to, as in public reports."""

import time
from contextlib import closing
from types import SimpleNamespace

import pytest

from assignor.embedding import DictStore
from assignor.embedding.state_stores.records import NewRecord, Owner, owned_record
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import REBUILD_AFTER_S, DictTable
from assignor.stores import StoreError
from encoding import TopicPartition
from tests.assignor.embedding.state_stores.logs import CHANGELOGS, TASK, restored

CHANGELOG = TopicPartition("app-counts-changelog", 0)
OWNER = Owner(1, b"12345678")


def record(offset, key, value, *, at_s=0.0):
    headers = list(owned_record(CHANGELOG, key, value, OWNER).headers)
    return SimpleNamespace(
        offset=offset, key=key, value=value, headers=headers, timestamp=round(at_s * 1000)
    )


@pytest.fixture(params=["memory", "file"])
def table(request, tmp_path):
    made = DictTable("counts")
    if request.param == "file":
        made = SqliteTable(tmp_path / "counts.db", CHANGELOG)
    with closing(made):
        yield made


def test_quix_streams_1017_a_task_is_taken_over_though_the_last_offset_has_no_record(
    cluster, member
):
    """The marker of a transaction is the last record, and the broker removes it."""
    owner, two = member("one"), member("two")
    owner.assign()
    owner.finish()
    owner.revoke()
    for log in cluster.logs.values():
        log.end += 1
    cluster.write("one", "two")
    two.assign()
    two.finish()
    assert two.state() == restored(cluster) == cluster.expected()


def test_quix_streams_1017_a_copy_without_the_last_offset_is_not_rebuilt_for_its_age(table):
    """It never has all offsets, so that it seems to be behind for as long as nothing is written."""
    Replica("counts", CHANGELOG, table).restore([record(9, b"one", b"1")])
    then_ms = round((time.time() - 3 * REBUILD_AFTER_S) * 1000)
    table.apply({}, type(table.progress)(position=10, owner=OWNER, complete_ms=then_ms))
    copy = Replica("counts", CHANGELOG, table)
    for _ in range(3):
        copy.check_range(0, 11)
        assert not copy.needs_check
    assert (copy.position, table.get(b"one")) == (10, b"1")
    # The next record decides: deletions before it may be gone.
    copy.restore([record(11, b"two", b"2")])
    assert (copy.position, copy.needs_check) == (10, True)
    copy.check_range(0, 12)
    assert (copy.position, table.get(b"one")) == (0, None)


def test_faust_171_a_key_that_is_deleted_and_written_again_in_one_batch_is_there(table):
    copy = Replica("counts", CHANGELOG, table)
    changes = (
        (b"1", b"Foo"),
        (b"2", b"Bar"),
        (b"2", None),
        (b"2", b"Baz"),
        (b"3", b""),
        (b"1", None),
    )
    copy.restore([record(offset, *change) for offset, change in enumerate(changes)])
    assert dict(table.items()) == {b"2": b"Baz", b"3": b""}


@pytest.mark.parametrize("has_run", [False, True])
def test_kafka_8037_bytes_that_are_no_value_are_an_error_only_where_they_count(
    cluster, member, has_run
):
    """A restore does not decode values, so that it lets through what processing would refuse."""
    if has_run:
        owner = member("one", kind=DictStore)
        owner.assign()
        owner.finish()
        owner.revoke()
    cluster.logs[CHANGELOGS[1]].append(
        NewRecord(partition=CHANGELOGS[1], key=b"bad", value=b"\xff{")
    )
    two = member("two", kind=DictStore)
    two.assign()
    two.finish()
    words = two.stores[TASK][two.words]
    assert words.get("one") == cluster.expected()["by-word"]["one"]
    if has_run:
        assert words.get("bad") is None
        return
    for read in (lambda: words.get("bad"), lambda: dict(words.items())):
        with pytest.raises(StoreError, match=r"the value of key b'bad' in store 'by-word'"):
            read()
