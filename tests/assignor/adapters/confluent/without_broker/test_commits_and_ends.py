"""Parts of the consumer alone, without a broker: commits, lost partitions, pauses, the end."""

import asyncio
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as Position
from kafka.errors import FencedInstanceIdError, GroupAuthorizationFailedError
from kafka.errors import KafkaError as ClientError

from assignor import Topology
from assignor.adapters.confluent.commits import Commits
from assignor.adapters.confluent.committer import Commit, Committer, RejectedOffset, _request
from assignor.adapters.confluent.events import Change, Mailbox, Rebalanced
from assignor.adapters.confluent.member import ConfluentMember
from assignor.adapters.confluent.offsets import StoredOffsets
from assignor.adapters.confluent.processing import ConsumerLoop, run_tasks
from assignor.adapters.confluent.serving import Serving
from assignor.adapters.confluent.settings import divided
from assignor.adapters.confluent.topics import new_assignor
from assignor.adapters.kafka_python import StreamsAssignor
from assignor.embedding import PollErrors
from assignor.embedding.loops import InputWatch
from assignor.embedding.loops.rules import LoopFacts, Step, Then, decide
from assignor.errors import ConfigError
from encoding import TopicPartition

SETTINGS = divided({"bootstrap.servers": "a:1", "group.id": "g", "enable.auto.offset.store": False})
FIRST, SECOND, THIRD = (TopicPartition("words", number) for number in range(3))
UNKNOWN = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
COMMITS = SimpleNamespace(stored=StoredOffsets())


@pytest.fixture
def mailbox():
    return Mailbox()


@pytest.fixture
def commits(mailbox):
    """Commits with two stored offsets; nothing is sent."""
    made = Commits(SETTINGS, mailbox)
    made.stored.store([Position(*FIRST, 5), Position(*SECOND, 7)])
    return made


def newer(commits):
    return [(each.partition, each.offset) for each in commits.stored.newer()]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        ({}, []),
        ({FIRST: UNKNOWN}, [(0, 5)]),
        ({FIRST: UNKNOWN, SECOND: UNKNOWN}, [(0, 5), (1, 7)]),
    ],
)
def test_what_a_broker_refused_is_committed_again(commits, is_async, outcome, left):
    commits.submit(commits.stored.newer(), is_async=is_async).finish(outcome)
    assert newer(commits) == left


def test_what_no_broker_took_is_committed_again(commits):
    commits.submit(commits.stored.newer(), is_async=False).fail(UNKNOWN)
    assert newer(commits) == [(0, 5), (1, 7)]


@pytest.mark.parametrize(("change", "is_lost"), [(Change.LOST, False), (Change.REVOKED, True)])
def test_nothing_is_committed_later_of_lost_partitions(mailbox, commits, change, is_lost):
    serving = Serving(SETTINGS, mailbox, commits, lambda: is_lost)
    serving.read = serving.owned = frozenset({FIRST})
    left = []
    reader = SimpleNamespace(incremental_unassign=left.extend)
    mailbox.post(Rebalanced(change=change, partitions=(FIRST,), served=lambda: None))
    assert serving.serve(reader) is None
    assert left == [Position(*FIRST)]
    assert newer(commits) == [(1, 7)]
    assert (serving.read, serving.owned) == (frozenset(), frozenset())


def test_what_is_stored_of_partitions_that_are_given_up_is_committed_once(mailbox, commits):
    serving = Serving(SETTINGS, mailbox, commits, lambda: False)
    serving.read = frozenset({FIRST, SECOND})
    member = SimpleNamespace(_consumer=None, topics=frozenset())
    consumer = SimpleNamespace(_serving=serving, _commits=commits, _member=member)
    with serving.removing(consumer, [FIRST]):
        assert newer(commits) == [(0, 5), (1, 7)]
    [commit] = commits.committer._waiting
    assert commit.offsets == [Position(*FIRST, 5)]
    assert newer(commits) == [(1, 7)]
    assert serving.read == {SECOND}


