"""The poll loop of aiokafka: ends on fatal errors, retries after others."""

import asyncio
from functools import partial
from types import SimpleNamespace

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka import errors as kafka_errors

from assignor import ConfigError
from assignor.adapters.aiokafka import polling as aio_polling
from assignor.adapters.aiokafka.assignor import StreamsAssignor
from assignor.adapters.aiokafka.polling import commit_next, polled
from assignor.adapters.aiokafka.port import AiokafkaPort
from assignor.embedding import MemberStopped, RunningTasks
from assignor.embedding.commit_metadata import COMMIT_METADATA
from assignor.embedding.loops import PollLoop
from system_tests.broker import BrokerConfig, Fault, running_broker
from tests.assignor.rebalance.groups import TOPOLOGY
from tests.log_records import records_of

FENCED = 82

IN = TopicPartition("in", 0)


class Consumer:
    """A consumer whose `getmany` returns the given batches and raises the given errors."""

    def __init__(self, *results, instance=None, session_ms=0):
        self.results = list(results)
        self._group_instance_id, self._session_timeout_ms = instance, session_ms
        self.has_left = False

    async def commit(self):
        """Commit nothing."""

    def unsubscribe(self):
        self.has_left = True

    def assignment(self):
        return set()

    async def getmany(self, timeout_ms):
        result = self.results.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result


def assignor(*, failed=None, shutdown=False):
    return SimpleNamespace(
        driver=SimpleNamespace(has_left=lambda: True, port=AiokafkaPort(Consumer())),
        failed=failed,
        shutdown_requested=shutdown,
        check_attached_to=lambda _: None,
        raise_listener_error=lambda: None,
    )


@pytest.fixture
def pauses(monkeypatch):
    """The waits of `polled` in seconds, which take no time."""
    waits = []

    async def wait_for(coroutine, timeout_s):
        coroutine.close()
        waits.append(timeout_s)
        raise TimeoutError

    kept = {name: getattr(asyncio, name) for name in ("Event", "timeout")}
    monkeypatch.setattr(aio_polling, "asyncio", SimpleNamespace(wait_for=wait_for, **kept))
    return waits


def batches(consumer, member, *, until):
    async def collect():
        stop, seen = asyncio.Event(), []
        async for batch in polled(consumer, member, stop=stop):
            seen.append(batch)
            if batch == until:
                stop.set()
        return seen

    return asyncio.run(collect())


def test_a_closed_consumer_ends_the_loop():
    async def run():
        consumer = AIOKafkaConsumer(bootstrap_servers="127.0.0.1:1", group_id="app")
        await consumer.stop()
        async for _ in polled(consumer, assignor()):
            raise AssertionError

    with pytest.raises(MemberStopped, match="this consumer is closed; make another to go on"):
        asyncio.run(run())


def test_a_consumer_that_is_not_started_neither_polls_nor_commits():
    async def unstarted():
        consumer = AIOKafkaConsumer(bootstrap_servers="127.0.0.1:1", group_id="app")
        for work in (lambda: anext(polled(consumer, assignor())), lambda: commit_next(consumer)):
            with pytest.raises(
                ConfigError, match=r"is not started; await consumer\.start\(\) first"
            ):
                await work()
        await consumer.stop()
        for offsets in (None, {}, {IN: 7}):
            with pytest.raises(MemberStopped, match="this consumer is closed; make another"):
                await commit_next(consumer, offsets)

    asyncio.run(unstarted())


def test_batches_come_through_and_errors_that_pass_are_waited_for(pauses):
    gone = kafka_errors.KafkaConnectionError("gone")
    consumer = Consumer({}, gone, OSError("gone"), {"p": [1]})
    assert batches(consumer, assignor(), until={"p": [1]}) == [{}, {"p": [1]}]
    assert pauses == [0.1, 0.2]


@pytest.mark.parametrize(
    ("consumer", "member", "why"),
    [
        (Consumer(kafka_errors.GroupAuthorizationFailedError("app")), assignor(), "grant READ"),
        (Consumer({}), assignor(failed="no level fits"), "no level fits"),
        (
            Consumer(*[kafka_errors.KafkaError("UnknownError()")] * 2, instance="me"),
            assignor(),
            "group.in",
        ),
    ],
)
def test_what_would_come_again_ends_the_loop_with_what_to_do(pauses, consumer, member, why):
    with pytest.raises(MemberStopped, match=why):
        batches(consumer, member, until=None)


def test_a_pause_of_the_application_that_is_too_long_is_a_warning(caplog, monkeypatch):
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(aio_polling, "PollLoop", partial(PollLoop, now=lambda: now.s))
    consumer = Consumer({}, {}, {})
    consumer._max_poll_interval_ms = 300_000

    async def collect():
        count = 0
        async for _ in polled(consumer, assignor()):
            count += 1
            now.s += 400.0 * (count == 2)
            if count == 3:
                break

    asyncio.run(collect())
    [line] = [each.getMessage() for each in records_of(caplog)]
    assert "400.0 s passed between two polls, above max_poll_interval_ms=300000: " in line


