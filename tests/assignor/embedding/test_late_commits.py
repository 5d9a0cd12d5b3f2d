"""What a loop has polled or not committed yet: what becomes of it in a rebalance and at the end."""

from types import SimpleNamespace
from uuid import UUID

import pytest

from assignor.adapters.processing import result_of
from assignor.embedding import ClusterUnavailable
from assignor.embedding.loops import Engine, InputWatch, PolledBatch, PollLoop, TaskEngine
from encoding import TopicPartition

KEPT, MOVED = TopicPartition("in", 0), TopicPartition("in", 1)
GONE = ClusterUnavailable("changelogs cannot be read")


class Run:
    """A consumer and its state stores, by a script with a line for each poll.

    A line has the partitions that are assigned after the poll, what the poll raises, what the
    stores return or raise, and the positions.
    """

    is_closed = is_shutdown = has_rest = False
    waiting = frozenset()

    def __init__(self, *script):
        self.script, self.input = list(script), InputWatch("earliest")
        self.own, self.at, self.done, self.committed = set(), {}, {}, []

    def run(self, refused):
        loop = PollLoop(max_poll_interval_ms=1000, now=lambda: 0.0, client_errors=(OSError,))
        self.refused = refused
        engine = TaskEngine(self, loop, lambda: not self.script, lambda _: None)
        result_of(engine.tasks(self, lambda *_: None))
        return self.committed

    def poll(self, _, **__):
        if self.script:
            self.own, error, self.done, self.at = self.script.pop(0)
            if error is not None:
                raise error
        return {}

    def has_left(self):
        return False

    def process(self, *_, **__):
        if isinstance(self.done, Exception):
            raise self.done
        return self.done

    def commit(self, offsets):
        if offsets:
            self.committed.append(dict(offsets))
        return len(self.committed) > self.refused or not offsets

    def positions(self):
        return {p: at for p, at in self.at.items() if p in self.own}

    def assigned(self):
        return self.own

    def topic_ids(self, **_):
        return {}

    def paused(self):
        return set()

    paused_by_application = paused

    def unread(self):
        return {}

    def check(self, *_):
        pass

    seek = pause = resume = check

    def begins(self, *_):
        return {}


BOTH, AT = {KEPT, MOVED}, {KEPT: 50, MOVED: 50}
FIRST = (BOTH, None, AT, AT)
LATER = {KEPT: 50, MOVED: 80}


def test_what_was_refused_is_committed_after_the_next_poll():
    assert Run(FIRST, (BOTH, None, {}, AT)).run(1) == [AT, AT]


def test_an_offset_beyond_the_position_is_of_a_former_topic_and_is_not_committed():
    assert Run((BOTH, None, AT, {KEPT: 50, MOVED: 3})).run(0) == [{KEPT: 50}]


@pytest.mark.parametrize(
    "meanwhile",
    [({KEPT}, None, GONE, AT), ({KEPT}, OSError("gone"), {}, AT)],
    ids=["changelogs are gone", "the poll fails"],
)
def test_offsets_of_a_partition_that_has_moved_away_and_come_back_are_not_committed(meanwhile):
    """Its owner meanwhile has committed 80: the group would go back to 50."""
    assert Run(FIRST, meanwhile, (BOTH, None, {}, LATER)).run(1) == [AT, {KEPT: 50}]


class Polled:
    """Each poll returns the next record; the first commits are refused."""

    is_closed = is_shutdown = is_ended = has_rest = False
    waiting = frozenset()

    def __init__(self, refused=0):
        self.at, self.refused, self.input = 0, refused, InputWatch("earliest")

    def poll(self, _, **__):
        self.at += 1
        return {KEPT: [SimpleNamespace(topic="in", partition=0, offset=self.at - 1)]}

    def positions(self):
        return {KEPT: self.at}

    def seek(self, offsets):
        self.at = offsets.get(KEPT, self.at)

    def begins(self, *_):
        return {}

    def topic_ids(self, **_):
        return {"in": None}

    def assigned(self):
        return {KEPT}

    def paused(self):
        return frozenset()

    paused_by_application = paused

    def check(self, *_):
        pass

    has_left = pause = resume = check

    def process(self, batch, *_, **__):
        batch.held()
        self.is_ended = True
        return {KEPT: self.at}

    def unread(self):
        return {}

    def commit(self, _):
        self.refused -= 1
        return self.refused < 0


def loop():
    return PollLoop(max_poll_interval_ms=1000, now=lambda: 0.0)


def steps_of(client):
    return Engine(client, loop(), lambda: False, print).batches()


def test_a_loop_that_is_closed_in_a_poll_has_its_records_read_again():
    """As a coroutine is whose event loop is gone."""
    client = Polled()
    steps = steps_of(client)
    next(steps)()
    assert client.at == 1
    steps.close()
    assert client.at == 0


class OtherTopicMadeAnew(Polled):
    """Another topic, which has no records, has another id at each look."""

    looks = 0

    def topic_ids(self, **_):
        self.looks += 1
        return {"in": None, "other": UUID(int=self.looks)}

    def assigned(self):
        return {KEPT, TopicPartition("other", 0)}


def test_a_loop_that_is_closed_while_it_settles_a_new_topic_has_the_records_of_others_read_again():
    client = OtherTopicMadeAnew()
    steps = steps_of(client)
    assert isinstance(steps.send(next(steps)()), PolledBatch)
    asks = steps.send(next(steps)())
    assert (asks.func, client.at) == (client.topic_ids, 2)
    steps.close()
    assert client.at == 1


def test_a_loop_that_is_left_with_a_batch_reads_on_behind_it():
    client = Polled()
    steps = steps_of(client)
    assert isinstance(steps.send(next(steps)()), PolledBatch)
    steps.close()
    assert client.at == 1


@pytest.mark.parametrize("refused", [0, 1, 3])
def test_what_the_polls_between_the_last_commits_return_is_read_again(refused):
    client = Polled(refused)
    result_of(TaskEngine(client, loop(), lambda: client.is_ended, print).tasks(client, print))
    assert (client.refused, client.at) == (-1, 1)
