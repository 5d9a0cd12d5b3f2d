"""What the loop of blocking clients does when its input changes, with a log in memory."""

import threading
from types import SimpleNamespace
from uuid import UUID

import pytest
from kafka import TopicPartition
from kafka import errors as kp_errors

from assignor.adapters.processing import BlockingLoop, result_of
from assignor.embedding.loops import InputWatch, PollLoop, settle

IN = TopicPartition("in", 0)
OLD, NEW = UUID(int=1), UUID(int=2)


class Client:
    """A consumer of one partition; `script` has functions, one before each poll, then it ends."""

    is_closed = False

    def __init__(self, *script, start=0, end=10, at=0, committed=0):
        self.script, self.start, self.end, self.at = list(script), start, end, at
        self.id, self.is_assigned, self.committed = OLD, True, committed
        self.seeks, self.asked = [], []

    @property
    def is_shutdown(self):
        return not self.script

    def poll(self, max_records, *, waits):
        self.script.pop(0)(self)
        if not self.is_assigned:
            return {}
        if self.at is None:
            self.at = self.committed
        if self.at is None:
            raise kp_errors.NoOffsetForPartitionError({IN})
        if not self.start <= self.at <= self.end:
            raise kp_errors.OffsetOutOfRangeError({IN: self.at})
        begin, self.at = self.at, min(self.at + 2, self.end)
        records = [SimpleNamespace(offset=n) for n in range(begin, self.at)]
        return {IN: records} if records else {}

    def check(self):
        """The member is one."""

    def begins(self, partitions, before):
        return {}

    def assigned(self):
        return {IN} if self.is_assigned else set()

    def positions(self):
        return {IN: self.at} if self.is_assigned and self.at is not None else {}

    def topic_ids(self, *, asks):
        return {"in": self.id} if self.is_assigned else {}

    def ranges(self, partitions):
        assert set(partitions) == {IN}
        if self.asked:
            raise self.asked.pop()
        return {IN: (self.start, self.end)}

    def seek(self, offsets):
        self.seeks.append(dict(offsets))
        self.at = offsets.get(IN, self.at)

    def leave(self):
        raise AssertionError

    def has_left(self):
        return False


class NoWait(threading.Event):
    def wait(self, timeout=None):
        return False


def delivered(client, reset="earliest"):
    loop = PollLoop(max_poll_interval_ms=60_000, client_errors=(kp_errors.KafkaError,))
    client.input = InputWatch(reset)
    batches = BlockingLoop(client, loop, NoWait()).batches()
    return [record.offset for batch in batches for record in batch.get(IN, ())]


def wait(client):
    """Nothing changes."""


def made_anew(client, end=6):
    client.id, client.start, client.end = NEW, 0, end


def released(client):
    client.is_assigned = False


def assigned_anew(client, at=None, committed=0):
    client.is_assigned, client.at, client.committed = True, at, committed


def test_a_topic_that_is_made_anew_with_more_records_is_read_from_its_first_one(caplog):
    client = Client(wait, wait, lambda c: made_anew(c, end=9), *[wait] * 5)
    assert delivered(client) == [0, 1, 2, 3, *range(9)]
    [line] = [record.getMessage() for record in caplog.records]
    assert "its former one was read up to offset 4; the new one is read from its first" in line


def test_a_topic_that_is_made_anew_with_fewer_records_is_read_from_its_first_one(caplog):
    client = Client(wait, wait, lambda c: made_anew(c, end=3), *[wait] * 5)
    assert delivered(client, "latest") == [0, 1, 2, 3, 0, 1, 2]
    [line] = [record.getMessage() for record in caplog.records]
    assert "its former one was read up to offset 4; the new one is read from its first" in line


@pytest.mark.parametrize("committed", [0, 3])
def test_no_record_of_the_poll_that_finds_a_new_topic_is_lost(caplog, committed):
    """Its positions are behind records that are not delivered yet."""
    back = lambda c: (made_anew(c), assigned_anew(c, committed=committed))  # noqa: E731 short
    client = Client(wait, released, back, *[wait] * 5)
    assert delivered(client) == [0, 1, *range(committed, 6)]
    [line] = [record.getMessage() for record in caplog.records]
    assert f"reading begins at offset {committed} of 6" in line


def test_records_are_not_lost_if_the_cluster_does_not_answer_then():
    back = lambda c: (made_anew(c), assigned_anew(c))  # noqa: E731 short
    client = Client(wait, released, back, *[wait] * 6)
    client.asked = [kp_errors.KafkaConnectionError("gone")]
    assert delivered(client) == [0, 1, *range(6)]


def test_a_topic_that_comes_back_without_an_offset_of_the_group(caplog):
    back = lambda c: (made_anew(c), assigned_anew(c, committed=None))  # noqa: E731 short
    client = Client(wait, released, back, *[wait] * 5)
    assert delivered(client) == [0, 1, *range(6)]
    [line] = [record.getMessage() for record in caplog.records]
    assert "made anew since this member last read it; reading begins at offset 0 of 6" in line


@pytest.mark.parametrize(("reset", "begin"), [("earliest", 0), ("latest", 10)])
def test_a_logical_offset_of_the_client_is_where_the_policy_says(caplog, reset, begin):
    client = Client(at=None)
    client.input, client.begins = InputWatch(reset), lambda *_: {IN: -2}
    client.input.note({"in": OLD}, [IN])
    client.input.note({}, [])
    client.id = NEW
    assert result_of(settle(client, {})) == {IN: begin}
    assert f"reading begins at offset {begin} of 10, by auto_offset_reset: none" in caplog.text
    assert client.input.take_settled() == {IN: True}
    # It has read on meanwhile.
    client.input.note({}, [])
    client.id, client.at = OLD, 4
    assert result_of(settle(client, {})) == {IN: 4}
    assert "reading begins at offset 4 of 10, by auto_offset_reset: none" in caplog.text
    client.input.take_settled()
    client.at, client.begins = None, lambda *_: {}
    assert result_of(settle(client, {IN: None})) == {IN: begin}
    assert client.input.take_settled() == {IN: False}


@pytest.mark.parametrize(("reset", "begin"), [("earliest", 4), ("latest", 10)])
@pytest.mark.parametrize(("at", "words"), [(2, "were deleted"), (12, "is beyond the end, 10")])
def test_lost_positions_go_where_the_policy_says_with_a_warning(caplog, at, words, reset, begin):
    client = Client(*[wait] * 5, start=4, at=at)
    assert delivered(client, reset) == [*range(begin, 10)]
    [line] = [record.getMessage() for record in caplog.records]
    assert words in line
    assert f"at offset {begin} (auto_offset_reset={reset})" in line


def test_a_log_that_was_cut_off_is_read_from_there(caplog):
    def cut(client):
        client.end = 5
        raise kp_errors.LogTruncationError({IN: SimpleNamespace(offset=3)})

    client = Client(wait, wait, wait, cut, *[wait] * 2)
    assert delivered(client) == [0, 1, 2, 3, 4, 5, 3, 4]
    [line] = [record.getMessage() for record in caplog.records]
    assert "lost records from offset 3 on, and the topic was read up to offset 6" in line


def test_a_cluster_that_does_not_answer_is_asked_again(caplog):
    client = Client(*[wait] * 6, start=4, at=2)
    client.asked = [kp_errors.KafkaConnectionError("gone")]
    assert delivered(client) == [*range(4, 10)]
    assert "retry in" in caplog.text