def test_an_unknown_error_of_a_dynamic_member_is_waited_for(pauses):
    unknown = kafka_errors.KafkaError("UnknownError()")
    assert batches(Consumer(unknown, {"p": [1]}), assignor(), until={"p": [1]}) == [{"p": [1]}]
    assert pauses == [0.1]


def test_one_unknown_error_after_a_long_pause_of_the_application_is_waited_for(pauses, monkeypatch):
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(aio_polling, "PollLoop", partial(PollLoop, now=lambda: now.s))
    unknown = kafka_errors.KafkaError("UnknownError()")
    consumer, seen = Consumer({}, unknown, {"p": [1]}, instance="me", session_ms=45_000), []

    async def collect():
        async for batch in polled(consumer, assignor()):
            seen.append(batch)
            now.s += 50.0
            if batch:
                break

    asyncio.run(collect())
    assert seen == [{}, {"p": [1]}]


def test_a_refused_member_leaves_the_group_before_the_loop_ends():
    consumer = Consumer({})
    with pytest.raises(MemberStopped, match="no level fits"):
        batches(consumer, assignor(failed="no level fits"), until=None)
    assert consumer.has_left


class Committer:
    """Commits, or raises what is given."""

    _client = SimpleNamespace(_request_timeout_ms=40_000)

    def __init__(self, error=None, assigned=(IN,)):
        self.error, self.assigned, self.commits = error, assigned, []

    def assignment(self):
        return set(self.assigned)

    async def commit(self, offsets):
        if self.error is not None:
            raise self.error
        self.commits.append(offsets)


@pytest.mark.parametrize("offsets", [None, {IN: 7}, {IN: (7, "of the user")}])
def test_what_is_processed_is_committed_unless_others_own_it_now(offsets):
    consumer = Committer()
    assert asyncio.run(commit_next(consumer, offsets))
    # As a member, unless the user says something else.
    assert consumer.commits == [{IN: (7, COMMIT_METADATA)} if offsets == {IN: 7} else offsets]
    for error in (kafka_errors.CommitFailedError(), kafka_errors.IllegalStateError("gone")):
        assert not asyncio.run(commit_next(Committer(error), offsets))
    with pytest.raises(kafka_errors.KafkaConnectionError):
        asyncio.run(commit_next(Committer(kafka_errors.KafkaConnectionError()), offsets))


@pytest.mark.usefixtures("clock")
def test_a_commit_that_no_broker_answers_ends_with_its_request(caplog):
    class Silent(Committer):
        _client = SimpleNamespace(_request_timeout_ms=20)

        async def commit(self, offsets):
            await asyncio.Event().wait()

    assert not asyncio.run(asyncio.wait_for(commit_next(Silent(), {IN: 7}), 60))
    assert "no broker has answered within request_timeout_ms" in caplog.text


@pytest.mark.parametrize("offsets", [[1], {IN: -1}, {IN: True}, {IN: "7"}, {IN: None}, 7])
def test_what_is_no_offset_is_not_committed(offsets):
    consumer = Committer()
    with pytest.raises(ConfigError, match=r"is refused; give a (mapping of|whole number, 0)"):
        asyncio.run(commit_next(consumer, offsets))
    assert not consumer.commits


def test_nothing_to_commit_asks_nobody():
    consumer = Committer(assigned=())
    assert asyncio.run(commit_next(consumer, {}))
    assert asyncio.run(commit_next(consumer))
    assert consumer.commits == []


def test_the_groups_end_is_the_loops_end():
    assert batches(Consumer({}), assignor(shutdown=True), until=None) == []


@pytest.mark.usefixtures("clock")
@pytest.mark.slow
def test_a_member_that_was_fenced_ends_once(monkeypatch):
    monkeypatch.setattr(aio_polling, "_patience_s", lambda *_: 1.0)  # instead of a session
    listener = RunningTasks()

    async def live(broker):
        member = StreamsAssignor(TOPOLOGY, application_id="app", listener=listener)
        consumer = AIOKafkaConsumer(
            "lines",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="app",
            group_instance_id="me",
            partition_assignment_strategy=[member],
            heartbeat_interval_ms=200,
            session_timeout_ms=2_000,
        )
        member.attach(consumer)
        await consumer.start()
        try:
            async for _ in polled(consumer, member, timeout_ms=200):
                if listener.active:
                    for api in ("Heartbeat", "JoinGroup", "SyncGroup"):
                        broker.inject(Fault(api=api, error=FENCED, times=1_000_000))
        finally:
            broker.clear_faults()
            await consumer.stop()
            member.close()

    with (
        running_broker(BrokerConfig(topics={"lines": 3})) as broker,
        pytest.raises(MemberStopped, match=r"group\.instance\.id"),
    ):
        asyncio.run(live(broker))
