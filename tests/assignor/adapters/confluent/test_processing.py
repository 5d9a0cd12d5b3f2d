"""`run_tasks`: records of confluent-kafka into state stores, restored by the next member."""

import threading
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaError, Producer

from assignor import JSON, TEXT, ConfigError, DictStore, RunningTasks, TaskStores, Topology
from assignor.adapters.confluent import run_tasks
from assignor.adapters.confluent.errors import commit_error
from assignor.adapters.kafka_python import KafkaChangelogs
from assignor.embedding import MemberStopped
from assignor.embedding.loops import log_late_commit
from tests.assignor.adapters.confluent.harness import GROUP, LIMIT_S, committed, servers_of
from tests.assignor.embedding.clusters import until
from tests.log_records import records_of

COUNTING = (
    Topology()
    .add_source("words", topics=["words"])
    .add_processor("count", parents=["words"])
    .add_state_store("counts", processors=["count"])
)
COUNTS = DictStore("counts", key=TEXT, value=JSON)
MANUAL = {"enable.auto.commit": False}


def write(broker, *words):
    producer = Producer({"bootstrap.servers": servers_of(broker), "log_level": 0})
    for word in words:
        producer.produce("words", key=word.encode(), partition=len(word) % 4)
    assert producer.flush(LIMIT_S) == 0


def count(message, state):
    word = message.key().decode()
    state[COUNTS].put(word, state[COUNTS].get(word, 0) + 1)


@contextmanager
def running(broker, consumer, handle=count):
    """Run a member on a thread; yield a function that returns the counts, and the stores."""
    access = KafkaChangelogs(bootstrap_servers=broker.bootstrap_servers)
    stores = TaskStores(COUNTING, [COUNTS], application_id=GROUP, access=access)
    stop, failures = threading.Event(), []
    member = consumer(MANUAL, topology=COUNTING, listener=stores)

    def run():
        try:
            run_tasks(member, stores, handle, timeout=0.1, stop=stop)
        except Exception as error:  # noqa: BLE001 the test looks at it
            failures.append(error)
        finally:
            member.close()
            stores.close()

    def counts():
        tasks = sorted(stores.active) if not stores.waiting else []
        return dict(row for task in tasks for row in stores[task][COUNTS].items())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield counts, member, failures
    finally:
        stop.set()
        thread.join(LIMIT_S)
        assert not thread.is_alive()


def test_words_are_counted_and_the_next_member_goes_on(broker, consumer):
    write(broker, "a", "bb", "a")
    with running(broker, consumer) as (counts, _, failures):
        until(lambda: counts() == {"a": 2, "bb": 1})
        until(lambda: sum(committed(broker).values()) == 3)
    assert not failures
    write(broker, "bb", "ccc")
    with running(broker, consumer) as (counts, member, failures):
        until(lambda: counts() == {"a": 2, "bb": 2, "ccc": 1})
        assert not failures
        # Nothing stays paused after the restoration.
        write(broker, "dddd", "a")
        until(lambda: counts() == {"a": 3, "bb": 2, "ccc": 1, "dddd": 1})
        member._member._end("refused")
        until(lambda: failures)
    assert isinstance(failures[0], MemberStopped)
    assert "refused" in str(failures[0])


def test_a_function_that_processes_records_may_not_poll_or_commit(broker, consumer):
    """The batch is not finished: its other records would be committed, or never be returned."""
    refused = []

    def handle(message, state):
        for call in (member.poll, member.consume, member.commit):
            with pytest.raises(RuntimeError, match="before its batch is finished") as raised:
                call()
            refused.append(str(raised.value).partition(" ")[0])

    write(broker, "a")
    with running(broker, consumer, handle) as (_, member, failures):
        until(lambda: len(refused) == 3 or failures)
        until(lambda: sum(committed(broker).values()) == 1 or failures)
    assert not failures
    assert refused == ["poll", "consume", "commit"]


def test_a_record_that_is_too_slow_is_one_warning(broker, consumer, monkeypatch, caplog):
    monkeypatch.setitem(MANUAL, "max.poll.interval.ms", 3000)
    monkeypatch.setitem(MANUAL, "session.timeout.ms", 3000)
    slow = []

    def handle(message, state):
        if not slow:
            slow.append(message.offset())
            until(lambda: broker.groups()[GROUP].members == ())
        count(message, state)

    write(broker, "a")
    with running(broker, consumer, handle) as (_, _, failures):
        until(lambda: sum(committed(broker).values()) == 1 or failures)
    assert not failures
    lines = [each for each in records_of(caplog) if each.name.startswith("assignor")]
    [line] = [each.getMessage() for each in lines if "exist yet" not in each.getMessage()]
    assert line.startswith("words [1]: the function that processes records took ")
    assert "this member left the group meanwhile" in line


def test_after_a_record_that_is_too_slow_the_next_one_waits_for_the_member_to_be_back(
    broker, consumer, monkeypatch
):
    """librdkafka returns its error before partitions are taken away; work of then is refused."""
    monkeypatch.setitem(MANUAL, "max.poll.interval.ms", 3000)
    monkeypatch.setitem(MANUAL, "session.timeout.ms", 3000)
    begun = []

    def handle(message, state):
        begun.append((message.offset(), len(broker.groups()[GROUP].members)))
        if len(begun) == 1:
            until(lambda: broker.groups()[GROUP].members == ())
        count(message, state)

    write(broker, "a", "a")
    with running(broker, consumer, handle) as (counts, _, failures):
        until(lambda: sum(committed(broker).values()) == 2 or failures)
        assert counts() == {"a": 2}
    assert not failures
    assert begun == [(0, 1), (1, 1)]


@pytest.mark.parametrize("code", ["_ASSIGNMENT_LOST", "_FATAL", "_DESTROY"])
def test_a_commit_that_was_not_sent_is_no_broker_that_does_not_answer(code, caplog):
    caplog.set_level("INFO")
    log_late_commit(commit_error(KafkaError(getattr(KafkaError, code), "the reason")))
    assert [(each.levelname, each.getMessage()) for each in records_of(caplog)] == [
        ("INFO", "not committed: CommitFailedError: the reason")
    ]


def test_what_would_process_nothing_or_commit_too_early_is_refused(consumer):
    stores = TaskStores(COUNTING, [COUNTS], application_id=GROUP, access=None)
    for config, listener, why in (
        ({}, stores, 'set "enable.auto.commit": False'),
        (MANUAL, None, "not the listener of the consumer"),
        (MANUAL, RunningTasks(), "not the listener of the consumer"),
        (MANUAL | {"group.id": "other"}, stores, "application_id='words-group'"),
    ):
        member = consumer(config, topology=COUNTING, listener=listener)
        with pytest.raises(ConfigError, match=why):
            run_tasks(member, stores, count)
    with pytest.raises(ConfigError, match=r"stop=5 is refused; give a threading\.Event"):
        run_tasks(member, stores, count, stop=5)
