"""Each commit record fits into one record, if what each input record writes does."""

from types import SimpleNamespace

import pytest

from assignor.embedding.state_stores.records import COMMIT_KEY
from assignor.stores import StoreError
from tests.assignor.embedding.state_stores.logs import CHANGELOGS, INPUTS, restored

LIMIT = 1 << 20


class Broker:
    """Refuses records that are too large, as a broker and its clients do."""

    def __init__(self, access):
        self.append_all, access.append = access.append, self.append

    def append(self, records):
        if any(len(record.value or b"") > LIMIT for record in records):
            raise StoreError("a record is too large")
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
    one = member()
    Broker(one.access)
    one.assign()

    def handle(record, state):
        previous = state[one.words].get("last", 0)
        state[one.words].put("last", previous + 1)
        state[one.words].put(f"text {record.offset}", record.word)
        state[one.letters].put("same", len(record.word))

    batch = rows(*sizes)
    assert one.stores.process(batch, handle) == {INPUTS[0]: len(sizes)}
    assert len(commits(cluster)) == len(sizes)
    found = one.state()
    texts = {f"text {at}": "x" * size for at, size in enumerate(sizes)}
    assert found["by-word"] == texts | {"last": len(sizes)}
    assert found["by-letter"] == {"same": sizes[-1]}
    assert restored(cluster) == found
    # No record counts twice.
    assert one.stores.process(batch, handle) == {INPUTS[0]: len(sizes)}
    assert one.state() == found


def test_the_parts_have_the_input_offsets_of_their_records(cluster, member):
    one = member()
    Broker(one.access)
    one.assign()

    def handle(record, state):
        state[one.words].put("last", record.offset)
        state[one.words].put("text", record.word)

    with pytest.raises(StoreError, match="too large"):
        one.stores.process(rows(400_000, 1_100_000), handle)
    two = member("two")
    two.assign()
    while two.stores.waiting:
        two.poll()
    assert two.state()["by-word"] == {"last": 0, "text": "x" * 400_000}
    [inputs] = [copy.inputs for copy in two.stores._copies.values()]
    assert inputs == {INPUTS[0]: 1}


def test_many_small_writes_are_counted_with_what_surrounds_them(cluster, member):
    one = member()
    Broker(one.access)
    one.assign()

    def handle(record, state):
        for number in range(60_000):
            state[one.words].put(f"{record.offset}{number:x}", 1)

    assert one.stores.process(rows(1, 1, 1, 1), handle) == {INPUTS[0]: 4}
    assert len(one.state()["by-word"]) == 240_000


def test_a_task_that_was_lost_between_the_parts_processes_the_rest_again(cluster, member):
    one, two = member(), member("two")
    one.assign()
    seen = []

    def put(words, record, state):
        state[words].put("last", record.offset)
        state[words].put("text", record.word)

    def handle_one(record, state):
        put(one.words, record, state)
        seen.append(record.offset)
        if seen == [0, 1]:
            two.assign()
            while two.stores.waiting:
                two.stores.process({}, handle_two)

    def handle_two(record, state):
        put(two.words, record, state)

    batch = rows(400_000, 700_000)
    assert one.stores.process(batch, handle_one) == {}
    one.revoke()
    done = {}
    while not done:
        done = two.stores.process(batch if not two.stores.waiting else {}, handle_two)
    assert done == {INPUTS[0]: 2}
    assert two.state()["by-word"] == {"last": 1, "text": "x" * 700_000}
    assert two.state()["by-letter"] == {}
    assert restored(cluster) == two.state()
