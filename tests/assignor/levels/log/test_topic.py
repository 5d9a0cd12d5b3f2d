"""The feature log as records of a compacted topic: one winner for any compaction."""

import itertools

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assignor.levels.log import Note
from assignor.levels.log.records import LogState, encode_batch, snapshot
from assignor.levels.log.topic import (
    NOBODY,
    TopicRecord,
    TopicView,
    change_record,
    check_counted,
    read_topic,
    topic_name,
)
from assignor.stores import LaterRelease, StoreError
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    PERSISTENT_METADATA,
    TASK_PLACEMENT,
    FinalizedLevels,
    LevelRange,
)
from tests.nightly import examples
from tests.versions import LATER as LATER_VERSION

NOTE = Note(at_ms=1, who="ada", why="try it")
MEMBERS = {"m1": {ASSIGNMENT_PROTOCOL: LevelRange(min=1, max=101)}}


class Topic:
    """A topic whose cleaner runs when the test calls it."""

    def __init__(self):
        self.records, self.ends = [], 0
        self.nonces = itertools.count()

    def write(self, key, value):
        self.records.append(TopicRecord(offset=self.ends, key=key, value=value))
        self.ends += 1

    def view(self):
        return read_topic(self.records)

    def decide(self, levels, view=None, members=MEMBERS):
        view = view or self.view()
        nonce = f"n{next(self.nonces)}"
        return change_record(view, levels, NOTE, nonce=nonce, members=members)

    def change(self, levels, *, deletes=None):
        """Change levels; a writer that crashes deletes only this number of stale records."""
        change = self.decide(levels)
        self.write(change.key, change.value)
        view = self.view()
        check_counted(view, change)
        for key in view.stale[:deletes]:
            self.write(key, None)
        return change

    def compact(self, below=None):
        """Keep the last record of every key and remove tombstones; the tail is unchanged."""
        below = self.ends if below is None else below
        last = {r.key: r.offset for r in self.records if r.offset < below}
        self.records = [
            r
            for r in self.records
            if r.offset >= below or (last[r.key] == r.offset and r.value is not None)
        ]


@pytest.fixture
def topic():
    return Topic()


def test_an_empty_topic_has_no_levels(topic):
    assert topic.view() == TopicView()
    assert topic.view().head == NOBODY
    assert topic_name("orders") == "orders-feature-levels"


@pytest.mark.kip("584-2", "core")
def test_changes_follow_one_another(topic):
    topic.change({ASSIGNMENT_PROTOCOL: 11})
    topic.change({TASK_PLACEMENT: 2})
    view = topic.view()
    assert view.state.levels.levels == {ASSIGNMENT_PROTOCOL: 11, TASK_PLACEMENT: 2}
    assert view.state.levels.epoch == 2
    assert view.state.note == NOTE


def test_an_unknown_level_is_refused(topic):
    with pytest.raises(StoreError, match="has no level"):
        topic.decide({ASSIGNMENT_PROTOCOL: LATER_VERSION})


def test_of_two_changes_at_the_same_moment_the_first_wins_for_all(topic):
    topic.change({ASSIGNMENT_PROTOCOL: 11})
    seen = topic.view()
    first = topic.decide({ASSIGNMENT_PROTOCOL: 101}, seen)
    second = topic.decide({TASK_PLACEMENT: 2}, seen)
    for change in (first, second):
        topic.write(change.key, change.value)
    view = topic.view()
    check_counted(view, first)
    with pytest.raises(StoreError, match=r"at the same time by ada \(epoch 2\).*try again"):
        check_counted(view, second)
    assert view.state.levels.levels == {ASSIGNMENT_PROTOCOL: 101}
    topic.compact()
    assert topic.view().state == view.state
    topic.change({TASK_PLACEMENT: 2})
    topic.compact()
    assert topic.view().state.levels.epoch == 3


def test_the_state_before_the_last_change_stays_in_the_topic(topic):
    for level in (11, 101, 11, 101):
        topic.change({ASSIGNMENT_PROTOCOL: level})
    topic.compact()
    assert len(topic.records) == 2
    before = read_topic(topic.records[:1]).state
    assert (before.levels.epoch, before.levels.levels) == (3, {ASSIGNMENT_PROTOCOL: 11})


def test_members_are_kept_where_the_level_knows_them_and_dropped_below_it(topic):
    assert topic.change({PERSISTENT_METADATA: 1}).after.ranges_by_member == {}
    assert topic.change({PERSISTENT_METADATA: 2}).after.ranges_by_member == MEMBERS
    change = topic.change({PERSISTENT_METADATA: 1})
    assert "the supported levels of 1 members (m1)" in change.dropped[0]
    assert topic.view().state.ranges_by_member == {}


def test_records_of_others_are_passed_over_with_a_warning(topic):
    topic.change({ASSIGNMENT_PROTOCOL: 11})
    for junk in (b"", b"\xc1", b"hello", msgpack.packb(["a"])):
        topic.write(b"junk", junk)
    view = topic.view()
    assert view.state.levels.level_of(ASSIGNMENT_PROTOCOL) == 11
    assert len(view.warnings) == 4
    assert b"junk" in view.stale


def batch(**changed):
    fields = {"format": 2, "readable_since": 1, "epoch": 1, "snapshot": True}
    return msgpack.packb(fields | {"levels": [[ASSIGNMENT_PROTOCOL, 11]]} | changed)


