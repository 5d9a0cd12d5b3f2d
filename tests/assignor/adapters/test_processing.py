"""What an error means for a loop of `run_tasks`: retried, or raised to its caller."""

import threading
from types import SimpleNamespace

import pytest
from kafka.errors import (
    InvalidCommitOffsetSizeError,
    KafkaConnectionError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from kafka.structs import TopicPartition as KafkaPartition

from assignor.adapters.processing import BlockingLoop, GroupConsumer
from assignor.adapters.threads import LOOP_END
from assignor.embedding import ClusterUnavailable, MemberStopped
from assignor.embedding.loops import InputWatch, PollLoop, TaskEngine
from encoding import TaskId, TopicPartition

RECORD = SimpleNamespace(topic="in", partition=0, offset=9)


class Stores:
    """Processes each record of a batch, after the errors if there are any."""

    waiting, has_rest = frozenset(), False

    def __init__(self, *errors):
        self.errors, self.work = list(errors), SimpleNamespace(ended="not begun")

    def process(self, batch, handle, *, is_over, **_):
        batch.held()
        if self.errors:
            raise self.errors.pop(0)
        for record in batch.get("p", ()):
            handle(record, SimpleNamespace(task=TaskId(0, 3)))
        return {p: len(records) for p, records in batch.items()}

    def unread(self):
        return {}


class Client:
    """Returns the batches, raises their errors, and then says that the group ends.

    Polls after that are counted.
    """

    is_closed = has_unsubscribed = False
    polls_after = 0

    def __init__(self, *batches, commits=()):
        self.batches, self.commits, self.committed = list(batches), list(commits), []
        self.input = InputWatch("none")

    @property
    def is_shutdown(self):
        return not self.batches

    def poll(self, max_records, *, waits):
        if not self.batches:
            self.polls_after += 1
            return {}
        batch = self.batches.pop(0)
        if isinstance(batch, BaseException):
            raise batch
        return batch

    def commit(self, offsets):
        result = self.commits.pop(0) if self.commits else True
        if isinstance(result, BaseException):
            raise result
        self.committed.append(offsets)
        return result

    def check(self):
        """The member is one."""

    def has_left(self):
        return False

    def begins(self, partitions, before):
        return {}

    def assigned(self):
        return {"p"}

    def positions(self):
        return {}

    def topic_ids(self, *, asks):
        return {"p": None}

    def seek(self, offsets):
        assert not offsets

    def paused(self):
        return frozenset()

    paused_by_application = paused

    def pause(self, partitions):
        assert not partitions

    def resume(self, partitions):
        assert not partitions

    def leave(self):
        self.has_unsubscribed = True


class NoWait(threading.Event):
    def wait(self, timeout=None):
        return False


def run(client, handle=print, *, stores=None):
    loop = PollLoop(max_poll_interval_ms=300_000, client_errors=(KafkaError,))
    BlockingLoop(client, loop, NoWait()).run(stores or Stores(), handle)


def raising(error):
    def fail(*_):
        raise error

    return fail


@pytest.mark.parametrize(
    "error", [KafkaConnectionError("its own"), TopicAuthorizationFailedError(), ValueError("bug")]
)
def test_an_error_of_the_function_that_processes_records_is_raised_and_nothing_committed(error):
    client = Client({"p": [RECORD]})
    with pytest.raises(type(error)) as raised:
        run(client, raising(error))
    assert raised.value is error
    assert not client.committed
    assert not client.has_unsubscribed


def test_an_unreachable_cluster_is_retried_wherever_it_shows(caplog):
    gone, unavailable = KafkaConnectionError("gone"), ClusterUnavailable("output unavailable")
    run(Client({"p": [RECORD]}, commits=[gone]))
    run(Client({"p": [RECORD]}), stores=Stores(gone))
    run(Client({"p": [RECORD]}), raising(unavailable))  # as `state.send` raises
    kept = "what is not processed or committed is kept, and tried again"
    # State stores log why they can write nothing, for all loops.
    assert len([line for line in caplog.messages if line.startswith(kept)]) == 2


def test_a_commit_that_is_refused_for_good_ends_the_loop_with_the_error():
    refused, client = InvalidCommitOffsetSizeError(), Client({"p": [RECORD]}, {})
    client.commits = [refused]
    with pytest.raises(InvalidCommitOffsetSizeError):
        run(client)
    assert client.committed == []


def test_a_commit_that_may_pass_is_repeated_for_one_poll_interval():
    client, now_s = Client(*[{"p": [RECORD]}] * 50), 0.0

    def commit(offsets):
        nonlocal now_s
        now_s += 60.0
        raise KafkaConnectionError("gone")

    client.commit = commit
    loop = PollLoop(max_poll_interval_ms=300_000, client_errors=(KafkaError,), now=lambda: now_s)
    with pytest.raises(KafkaConnectionError):
        BlockingLoop(client, loop, NoWait()).run(Stores(), print)
    assert now_s == 420.0


def test_a_fatal_error_of_an_output_ends_the_member():
    refused = ClusterUnavailable("output cannot be written")
    refused.__cause__ = TopicAuthorizationFailedError()
    client = Client({"p": [RECORD]})
    with pytest.raises(MemberStopped, match="grant READ on it"):
        run(client, raising(refused))
    assert client.has_unsubscribed


def test_offsets_that_came_late_are_committed_again_with_the_next_ones():
    client = Client({"p": [RECORD]}, {}, {}, commits=[False, False])
    run(client)
    assert client.committed == [{"p": 1}] * 3


def test_offsets_whose_commit_has_raised_are_committed_in_the_next_round():
    client = Client({"p": ["a"]}, {}, {}, commits=[KafkaConnectionError("unknown")])
    run(client)
    assert client.committed == [{"p": 1}, {}]


@pytest.mark.parametrize(
    ("commits", "polls", "left"),
    [
        ([True], 0, 0),
        ([False], 1, 0),
        ([KafkaConnectionError("unknown"), False], 2, 0),
        ([False] * 9, 5, 1),
    ],
)
def test_a_commit_that_is_refused_in_the_last_round_is_repeated(commits, polls, left, caplog):
    client = Client({"p": ["a"]}, commits=commits)
    run(client)
    assert client.polls_after == polls
    assert client.committed[-1] == {"p": 1}
    assert len([line for line in caplog.messages if "(p: 1)" in line]) == left


def test_a_commit_without_an_answer_is_not_repeated_in_the_last_round():
    """A broker that does not answer would keep the process from its end."""
    client, now_s = Client({"p": ["a"]}), 0.0

    def commit(offsets):
        nonlocal now_s
        now_s += 30.0
        return False

    client.commit = commit
    loop = PollLoop(max_poll_interval_ms=300_000, now=lambda: now_s)
    BlockingLoop(client, loop, NoWait()).run(Stores(), print)
    assert (client.polls_after, now_s) == (0, 30.0)


def test_what_waits_for_a_broker_in_a_loop_knows_what_ends_it():
    ended, seen = NoWait(), []
    loop = PollLoop(max_poll_interval_ms=300_000)
    handle = lambda *_: seen.append(LOOP_END.get())  # noqa: E731 short
    BlockingLoop(Client({"p": ["a"]}), loop, ended).run(Stores(), handle)
    assert seen == [ended]
    assert LOOP_END.get() is None


def engine_of(client):
    return TaskEngine(client, PollLoop(max_poll_interval_ms=300_000), lambda: False, print)


class Pausing(Client):
    """A client that notes what is paused and resumed; `are_paused` can be changed as by others."""

    def __init__(self, paused):
        super().__init__()
        self.are_paused, self.calls = set(paused), []

    def paused(self):
        return frozenset(self.are_paused)

    def pause(self, partitions):
        self.are_paused |= partitions
        self.calls += [("pause", each) for each in sorted(partitions)]

    def resume(self, partitions):
        self.are_paused -= partitions
        self.calls += [("resume", each) for each in sorted(partitions)]


@pytest.mark.parametrize(
    ("paused", "waiting", "calls"),
    [
        # Only what is assigned is paused, and what the application has paused stays so.
        ("", ["px"], [("pause", "p")]),
        ("p", ["p", ""], []),
        ("", ["p", "p", ""], [("pause", "p"), ("resume", "p")]),
    ],
)
def test_a_loop_resumes_what_it_has_paused_and_nothing_else(paused, waiting, calls):
    client = Pausing(paused)
    loop = engine_of(client)
    for each in waiting:
        loop._fetch_except(frozenset(each))
    assert client.calls == calls


def test_what_the_application_pauses_while_the_loop_has_it_paused_stays_paused():
    client = Pausing("")
    loop = engine_of(client)
    loop._fetch_except(frozenset("p"))
    client.paused_by_application = lambda: frozenset("p")
    loop._fetch_except(frozenset())
    assert client.calls == [("pause", "p")]


def test_a_loop_pauses_again_what_the_client_has_forgotten_in_a_rebalance():
    client = Pausing("")
    loop = engine_of(client)
    loop._fetch_except(frozenset("p"))
    client.are_paused.clear()
    loop._fetch_except(frozenset("p"))
    loop._fetch_except(frozenset())
    assert client.calls == [("pause", "p"), ("pause", "p"), ("resume", "p")]


@pytest.mark.parametrize("call", ["pause", "resume"])
def test_a_client_gets_partitions_in_its_own_form(call):
    """kafka-python and aiokafka refuse those of another class, though they are equal."""
    given = []
    consumer = SimpleNamespace(**{call: lambda *partitions: given.extend(partitions)})
    client = GroupConsumer(consumer, None, 1000, {}, "none")
    client.partition = KafkaPartition
    getattr(client, call)(frozenset({TopicPartition("in", 0)}))
    assert [(type(each), each) for each in given] == [(KafkaPartition, ("in", 0))]
