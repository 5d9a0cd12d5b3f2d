"""Headers that other programs write into a changelog do not stop its task."""

import struct
from contextlib import closing
from types import SimpleNamespace

import pytest

from assignor.embedding import DictStore
from assignor.embedding.state_stores.records import (
    OWNER_HEADER,
    OWNER_KEY,
    NewRecord,
    Owner,
    next_owner,
    owned_record,
)
from assignor.embedding.state_stores.replica import Replica
from assignor.embedding.state_stores.sqlite import SqliteTable
from assignor.embedding.state_stores.tables import DictTable
from assignor.stores import StoreError
from tests.assignor.embedding.state_stores.logs import CHANGELOGS, TASK, restored
from tests.costs import cost_of

LAST_EPOCH = (1 << 62) - 1
LIMIT = 60


def owner_header(epoch):
    return ((OWNER_HEADER, struct.pack(">Q8s", epoch, b"x" * 8)),)


@pytest.mark.parametrize(
    "headers",
    [((OWNER_HEADER, None),), owner_header(LAST_EPOCH), owner_header(LAST_EPOCH + 1)],
    ids=["null", "last epoch", "epoch that cannot be read"],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_foreign_header_is_ignored(cluster, member, headers, is_first):
    if not is_first:
        owner = member("one", kind=DictStore)
        owner.assign()
        owner.finish()
        owner.revoke()
    cluster.logs[CHANGELOGS[1]].append(
        NewRecord(partition=CHANGELOGS[1], key=b"foreign", value=b"1", headers=headers)
    )
    cluster.write("one", "two")
    two = member("two", kind=DictStore)
    two.assign()
    two.stores._restore_s = 0.2
    for _ in range(20):
        two.poll()
    assert not two.stores.waiting
    expected = cluster.expected()
    # Records without an owner count until a task has run.
    expected["by-word"] |= {"foreign": 1} if is_first else {}
    assert two.state() == restored(cluster) == expected


def test_a_task_whose_epochs_are_used_up_is_refused():
    assert next_owner(Owner(LAST_EPOCH - 1, b""), b"p", name="app-0") == Owner(LAST_EPOCH, b"p")
    with pytest.raises(StoreError, match=f"app-0 has records with owner epoch {LAST_EPOCH}"):
        next_owner(Owner(LAST_EPOCH, b""), b"p", name="app-0")


def test_an_ignored_epoch_is_reported_with_partition_and_offset(cluster, member, caplog):
    owner = member("one", kind=DictStore)
    owner.assign()
    headers = list(owner_header(LAST_EPOCH))
    cluster.logs[CHANGELOGS[0]].append(
        SimpleNamespace(partition=CHANGELOGS[0], key=b"f", value=b"1", headers=headers)
    )
    owner.poll()
    assert "offset 0 of app-by-letter-changelog-0 names owner epoch" in caplog.text


class Counted:
    """Restores foreign records with keys of their own, and counts what that costs."""

    BATCH = 250

    def __init__(self, path):
        self.table, self.next = SqliteTable(path, CHANGELOGS[0]), 1
        self.replica = Replica("by-letter", CHANGELOGS[0], self.table)
        claim = owned_record(CHANGELOGS[0], OWNER_KEY, b"", Owner(1, b"12345678"))
        self.replica.restore([read_record(0, claim.key, claim.value, claim.headers)])

    def restore(self, batches):
        for _ in range(batches):
            offsets = range(self.next, self.next + self.BATCH)
            self.replica.restore([read_record(each, b"%08d" % each, b"1") for each in offsets])
            self.next = offsets.stop

    def rows(self, batches):
        """Rows that are written in the file."""
        before = self.table._connection.total_changes
        self.restore(batches)
        return self.table._connection.total_changes - before


def read_record(offset, key, value, headers=()):
    return SimpleNamespace(offset=offset, key=key, value=value, headers=headers, timestamp=-1)


def test_foreign_records_cost_the_same_however_many_there_are_already(tmp_path):
    """Each batch copied, deleted and inserted the keys of all batches before."""
    counted = Counted(tmp_path / "counts.db")
    with closing(counted.table):
        rows = [counted.rows(batches=20) for _ in range(4)]
        assert rows == [20 * (Counted.BATCH + 1)] * 4, "the keys, and the progress"
        # 20,000 records after 20,000: about 6 units, and some 400 before.
        assert cost_of(lambda: counted.restore(batches=80), limit=LIMIT) <= LIMIT
    with closing(SqliteTable(tmp_path / "counts.db", CHANGELOGS[0])) as again:
        assert len(again.unowned) == counted.next - 1


def test_many_foreign_records_are_repaired_a_part_at_a_time(cluster, member):
    owner = member("one")
    cluster.write("one", "two")
    owner.assign()
    owner.finish()
    owner.revoke()
    for number in range(2500):
        cluster.logs[CHANGELOGS[1]].append(
            NewRecord(partition=CHANGELOGS[1], key=b"%05d" % number, value=b"1")
        )
    two = member("two")
    two.assign()
    two.stores._restore_s = 0
    appends, written = [], two.access.append
    two.access.append = lambda records: (
        appends.extend([len(records)] * bool(records)) or written(records)
    )
    polls = 0
    while two.stores.waiting:
        two.poll()
        polls += 1
    assert appends == [len(CHANGELOGS), 1000, 1000, 500]
    assert polls == len(appends), "each part leaves the member time to poll"
    assert two.state() == restored(cluster) == cluster.expected()
    assert two.stores._copies[TASK].replicas["by-word"].unowned == set()


def test_a_copy_that_cannot_be_read_while_it_is_repaired_is_repaired_later(
    cluster, member, monkeypatch
):
    """What completes it is read when it is written: after an error this begins again."""
    owner, two = member("one", kind=DictStore), member("two", kind=DictStore)
    owner.assign()
    owner.finish()
    owner.revoke()
    for letter in (b"o", b"t"):
        cluster.logs[CHANGELOGS[0]].append(
            NewRecord(partition=CHANGELOGS[0], key=letter, value=b"99")
        )
    failures, get = [StoreError("cannot be read")], DictTable.get

    def failing(table, key):
        if failures and key == b"t":
            raise failures.pop()
        return get(table, key)

    monkeypatch.setattr(DictTable, "get", failing)
    two.assign()
    with pytest.raises(StoreError, match="cannot be read"):
        two.finish()
    two.finish()
    assert two.stores._copies[TASK].replicas["by-letter"].unowned == set()
    cluster.logs[CHANGELOGS[0]].compact()
    assert two.state() == restored(cluster) == cluster.expected()


def test_a_task_that_is_revoked_while_it_is_repaired_is_repaired_by_the_next_owner(cluster, member):
    owner = member("one", kind=DictStore)
    cluster.write("one", "two")
    owner.assign()
    owner.finish()
    owner.revoke()
    for number in range(2500):
        cluster.logs[CHANGELOGS[1]].append(
            NewRecord(partition=CHANGELOGS[1], key=b"%05d" % number, value=b"1")
        )
    two, three = member("two", kind=DictStore), member("three", kind=DictStore)
    two.assign()
    two.stores._restore_s = 0
    before = cluster.logs[CHANGELOGS[1]].end
    while cluster.logs[CHANGELOGS[1]].end < before + 1500:
        two.poll()
    two.revoke()
    cluster.write("three")
    three.assign()
    three.finish()
    two.poll()
    assert three.state() == restored(cluster) == cluster.expected()
