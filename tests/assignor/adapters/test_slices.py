"""A batch that takes longer than the time between two polls: processed in parts, by virtual time.

After public reports: aiokafka 848, confluent-kafka-python 552. Two members took such a batch from
each other for ever, and nothing was committed.
"""

import threading
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest

from assignor.adapters.processing import BlockingLoop
from assignor.embedding import DictStore, MemberStopped
from assignor.embedding.loops import PollLoop
from assignor.embedding.state_stores import WAIT_S
from tests.assignor.adapters.scripted import Client
from tests.assignor.embedding.state_stores.logs import INPUTS, TASK, WORDS, Cluster, Member

ORDERS, VISITS = INPUTS
INTERVAL_MS = 4000
RECORD_S = 0.5


class Application:
    """A member whose function takes half a second of virtual time for each record."""

    def __init__(self, cluster, script=(), **settings):
        self.cluster, self.clock = cluster, SimpleNamespace(now_s=0.0)
        self.member = Member(cluster, kind=DictStore, **settings)
        self.client = Client(cluster, self.clock, script)
        self.ended, self.handled = threading.Event(), []
        self.member.assign()

    def handle(self, record, state):
        self.client.is_handling = True
        self.clock.now_s += RECORD_S
        self.member.count(record, state)
        self.handled.append((record.offset, record.word))
        self.client.is_handling = False
        if len(self.handled) == sum(len(rows) for rows in self.cluster.input.values()):
            self.client.is_shutdown = True

    def run(self):
        loop = PollLoop(max_poll_interval_ms=INTERVAL_MS, now=lambda: self.clock.now_s)
        BlockingLoop(self.client, loop, self.ended).run(self.member.stores, self.handle)


@pytest.fixture
def cluster():
    made = Cluster()
    made.write(*WORDS * 4)
    return made


def test_aiokafka_848_and_confluent_kafka_python_552_it_polls_and_commits_within_a_batch(cluster):
    application = Application(cluster)
    application.run()
    assert len(application.handled) == len(set(application.handled)) == 32
    assert application.member.state() == cluster.expected()
    polls_s = application.client.polls_s
    assert max(later - begin for begin, later in pairwise(polls_s)) == INTERVAL_MS / 2000
    assert application.client.waits == [True] + [False] * 7
    # Each part is committed before the next one.
    committed = [sum(offsets.values()) for offsets in application.client.commits if offsets]
    assert committed == [4, 8, 12, 16, 20, 24, 28, 32]


def test_no_wait_for_a_broker_is_longer_than_what_keeps_the_membership(cluster):
    application, limits_s = Application(cluster), []
    access = application.member.access
    append = access.append
    access.append = lambda records: limits_s.append(WAIT_S.get()) or append(records)
    application.run()
    # The first half of the interval is for the function that processes records.
    assert set(limits_s) == {0.4 * INTERVAL_MS / 1000}
    assert WAIT_S.get() is None


def ending_after(application, polls):
    """Have the loop end with so many polls."""
    application.client.script = [None] * (polls - 1) + [application.ended.set]
    application.run()


def test_no_poll_waits_between_the_slices_of_a_restore(cluster):
    first = Application(cluster)
    first.run()
    application = Application(cluster, restore_s=0.0)
    ending_after(application, 5)
    assert application.member.state() == cluster.expected()
    assert application.client.waits == [True, False, True, True, True]


def test_a_poll_waits_while_a_restore_gets_nothing(cluster):
    first = Application(cluster)
    first.run()
    application = Application(cluster, restore_s=0.0)
    application.member.access.read = lambda *_, **_more: 0
    ending_after(application, 4)
    assert application.client.waits == [True, False, True, True]


def test_no_poll_waits_between_the_slices_in_which_a_standby_catches_up(cluster, monkeypatch):
    monkeypatch.setattr("assignor.embedding.state_stores.task_stores._FOLLOW_S", 0.0)
    first = Application(cluster)
    first.run()
    application = Application(cluster)
    application.member.assign(active=False)
    ending_after(application, 4)
    assert application.member.state() == cluster.expected()
    assert application.client.waits == [True, False, True, True]


def test_a_rest_that_is_revoked_is_dropped_and_not_committed(cluster):
    def move_away():
        application.member.revoke()
        application.member.stores.on_tasks_assigned({}, {})
        application.client.assignment.clear()

    def end():
        application.client.is_shutdown = True

    application = Application(cluster, [None, None, move_away, None, end])
    application.run()
    assert len(application.handled) == 8
    committed = [offsets for offsets in application.client.commits if offsets]
    assert committed == [{ORDERS: 2, VISITS: 2}, {ORDERS: 4, VISITS: 4}]