JUNK = {
    "no batch": (b"junk", "unpack"),
    "an empty batch": (b"", "incomplete"),
    "a batch without fields": (msgpack.packb({}), "readable_since"),
    "an impossible level": (batch(levels=[[ASSIGNMENT_PROTOCOL, 2**40]]), str(2**40)),
    "a level that is no number": (batch(levels=[[ASSIGNMENT_PROTOCOL, "11"]]), "'11'"),
    "a note that is no note": (batch(note=[1]), "not enough values"),
    "a format that contradicts itself": (batch(readable_since=99), "a format below"),
    "a state that is no bytes": ("text", "a state of type str"),
}


@pytest.mark.parametrize("name", sorted(JUNK))
@pytest.mark.parametrize("is_first", [False, True])
def test_a_record_with_a_body_that_is_no_state_is_ignored_and_named(topic, name, is_first):
    body, why = JUNK[name]
    if not is_first:
        topic.change({ASSIGNMENT_PROTOCOL: 11})
    topic.write(b"junk", msgpack.packb([1, topic.view().head, body]))
    if is_first:
        topic.change({ASSIGNMENT_PROTOCOL: 11}, deletes=0)
    view = read_topic(topic.records, topic="g-feature-levels")
    assert view.state.levels.levels == {ASSIGNMENT_PROTOCOL: 11}
    [warning] = view.warnings
    offset = 0 if is_first else 1
    prefix = f"record {offset} of g-feature-levels is no feature log record and is ignored: "
    assert warning.startswith(prefix)
    assert why in warning
    topic.change({ASSIGNMENT_PROTOCOL: 101})
    topic.compact()
    assert topic.view().warnings == ()
    assert topic.view().state.levels.levels == {ASSIGNMENT_PROTOCOL: 101}


def test_of_many_junk_records_the_first_are_named(topic):
    for number in range(30):
        topic.write(b"junk%d" % number, msgpack.packb([0, -1, b""]))
    assert len(topic.view().warnings) == 9
    assert topic.view().warnings[-1].startswith("22 more records of ")


LATER = [[2, 0, b"", "more"], [2], [1, 0, batch(format=99, readable_since=99)]]


@pytest.mark.parametrize("value", LATER)
def test_a_record_of_a_later_release_is_refused_whatever_its_shape(topic, value):
    topic.change({ASSIGNMENT_PROTOCOL: 11})
    topic.write(b"k", msgpack.packb(value))
    with pytest.raises(LaterRelease, match="later release"):
        topic.view()


def test_a_layout_from_the_future_is_refused(topic):
    topic.write(b"k", msgpack.packb([9, -1, b""]))
    with pytest.raises(StoreError, match="has layout 9; this release reads only layout 1"):
        topic.view()


@example([("change", 0), *[("race", 0)] * 2, *[("change", 0)] * 2, ("half", 19495)])
@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("change", "dies", "race", "late", "compact", "half")),
            st.integers(0, 2**16),
        ),
        max_size=25,
    )
)
def test_no_acknowledged_change_is_lost_whatever_is_compacted_when(steps):
    topic, acknowledged, old = Topic(), TopicView().state, TopicView()
    for kind, number in steps:
        level = {ASSIGNMENT_PROTOCOL: (11, 101)[number % 2]}
        if kind == "change":
            acknowledged = topic.change(level).after
        elif kind == "dies":
            acknowledged = topic.change(level, deletes=number % 4).after
        elif kind == "race":
            seen = topic.view()
            first, second = topic.decide(level, seen), topic.decide({TASK_PLACEMENT: 1}, seen)
            for change in (first, second):
                topic.write(change.key, change.value)
            acknowledged = first.after
        elif kind == "late" and topic.view().head != NOBODY and old.head != topic.view().head:
            change = topic.decide(level, old)
            topic.write(change.key, change.value)
        elif kind == "compact":
            topic.compact()
        elif kind == "half":
            topic.compact(number % (topic.ends + 1))
        if number % 3 == 0:
            old = topic.view()
        assert topic.view().state == acknowledged


@pytest.mark.kip("384-8", "core")
def test_a_record_of_the_topic_has_the_format_of_the_setting(topic):
    """Up, down and up again; the compatible format 2 is written from the start."""
    for level, log_format in ((None, 2), (1, 2), (2, 3), (None, 3), (1, 2), (2, 3)):
        change = topic.change(
            {TASK_PLACEMENT: 2} if level is None else {PERSISTENT_METADATA: level}
        )
        fields = msgpack.unpackb(msgpack.unpackb(change.value)[-1])
        since = {2: 1, 3: 3}[log_format]
        assert (fields["format"], fields["readable_since"]) == (log_format, since)
        assert ("members" in fields) == (log_format == 3)
        assert topic.view().state.levels == change.after.levels


def test_no_change_follows_the_last_epoch_that_readers_take():
    state = LogState(levels=FinalizedLevels(levels={TASK_PLACEMENT: 1}, epoch=2**63 - 1))
    topic = Topic()
    topic.write(b"k", msgpack.packb([1, NOBODY, encode_batch(snapshot(state), log_format=1)]))
    assert topic.view().state.levels == state.levels
    with pytest.raises(StoreError, match="delete the log and finalize its levels again"):
        topic.change({TASK_PLACEMENT: 2})
