"""A client of the loops without a broker: what a poll returns follows from a script."""

from collections import Counter

from assignor.embedding.loops import InputWatch
from tests.assignor.embedding.state_stores.logs import INPUTS


class Client:
    """A consumer of both inputs: its polls return everything that is not paused.

    `script` has functions that are called in the polls, the first one in the first poll.
    """

    is_closed = False

    def __init__(self, cluster, clock, script):
        self.cluster, self.clock, self.script = cluster, clock, list(script)
        self.position, self.are_paused, self.assignment = Counter(), set(), set(INPUTS)
        self.polls_s, self.waits, self.commits, self.reports = [], [], [], []
        self.is_shutdown = self.is_handling = False
        self.input = InputWatch("none")

    def poll(self, max_records, *, waits):
        assert not self.is_handling, "a poll within the function that processes records"
        assert max_records is None
        self.polls_s.append(self.clock.now_s)
        self.waits.append(waits)
        if self.script and (step := self.script.pop(0)) is not None:
            step()
        batch = {}
        for partition in sorted(self.assignment - self.are_paused):
            batch[partition] = self.cluster.input[partition][self.position[partition] :]
            self.position[partition] = len(self.cluster.input[partition])
        return batch

    def check(self):
        """The member is one."""

    def begins(self, partitions, before):
        return {}

    def assigned(self):
        return self.assignment

    def positions(self):
        return dict(self.position)

    def topic_ids(self, *, asks):
        return {partition.topic: None for partition in INPUTS}

    def seek(self, offsets):
        for partition in offsets.keys() & self.assignment:
            self.position[partition] = offsets[partition]

    def paused(self):
        return frozenset(self.are_paused)

    def paused_by_application(self):
        return frozenset()

    def pause(self, partitions):
        self.are_paused |= partitions

    def resume(self, partitions):
        self.are_paused -= partitions

    def commit(self, offsets):
        self.commits.append(dict(offsets))
        return True

    def leave(self):
        raise AssertionError

    def has_left(self):
        return True

    def report(self, why):
        self.reports.append(why)
