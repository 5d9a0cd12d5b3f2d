"""A cluster in memory, which can be slow or fail, for tests of the cluster thread."""

import threading
import time

from assignor import Topology

PARTS = (
    Topology()
    .add_source("w", topics=["words"])
    .add_processor("c", parents=["w"])
    .add_state_store("counts", processors=["c"])
    .subtopologies("app")
)
CHANGELOG = "app-counts-changelog"
LIMIT_S = 120


class Cluster:
    """Topics by name; answers like an admin client, counts requests, fails on demand."""

    def __init__(self, **topics):
        self.topics = dict(topics)
        self.policy = "compact"
        self.configs = {}
        self.failure = None
        self.refusal = ""
        self.ends = 5
        self.created, self.closed = [], 0
        self.gate = threading.Event()
        self.gate.set()

    def partition_counts(self, topics):
        assert self.gate.wait(LIMIT_S)
        if self.failure:
            raise self.failure
        return {name: self.topics[name] for name in topics if name in self.topics}

    def topic_configs(self, topics):
        return {topic: {"cleanup.policy": self.policy} | self.configs for topic in topics}

    def create_topics(self, topics, *, replication_factor):
        self.created += [topic.name for topic in topics]
        if self.refusal:
            return {topic.name: self.refusal for topic in topics}
        self.topics |= {topic.name: topic.partitions for topic in topics}
        return {}

    def end_offsets(self, partitions):
        return dict.fromkeys(partitions, self.ends)

    def committed(self, partitions):
        return dict.fromkeys(partitions, 3)

    def close(self):
        self.closed += 1


def until(holds, step=lambda: time.sleep(0.005)):
    """Do a step, such as a poll, until a condition holds."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < end, "not in time"
        step()
