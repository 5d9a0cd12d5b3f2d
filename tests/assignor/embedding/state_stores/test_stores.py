"""A store as an application uses it: types, order, own writes, and uses that are refused."""

import pytest

from assignor.embedding import (
    BYTES,
    JSON,
    TEXT,
    DictStore,
    Serde,
    SqliteStore,
    Store,
    StoreReadOnly,
)
from assignor.embedding.state_stores.records import RESERVED
from assignor.embedding.state_stores.stores import Batch
from assignor.embedding.state_stores.tables import DictTable, Progress
from encoding import TaskId, TopicPartition

TASK = TaskId(0, 1)
NUMBER = Serde(lambda number: number.to_bytes(4, "big"), lambda data: int.from_bytes(data, "big"))
WORDS = DictStore("words", key=TEXT, value=NUMBER)


@pytest.fixture
def table():
    made = DictTable("words")
    made.apply({b"a": bytes(3) + b"\1", b"b": bytes(3) + b"\2", b"bb": bytes(4)}, Progress())
    return made


@pytest.fixture
def batch():
    return Batch(TASK)


@pytest.fixture
def store(table, batch):
    return Store(WORDS, table, TASK, batch)


def test_own_writes_are_read_before_they_are_committed(store, table, batch):
    store.put("b", 20)
    store.put("c", 30)
    store.delete("a")
    store.delete("none")
    assert store.get("b") == 20
    assert store.get("a") is None
    assert store.get("a", 7) == 7
    assert list(store.items()) == [("b", 20), ("bb", 0), ("c", 30)]
    assert list(store.items(prefix="b")) == [("b", 20), ("bb", 0)]
    assert list(Store(WORDS, table, TASK).items()) == [("a", 1), ("b", 2), ("bb", 0)]
    assert batch.writes["words"] == {
        b"b": bytes(3) + b"\x14",
        b"c": bytes(3) + b"\x1e",
        b"a": None,
        b"none": None,
    }


def test_a_key_that_was_deleted_can_be_put_again(store):
    store.delete("a")
    store.put("a", 5)
    assert dict(store.items(prefix="a")) == {"a": 5}


def test_entries_can_be_changed_while_they_are_read(store):
    for key, value in store.items():
        store.put(f"{key}!", value)
        store.delete(key)
    assert list(store.items()) == [("a!", 1), ("b!", 2), ("bb!", 0)]


def test_a_copy_for_queries_is_read_only(table):
    store = Store(WORDS, table, TASK)
    with pytest.raises(StoreReadOnly, match=r"store words of task 0_1 is read-only here: only the"):
        store.put("a", 1)
    with pytest.raises(StoreReadOnly, match="of the active task writes to it"):
        store.delete("a")


def test_nothing_is_written_after_the_batch(store, batch):
    batch.is_open = False
    with pytest.raises(StoreReadOnly, match=r"store words of task 0_1 cannot be written now"):
        store.put("a", 1)


@pytest.mark.parametrize("key", [b"", RESERVED, RESERVED + b"more"])
def test_keys_of_this_package_are_refused(table, batch, key):
    store = Store(DictStore("words", key=BYTES, value=BYTES), table, TASK, batch)
    for use in (lambda: store.put(key, b""), lambda: store.delete(key)):
        with pytest.raises(ValueError, match="which is reserved; choose another key"):
            use()


def test_serialisers_are_those_of_the_field():
    assert TEXT.encode("ä") == "ä".encode()
    assert JSON.encode({"b": [1, None], "a": "ä"}) == '{"a":"ä","b":[1,null]}'.encode()
    assert JSON.decode(JSON.encode({"a": 1.5})) == {"a": 1.5}
    with pytest.raises(ValueError, match="not JSON compliant"):
        JSON.encode(float("nan"))


def test_a_store_in_files_needs_a_directory():
    with pytest.raises(ValueError, match="store words is kept in a file; give a state directory"):
        SqliteStore("words", key=TEXT, value=JSON).open_table(None, TopicPartition("t", 0))


def test_a_call_without_records_is_no_commit(member):
    owner = member()
    owner.assign()
    owner.finish()
    before = owner.stores.work.commits
    owner.stores.process({}, owner.count)
    assert owner.stores.work.commits == before > 0
