"""Offsets that a loop has not committed yet, and what becomes of them in a rebalance."""

import pytest

from assignor.adapters.processing import result_of
from assignor.embedding import ClusterUnavailable
from assignor.embedding.loops import InputWatch, PollLoop, TaskEngine
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


@pytest.mark.parametrize(
    "meanwhile",
    [({KEPT}, None, GONE, AT), ({KEPT}, OSError("gone"), {}, AT)],
    ids=["changelogs are gone", "the poll fails"],
)
def test_offsets_of_a_partition_that_has_moved_away_and_come_back_are_not_committed(meanwhile):
    """Its owner meanwhile has committed 80: the group would go back to 50."""
    assert Run(FIRST, meanwhile, (BOTH, None, {}, LATER)).run(1) == [AT, {KEPT: 50}]
