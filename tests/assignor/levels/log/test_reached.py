"""The memory of reached topology versions as records of a topic of its own."""

import itertools
from random import Random

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assignor.levels.log import reached_record, read_reached_topic
from assignor.levels.log.topic import TopicRecord
from probing.topologies import HIGHEST_EPOCH, MOST_AHEAD, MOST_ENTRIES, Reached, newest_memory
from tests.nightly import examples

FORM_A, FORM_B = b"1" * 8, b"2" * 8
ENTRIES = st.builds(Reached, st.integers(0, 5), st.integers(1, 3))
MEMORIES = st.dictionaries(st.sampled_from([FORM_A, FORM_B, b"3" * 8]), ENTRIES, min_size=1)


def record(offset, value, key=None):
    return TopicRecord(offset=offset, key=key or f"k{offset}".encode(), value=value)


def written(*memories):
    nonces = map(str, itertools.count())
    return [
        TopicRecord(offset=n, key=key, value=value)
        for n, memory in enumerate(memories)
        for key, value in [reached_record(memory, nonce=next(nonces))]
    ]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(MEMORIES, max_size=5), st.integers(0, 1000))
def test_of_each_form_the_greatest_entry_stays_in_any_order_and_after_any_deletion(memories, seed):
    random = Random(seed)  # noqa: S311 drawn by Hypothesis
    records = written(*memories)
    random.shuffle(records)
    view = read_reached_topic(records)
    assert view.memory == newest_memory(*memories)
    kept = [row for row in records if row.key not in view.stale]
    assert read_reached_topic(kept).memory == view.memory
    assert read_reached_topic(kept).stale == ()
    # A writer that stops half way has deleted some of them.
    some = {key for key in view.stale if random.random() < 0.5}
    assert read_reached_topic([r for r in records if r.key not in some]).memory == view.memory


def test_a_leader_with_an_old_memory_that_writes_last_does_not_undo_an_operators_return():
    operator, leader = {FORM_A: Reached(4, 1)}, {FORM_A: Reached(3, 2)}
    view = read_reached_topic(written(operator, leader))
    assert view.memory == operator
    both = written(operator, leader, newest_memory(operator, leader))
    assert read_reached_topic(both).stale == tuple(row.key for row in both[:2])


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        msgpack.packb([1, 2]),
        msgpack.packb({"readable_since": 1}),
        msgpack.packb({"readable_since": 1, "reached": 7}),
        msgpack.packb({"readable_since": 1, "reached": [[b"short", 1, 1]]}),
        msgpack.packb({"readable_since": 1, "reached": [[FORM_A, -1, 1]]}),
        msgpack.packb({"readable_since": 1, "reached": [[FORM_A, 2**63 - 1, 1]]}),
        msgpack.packb({"readable_since": 1, "reached": [[FORM_A, 1, 0]]}),
        msgpack.packb({"readable_since": 1, "reached": [[FORM_A, 1, 2**31]]}),
        msgpack.packb({"readable_since": 1, "reached": [[FORM_A, 1, 1]] * (MOST_ENTRIES + 1)}),
        msgpack.packb({"readable_since": -1, "reached": []}),
    ],
)
def test_a_record_that_is_no_memory_is_ignored_and_named(value):
    [good] = written({FORM_B: Reached(1, 1)})
    view = read_reached_topic([good, record(1, value)], topic="g")
    assert view.memory == {FORM_B: Reached(1, 1)}
    [warning] = view.warnings
    assert warning.startswith("record 1 of g is no memory of topologies and is ignored: ")
    assert view.stale == ()


def test_a_record_of_a_later_layout_is_named_and_leaves_the_others_readable():
    later = record(1, msgpack.packb({"readable_since": 2, "form": "unknown"}), key=b"k\n")
    [good] = written({FORM_A: Reached(1, 1)})
    view = read_reached_topic([good, later])
    assert view.memory == {FORM_A: Reached(1, 1)}
    assert view.later == (
        "record 1 with key k\\n has layout 2, and this release reads only layout 1",
    )
    assert view.warnings == ()
    # Deleted, though not yet compacted.
    assert read_reached_topic([good, later, record(2, None, key=b"k\n")]).later == ()


def test_fields_of_a_compatible_layout_are_skipped():
    more = msgpack.packb({"readable_since": 1, "more": 1, "reached": [[FORM_A, 1, 1]]})
    assert read_reached_topic([record(0, more)]).memory == {FORM_A: Reached(1, 1)}


def test_a_deleted_record_does_not_count():
    [good] = written({FORM_A: Reached(1, 1)})
    assert read_reached_topic([good, record(1, None, key=good.key)]).memory == {}


def junk(number, reached):
    return [
        {n.to_bytes(8, "big"): reached for n in range(start, min(start + MOST_ENTRIES, number))}
        for start in range(0, number, MOST_ENTRIES)
    ]


@pytest.mark.parametrize("number", [MOST_ENTRIES, 10_000])
@pytest.mark.parametrize("epoch", [5, MOST_AHEAD // 2, HIGHEST_EPOCH - 1])
def test_entries_about_other_forms_displace_none(number, epoch):
    group = {FORM_A: Reached(0, 2)}
    view = read_reached_topic(written(group, *junk(number, Reached(epoch, 2**31 - 1))))
    assert view.memory[FORM_A] == Reached(0, 2)
    assert "0" not in {key.decode().partition("/")[2] for key in view.stale}


@pytest.mark.parametrize("epoch", [MOST_AHEAD // 2 + 1, 2**31 - 2, HIGHEST_EPOCH - 1])
def test_an_entry_with_an_epoch_far_ahead_replaces_none_and_is_named(epoch):
    records = written({FORM_A: Reached(0, 2)}, {FORM_A: Reached(epoch, 9), FORM_B: Reached(0, 1)})
    view = read_reached_topic(records, topic="g")
    assert view.memory == {FORM_A: Reached(0, 2), FORM_B: Reached(0, 1)}
    assert view.stale == ()
    [warning] = view.warnings
    assert warning.startswith("1 entries of g are ignored: their epoch is more than 524288 above 0")
