"""The poll loop: ends for one reason, waits for the others, commits what still can be committed."""

import threading
from types import SimpleNamespace

import pytest
from kafka import errors as kafka_errors

from assignor import LeaderRefused
from assignor.adapters.kafka_python import polling as kafka_polling
from assignor.adapters.kafka_python.polling import commit_next, polled
from assignor.embedding import MemberStopped


class Consumer:
    """Polls give what is listed: a batch, or an error that is raised."""

    def __init__(self, *results):
        self.results, self.committed = list(results), None

    def poll(self, timeout_ms):
        one = self.results.pop(0)
        if isinstance(one, BaseException):
            raise one
        return one

    def commit(self, offsets):
        if self.results and isinstance(self.results[0], BaseException):
            raise self.results.pop(0)
        self.committed = {where: at.offset for where, at in offsets.items()}


def assignor(*, silent=False, shutdown=False):
    return SimpleNamespace(failed=None, is_silent=silent, shutdown_requested=shutdown)


def test_batches_come_through_until_somebody_says_stop():
    stop, consumer = threading.Event(), Consumer({}, {"p": [1]})
    seen = []
    for batch in polled(consumer, assignor(), stop=stop):
        seen.append(batch)
        if batch:
            stop.set()
    assert seen == [{}, {"p": [1]}]


def test_a_fatal_error_ends_the_loop_after_one_poll():
    consumer = Consumer(kafka_errors.FencedInstanceIdError(), {"p": [1]})
    with pytest.raises(MemberStopped, match=r"group\.instance\.id"):
        list(polled(consumer, assignor()))
    assert consumer.results == [{"p": [1]}]


@pytest.mark.parametrize(
    "error", [kafka_errors.KafkaConnectionError(), LeaderRefused("too old"), OSError("gone")]
)
def test_other_errors_are_waited_for_and_polled_again(error):
    stop, consumer = threading.Event(), Consumer(error, error, {"p": [1]})
    for batch in polled(consumer, assignor(), stop=stop):
        assert batch == {"p": [1]}
        stop.set()
    assert consumer.results == []


def test_an_application_error_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        list(polled(Consumer(ZeroDivisionError()), assignor()))


def test_a_consumer_that_went_silent_is_fenced(monkeypatch):
    monkeypatch.setattr(kafka_polling, "_SILENT_S", 0.0)
    with pytest.raises(MemberStopped, match="FencedInstanceIdError"):
        list(polled(Consumer({}, {}, {}), assignor(silent=True)))


def test_the_groups_end_is_the_loops_end():
    assert list(polled(Consumer({}), assignor(shutdown=True))) == []


def test_what_is_processed_is_committed_unless_the_group_went_on():
    consumer = Consumer()
    assert commit_next(consumer, {"p": 7})
    assert consumer.committed == {"p": 7}
    assert not commit_next(Consumer(kafka_errors.CommitFailedError()), {"p": 7})
    with pytest.raises(kafka_errors.KafkaConnectionError):
        commit_next(Consumer(kafka_errors.KafkaConnectionError()), {"p": 7})


def test_nothing_to_commit_asks_nobody():
    assert commit_next(None, {})