def test_a_partition_that_comes_back_is_read_from_its_first_record_that_was_dropped(cluster):
    def rebalance():
        application.member.revoke()
        application.member.stores.on_tasks_assigned({}, {})

    application = Application(cluster, [None, None, rebalance])
    application.client.script.append(application.member.assign)
    application.run()
    assert Counter(application.handled).most_common(1)[0][1] == 1
    assert len(application.handled) == 32
    assert application.member.state() == cluster.expected()


def test_a_stop_ends_the_loop_after_the_record_that_is_processed(cluster):
    application = Application(cluster)
    handle = application.handle

    def stopping(record, state):
        handle(record, state)
        if len(application.handled) == 3:
            application.ended.set()

    application.handle = stopping
    application.run()
    assert len(application.handled) == 3
    assert application.client.commits[-1] == {ORDERS: 2, VISITS: 1}


def test_one_record_that_takes_longer_than_the_interval_is_still_progress(cluster, caplog):
    application = Application(cluster)
    handle = application.handle

    def slow(record, state):
        application.clock.now_s += INTERVAL_MS / 1000 * (record.offset == 1)
        handle(record, state)

    application.handle = slow
    application.run()
    assert len(application.handled) == 32
    lines = [line for line in caplog.messages if "the function that processes records" in line]
    assert len(lines) == 2
    why = "took 4.5 s for the record at offset 1, above max_poll_interval_ms=4000"
    assert all(why in line for line in lines)


class Removed(Client):
    """The group removes the member while it processes too long; the next poll calls `rejoin`.

    What it has processed since is not committed, and read again.
    """

    def __init__(self, cluster, clock, rejoin, polls):
        super().__init__(cluster, clock, [])
        self.rejoin, self.polls_left = rejoin, polls
        self.is_removed, self.committed = False, Counter()

    def poll(self, max_records, *, waits):
        if self.is_removed:
            self.is_removed = False
            self.position = Counter(self.committed)
            self.rejoin()
        self.polls_left -= 1
        self.is_shutdown = self.polls_left <= 0
        return super().poll(max_records, waits=waits)

    def commit(self, offsets):
        if self.is_removed:
            return False
        self.committed.update({p: at - self.committed[p] for p, at in offsets.items()})
        return super().commit(offsets)


def test_a_record_that_always_takes_too_long_does_not_stop_other_partitions(cluster, caplog):
    """Each time another member has claimed the tasks meanwhile: the state refuses the writes."""
    caplog.set_level("INFO")
    application = Application(cluster)
    member, handle, starts = application.member, application.handle, []

    def rejoin():
        member.stores.on_tasks_lost({TASK: INPUTS}, {})
        member.assign()

    def slow(record, state):
        handle(record, state)
        if record in cluster.input[ORDERS][1:2]:
            starts.append(dict(client.committed))
            application.clock.now_s += INTERVAL_MS / 1000
            client.is_removed = True
            rival = Member(cluster, kind=DictStore)
            rival.assign()
            while rival.stores.waiting:
                rival.stores.process({}, rival.count)
            rival.stores.close()

    client = application.client = Removed(cluster, application.clock, rejoin, polls=30)
    application.handle = slow
    application.run()
    assert client.committed == {ORDERS: 1, VISITS: 16}
    # It is not started again before all others are committed.
    assert starts[0] == {}
    assert len(starts) > 2
    assert all(each == {ORDERS: 1, VISITS: 16} for each in starts[1:])
    # The second time is an error, which counts.
    assert ["at least 2 times" in line for line in client.reports[:2]] == [True, False]
    assert "at least 3 times" in client.reports[1]
    named = [line for line in caplog.messages if "orders [0]" in line]
    assert any("offset 1, above max_poll_interval_ms=4000" in line for line in named)
    assert any("offset 1 waits" in line for line in named)


def test_an_error_in_the_middle_keeps_what_is_processed_for_the_next_run(cluster):
    application = Application(cluster)
    handle = application.handle

    def failing(record, state):
        if len(application.handled) == 5:
            application.handle = handle
            raise ZeroDivisionError
        handle(record, state)

    application.handle = failing
    with pytest.raises(ZeroDivisionError):
        application.run()
    application.run()
    assert len(application.handled) == len(set(application.handled)) == 32
    assert application.member.state() == cluster.expected()


def test_a_member_that_is_stopped_while_a_rest_is_kept_raises(cluster):
    def refused():
        raise MemberStopped("refused")

    application = Application(cluster, [None, None, refused])
    application.client.leave = lambda: None
    with pytest.raises(MemberStopped, match="refused"):
        application.run()
