"""Each commit record fits into one record, if what each input record writes does."""

from types import SimpleNamespace
from uuid import UUID

import msgpack
import pytest

from assignor.embedding.state_stores.records import (
    COMMIT_KEY,
    Commit,
    commit_bytes,
    read_commit,
)
from assignor.stores import RecordTooLarge, StoreError
from encoding import TopicPartition
from tests.assignor.embedding.state_stores.logs import CHANGELOGS, INPUTS, restored

LIMIT = 1 << 20
OLD, NEW = UUID(int=1), UUID(int=2)


class Broker:
    """Refuses records that are too large, as a broker and its clients do."""

    def __init__(self, access, limit=LIMIT):
        self.append_all, access.append = access.append, self.append
        self.limit, self.refused = limit, 0

    def append(self, records):
        if any(len(record.value or b"") > self.limit for record in records):
            self.refused += 1
            raise RecordTooLarge("a record is too large")
        return self.append_all(records)


def rows(*sizes):
    return {
        INPUTS[0]: [
            SimpleNamespace(offset=at, timestamp=at, word="x" * size)
            for at, size in enumerate(sizes)
        ]
    }


def commits(cluster):
    return [r for r in cluster.logs[CHANGELOGS[1]].records if r.key == COMMIT_KEY]


@pytest.mark.parametrize("sizes", [(400_000, 700_000), (500_000, 900_000, 100_000, 900_000)])
def test_records_that_fit_alone_are_committed_apart(cluster, member, sizes):
    owner = member()
    Broker(owner.access)
    owner.assign()

    def handle(record, state):
        previous = state[owner.words].get("last", 0)
        state[owner.words].put("last", previous + 1)
        state[owner.words].put(f"text {record.offset}", record.word)
        state[owner.letters].put("same", len(record.word))

    batch = rows(*sizes)
    assert owner.stores.process(batch, handle) == {INPUTS[0]: len(sizes)}
    assert len(commits(cluster)) == len(sizes)
    found = owner.state()
    texts = {f"text {at}": "x" * size for at, size in enumerate(sizes)}
    assert found["by-word"] == texts | {"last": len(sizes)}
    assert found["by-letter"] == {"same": sizes[-1]}
    assert restored(cluster) == found
    # No record counts twice.
    assert owner.stores.process(batch, handle) == {INPUTS[0]: len(sizes)}
    assert owner.state() == found


def test_the_parts_have_the_input_offsets_of_their_records(cluster, member):
    owner = member()
    Broker(owner.access)
    owner.assign()

    def handle(record, state):
        state[owner.words].put("last", record.offset)
        state[owner.words].put("text", record.word)

    with pytest.raises(StoreError, match="too large"):
        owner.stores.process(rows(400_000, 1_100_000), handle)
    other = member("two")
    other.assign()
    while other.stores.waiting:
        other.poll()
    assert other.state()["by-word"] == {"last": 0, "text": "x" * 400_000}
    [inputs] = [copy.inputs for copy in other.stores._copies.values()]
    assert inputs == {INPUTS[0]: 1}


@pytest.mark.nightly("240,000 writes, 4 s; every run has few and large ones")
def test_many_small_writes_are_counted_with_what_surrounds_them(cluster, member):
    owner = member()
    Broker(owner.access)
    owner.assign()

    def handle(record, state):
        for number in range(60_000):
            state[owner.words].put(f"{record.offset}{number:x}", 1)

    assert owner.stores.process(rows(1, 1, 1, 1), handle) == {INPUTS[0]: 4}
    assert len(owner.state()["by-word"]) == 240_000


def test_a_task_that_was_lost_between_the_parts_processes_the_rest_again(cluster, member):
    owner, other = member(), member("two")
    owner.assign()
    seen = []

    def put(words, record, state):
        state[words].put("last", record.offset)
        state[words].put("text", record.word)

    def handle_big(record, state):
        put(owner.words, record, state)
        seen.append(record.offset)
        if seen == [0, 1]:
            other.assign()
            while other.stores.waiting:
                other.stores.process({}, handle_two)

    def handle_two(record, state):
        put(other.words, record, state)

    batch = rows(400_000, 700_000)
    assert owner.stores.process(batch, handle_big) == {}
    owner.revoke()
    done = {}
    while not done:
        done = other.stores.process(batch if not other.stores.waiting else {}, handle_two)
    assert done == {INPUTS[0]: 2}
    assert other.state()["by-word"] == {"last": 1, "text": "x" * 700_000}
    assert other.state()["by-letter"] == {}
    assert restored(cluster) == other.state()


def processed(owner, batch, handle):
    """Process a batch, and again until all of it is."""
    done = owner.stores.process(batch, handle)
    while not done:
        assert owner.stores.waiting == frozenset(INPUTS), "no more input is fetched meanwhile"
        done = owner.stores.process({}, handle)
    return done


def test_many_small_records_are_committed_apart_where_the_changelog_takes_less(cluster, member):
    owner = member()
    broker = Broker(owner.access, limit=10_000)
    owner.assign()

    def handle(record, state):
        state[owner.words].put("last", state[owner.words].get("last", 0) + 1)
        state[owner.words].put(f"text {record.offset}", record.word)

    batch = rows(*[1000] * 100)
    assert processed(owner, batch, handle) == {INPUTS[0]: 100}
    assert owner.state()["by-word"]["last"] == 100
    assert restored(cluster) == owner.state()
    # The limit is known from then on.
    assert 1 < broker.refused < 10
    refused = broker.refused
    more = rows(*[1000] * 200)
    assert processed(owner, more, handle) == {INPUTS[0]: 200}
    assert owner.state()["by-word"]["last"] == 200
    assert broker.refused == refused
    assert len(commits(cluster)) < 100


def test_what_one_record_writes_is_too_large_also_between_small_ones(cluster, member):
    owner = member()
    broker = Broker(owner.access, limit=10_000)
    owner.assign()

    def handle(record, state):
        state[owner.words].put("last", state[owner.words].get("last", 0) + 1)
        state[owner.words].put(f"text {record.offset}", record.word)

    with pytest.raises(StoreError, match="too large"):
        processed(owner, rows(10, 10, 20_000, 10), handle)
    assert broker.refused < 10
    assert restored(cluster)["by-word"] == {
        "last": 2,
        "text 0": "x" * 10,
        "text 1": "x" * 10,
    }


def test_commit_records_keep_the_ids_of_topics_and_older_members_read_them():
    commit = Commit(
        epoch=3,
        number=4,
        inputs={TopicPartition("orders", 0): 7},
        writes={"by-word": {b"k": b"v"}},
        topic_ids={"orders": OLD, "ünlich": NEW},
    )
    value = commit_bytes(commit)
    assert read_commit(value, name="x") == commit
    # A release without ids reads a store that it does not have.
    _, _, _, _, writes = msgpack.unpackb(value)
    assert set(writes) - {"by-word"} == {"\x00assignor/topic-ids"}
    assert all(
        isinstance(each, bytes) for pair in writes["\x00assignor/topic-ids"] for each in pair
    )