@pytest.mark.parametrize(
    ("generation", "sent"),
    [
        (SimpleNamespace(generation_id=3, member_id="m"), (3, "m", "static")),
        (None, (-1, "", None)),
    ],
)
def test_a_static_member_commits_with_its_instance_id(generation, sent):
    coordinator = SimpleNamespace(group_id="g", group_instance_id="static")
    request = _request(coordinator, generation, {FIRST: Position(*FIRST, 5)})
    found = (request.generation_id_or_member_epoch, request.member_id, request.group_instance_id)
    assert found == sent


@pytest.fixture
def sending():
    """Return a committer, the deadlines of its requests, and a function that sends them."""
    committer, deadlines, calls = Committer(), [], []

    async def committed(coordinator, offsets, deadline_s):
        deadlines.append(deadline_s)
        return {}

    committer._committed = committed
    manager = SimpleNamespace(call_soon=lambda *call: calls.append(call))
    committer.connect(SimpleNamespace(_coordinator=SimpleNamespace(_manager=manager)))

    def send():
        [(call, consumer)] = calls
        asyncio.run(call(consumer))

    return committer, deadlines, send


def submitted(committer, *deadlines):
    made = [
        Commit(offsets=[Position(*FIRST, 5)], deadline_s=each, finished=lambda _: None)
        for each in deadlines
    ]
    for commit in made:
        committer.submit(commit)
    return made


def test_commits_that_are_sent_together_have_the_time_of_the_latest(sending):
    committer, deadlines, send = sending
    made = submitted(committer, 7.0, 9.0, 8.0)
    send()
    assert deadlines == [9.0]
    assert all(commit.ended.is_set() for commit in made)
    assert (committer.submitted, committer.ended) == (3, 3)


def test_a_late_commit_that_is_being_sent_does_not_expire(sending):
    committer, _, send = sending
    [commit] = submitted(committer, 0.0)
    committer.expire()
    assert not commit.ended.is_set()
    send()
    assert commit.ended.is_set()
    assert commit.error is None


def test_a_late_commit_without_a_connection_expires():
    committer = Committer()
    late, early = submitted(committer, 0.0, float("inf"))
    committer.expire()
    assert late.error.code() == KafkaError._WAIT_COORD
    assert not early.ended.is_set()


class Given:
    """A handover that is served, abandoned or late, at the second look."""

    def __init__(self, *, has_partitions=True, is_served=True, late_s=0.0):
        self.has_partitions, self.is_served, self._late_s = has_partitions, is_served, late_s
        self.changes, self.looks, self.has_left = [], 0, False

    def post(self, change, served):
        self.changes.append(change)
        self.served = served
        return self.has_partitions

    @property
    def is_abandoned(self):
        self.looks += 1
        assert self.has_partitions, "it waits for what nobody serves"
        if self.looks > 1 and self.is_served:
            self.served()
        return self.looks > 1 and not self.is_served

    def late_s(self):
        return self._late_s

    def leave_if_late(self):
        self.has_left = True


@pytest.fixture
def revoked(mailbox, commits, monkeypatch):
    """Have a member give up everything; return what it told the handover, and whether it left."""
    monkeypatch.setattr("assignor.adapters.confluent.member.TICK_S", 0.0)

    def revoke(given, *, is_lost=False, closes=False):
        member = ConfluentMember(SETTINGS, None, mailbox, commits, None)
        generation = SimpleNamespace(is_lost=lambda: is_lost)
        member._consumer = SimpleNamespace(
            _coordinator=SimpleNamespace(_generation=generation),
            _net=SimpleNamespace(run=lambda call: call()),
        )
        member._wanted.closes = closes
        member._revoke_all(given)
        return given.changes, given.has_left

    return revoke


def test_a_member_that_ends_waits_for_its_application(revoked):
    assert revoked(Given()) == ([Change.REVOKED], False)
    assert revoked(Given(is_served=False)) == ([Change.REVOKED], False)
    assert revoked(Given(), is_lost=True) == ([Change.LOST], False)


def test_a_member_without_partitions_ends_at_once(revoked):
    assert revoked(Given(has_partitions=False)) == ([Change.REVOKED], False)


