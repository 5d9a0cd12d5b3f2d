"""The poll loop: ends on fatal errors, retries after others, commits if possible."""

import threading
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka import errors as kafka_errors

from assignor import ConfigError
from assignor.adapters.kafka_python import polling as kafka_polling
from assignor.adapters.kafka_python.polling import commit_next, polled
from assignor.embedding import MemberStopped
from assignor.embedding.commit_metadata import is_members_commit
from assignor.embedding.loops import PollLoop
from assignor.errors import LeaderRefused, MemberRefused
from tests.log_records import records_of

IN = TopicPartition("in", 0)


class Consumer:
    """A consumer whose polls return the given batches and raise the given errors."""

    assigned = frozenset()

    def __init__(self, *results):
        self.results, self.committed, self.has_left = list(results), None, False
        self.config = {"max_poll_interval_ms": 300_000, "session_timeout_ms": 45_000}
        self.config |= {"partition_assignment_strategy": [], "request_timeout_ms": 7000}

    def assignment(self):
        return self.assigned

    def unsubscribe(self):
        self.has_left = True

    def poll(self, timeout_ms):
        result = self.results.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result

    def commit(self, offsets, timeout_ms):
        assert timeout_ms == 7000
        if self.results and isinstance(self.results[0], BaseException):
            raise self.results.pop(0)
        self.committed = {where: at.offset for where, at in offsets.items()}
        assert all(is_members_commit(at.metadata) for at in offsets.values())


def assignor(*, silent=False, shutdown=False, failed=None):
    return SimpleNamespace(
        failed=failed,
        is_silent=silent,
        shutdown_requested=shutdown,
        check_attached_to=lambda _: None,
        raise_listener_error=lambda: None,
    )


def test_batches_are_returned_until_the_stop():
    stop, consumer = threading.Event(), Consumer({}, {"p": [1]})
    seen = []
    for batch in polled(consumer, assignor(), stop=stop):
        seen.append(batch)
        if batch:
            stop.set()
    assert seen == [{}, {"p": [1]}]


def test_a_pause_of_the_application_that_is_too_long_is_a_warning(caplog, monkeypatch):
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(kafka_polling, "PollLoop", partial(PollLoop, now=lambda: now.s))
    consumer, stop = Consumer({}, {}, {}, {}), threading.Event()
    for number, _ in enumerate(polled(consumer, assignor(), stop=stop)):
        if number == 1:
            now.s += 50.0
        if number == 3:
            stop.set()
    [line] = [each.getMessage() for each in records_of(caplog)]
    assert "50.0 s passed between two polls, above session_timeout_ms=45000: " in line


def test_a_fatal_error_ends_the_loop_after_one_poll():
    consumer = Consumer(kafka_errors.FencedInstanceIdError(), {"p": [1]})
    with pytest.raises(MemberStopped, match=r"group\.instance\.id"):
        list(polled(consumer, assignor()))
    assert consumer.results == [{"p": [1]}]


@pytest.mark.parametrize(
    "error", [kafka_errors.KafkaConnectionError(), LeaderRefused("too old"), OSError("gone")]
)
def test_other_errors_are_waited_for_and_polled_again(error):
    pauses, consumer = [], Consumer(error, error, {"p": [1]})
    stop = SimpleNamespace(is_set=lambda: not consumer.results, wait=pauses.append)
    assert list(polled(consumer, assignor(), stop=stop)) == [{"p": [1]}]
    assert pauses == [0.1, 0.2]


def test_a_poll_that_succeeds_ends_the_growth_of_the_pauses():
    gone, pauses = kafka_errors.KafkaConnectionError(), []
    stop = SimpleNamespace(is_set=lambda: len(pauses) == 4, wait=pauses.append)
    consumer = Consumer(gone, gone, {}, gone, gone)
    assert list(polled(consumer, assignor(), stop=stop)) == [{}]
    assert pauses == [0.1, 0.2, 0.1, 0.2]


def test_an_application_error_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        list(polled(Consumer(ZeroDivisionError()), assignor()))


def test_a_consumer_that_went_silent_is_fenced(monkeypatch):
    monkeypatch.setattr(kafka_polling, "_SILENT_S", 0.0)
    with pytest.raises(MemberStopped, match="FencedInstanceIdError"):
        list(polled(Consumer({}, {}, {}), assignor(silent=True)))


class LateConsumer(Consumer):
    """A consumer whose polls take 5 s; it is silent after the polls in `silent`."""

    def __init__(self, clock, member, silent):
        super().__init__(*({} for _ in silent))
        self.clock, self.member, self.silent = clock, member, silent

    def poll(self, timeout_ms):
        self.clock.now += 5.0
        self.member.is_silent = self.silent[len(self.silent) - len(self.results)]
        return super().poll(timeout_ms)


@pytest.mark.parametrize(
    ("silent", "ends"),
    [
        ((True, False, False), False),
        ((False, True, False), False),
        ((True, False, True), False),
        ((False, True, True), True),
    ],
)
def test_one_silent_look_after_a_long_poll_is_no_fencing(monkeypatch, silent, ends):
    virtual, stop, member, seen = SimpleNamespace(now=0.0), threading.Event(), assignor(), []
    monkeypatch.setattr(kafka_polling, "time", SimpleNamespace(monotonic=lambda: virtual.now))
    with pytest.raises(MemberStopped) if ends else nullcontext():
        for batch in polled(LateConsumer(virtual, member, silent), member, stop=stop):
            seen.append(batch)
            if len(seen) == len(silent):
                stop.set()
    assert len(seen) == len(silent) - ends


@pytest.mark.parametrize(
    ("result", "failed"),
    [({}, "no level fits"), (MemberRefused("no level fits"), None)],
)
def test_a_refused_member_leaves_the_group_before_the_loop_ends(result, failed):
    consumer = Consumer(result)
    with pytest.raises(MemberStopped, match="no level fits"):
        list(polled(consumer, assignor(failed=failed)))
    assert consumer.has_left


def test_the_groups_end_is_the_loops_end():
    assert list(polled(Consumer({}), assignor(shutdown=True))) == []


class Owner(Consumer):
    """A consumer that has a partition."""

    assigned = frozenset({IN})


def test_what_is_processed_is_committed_unless_the_group_went_on():
    consumer = Owner()
    assert commit_next(consumer, {IN: 7})
    assert consumer.committed == {IN: 7}
    for why in (
        kafka_errors.CommitFailedError(),
        kafka_errors.RebalanceInProgressError(),
        kafka_errors.KafkaTimeoutError(),
    ):
        assert not commit_next(Owner(why), {IN: 7})
    assert not commit_next(consumer, {("other", 0): 7})
    assert consumer.committed == {IN: 7}
    with pytest.raises(kafka_errors.KafkaConnectionError):
        commit_next(Owner(kafka_errors.KafkaConnectionError()), {IN: 7})


@pytest.mark.parametrize(
    "offsets", [[1], {IN: -1}, {IN: True}, {IN: "7"}, {IN: None}, {"in": 7}, {("in",): 7}, 7]
)
def test_what_is_no_offset_is_not_committed(offsets):
    consumer = Owner()
    with pytest.raises(
        ConfigError, match=r"is refused; give a (mapping of|whole number, 0|pair of topic)"
    ):
        commit_next(consumer, offsets)
    assert consumer.committed is None


def test_nothing_to_commit_sends_no_request():
    consumer = Owner()
    assert commit_next(consumer, {})
    assert consumer.committed is None