def test_a_slow_application_loses_its_partitions_unless_it_closes(revoked):
    assert revoked(Given(late_s=1.0)) == ([Change.REVOKED], True)
    assert revoked(Given(late_s=1.0), closes=True) == ([Change.REVOKED], False)


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        (GroupAuthorizationFailedError, "retry in 10 s ("),
        (FencedInstanceIdError, "this member cannot go on ("),
    ],
)
def test_only_a_fatal_error_says_that_the_member_cannot_go_on(
    mailbox, commits, monkeypatch, kind, begins
):
    member = ConfluentMember(SETTINGS, None, mailbox, commits, None)

    def fail():
        raise kind

    monkeypatch.setattr(member, "_step", fail)
    member._try_step(PollErrors())
    error = mailbox.events[0].error
    assert error.fatal() is (kind is FencedInstanceIdError)
    assert error.str().startswith(begins)


def test_a_consumer_of_another_client_is_refused_with_its_own_adapter():
    with pytest.raises(ConfigError, match=r"object is not a Consumer .*adapters\.kafka_python"):
        run_tasks(object(), None, print)


def test_before_subscribe_each_client_has_its_own_remedy(mailbox):
    topology = Topology().add_source("words", topics=["words"])
    assignor = new_assignor(topology, None, {}, SETTINGS, mailbox)
    with pytest.raises(ConfigError, match="has not joined its group; subscribe it"):
        assignor.hosts_for_key("counts", b"k")
    with pytest.raises(ConfigError, match=r"with streams_consumer$"):
        StreamsAssignor(topology).hosts_for_key("counts", b"k")


@pytest.mark.parametrize("is_whole", [False, True], ids=["one partition", "all"])
@pytest.mark.parametrize(
    ("code", "then"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, Then.STOP),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, Then.STOP),
        (KafkaError.FENCED_INSTANCE_ID, Then.STOP),
        (KafkaError.UNKNOWN, Then.RETRY),
        (KafkaError.OFFSET_METADATA_TOO_LARGE, Then.RETRY),
        (KafkaError.ILLEGAL_GENERATION, Then.LATER),
        (KafkaError.UNKNOWN_MEMBER_ID, Then.LATER),
        (KafkaError.REBALANCE_IN_PROGRESS, Then.LATER),
        (KafkaError.NOT_COORDINATOR, Then.LATER),
        (KafkaError._WAIT_COORD, Then.LATER),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, Then.POLL),
    ],
)
def test_a_refused_commit_has_the_row_that_it_has_with_kafka_python(code, then, is_whole, caplog):
    caplog.set_level("INFO")
    error = KafkaError(code, "refused")

    def commit(offsets, asynchronous):
        if is_whole:
            raise KafkaException(error)
        rejected = RejectedOffset(*FIRST, 5)
        rejected.error = error
        return [rejected, SimpleNamespace(topic="other", error=None)]

    serving = SimpleNamespace(input=SimpleNamespace(watch=InputWatch("none")))
    consumer = SimpleNamespace(commit=commit, _serving=serving, _commits=COMMITS)
    loop = ConsumerLoop(consumer, 0.1, 1)
    if then in {Then.LATER, Then.POLL}:
        assert loop.commit({FIRST: 5}) is (then is Then.POLL)
    else:
        with pytest.raises(ClientError) as raised:
            loop.commit({FIRST: 5})
        facts = LoopFacts(step=Step.PROCESS, error=raised.value, is_clients=True)
        assert decide(facts).then is then
    assert len(caplog.messages) == (then in {Then.LATER, Then.POLL})


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            KafkaError._UNKNOWN_PARTITION,
            r"in \[0\] does not exist, as far as librdkafka knows: it ",
        ),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, r"in \[0\] does not exist, as far as librdkafka knows"),
        (KafkaError._TIMED_OUT, "_TIMED_OUT"),
    ],
)
def test_a_partition_that_librdkafka_does_not_know_is_a_sentence_and_waited_for(code, says):
    def ask(partition, timeout):
        raise KafkaException(KafkaError(code))

    serving = SimpleNamespace(input=SimpleNamespace(watch=InputWatch("none")))
    consumer = SimpleNamespace(get_watermark_offsets=ask, _serving=serving, _commits=COMMITS)
    loop = ConsumerLoop(consumer, 0.1, 1)
    with pytest.raises((KafkaException, ClientError), match=says) as raised:
        loop.ranges([TopicPartition("in", 0)])
    facts = LoopFacts(step=Step.POLL, error=raised.value, is_clients=True)
    assert decide(facts).then is Then.RETRY
