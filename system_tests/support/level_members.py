"""Consumers whose group follows a feature of its brokers (KIP-584), for tests."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kafka import KafkaConsumer

from assignor import Topology
from assignor.adapters.admin.client import Target, open_admin
from assignor.adapters.admin.features import update_features
from assignor.adapters.admin.level_sources import ClusterFeature
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.kafka_python.polling import polled
from assignor.embedding import MemberStopped
from assignor.observe import AssignmentTaken, Observation, SubscriptionWritten
from probing.features import (
    ASSIGNMENT_PROTOCOL,
    UNKNOWN_LEVELS,
    FeatureUpdate,
    FinalizedLevels,
    UpdateKind,
)

FEATURE = "transaction.version"
LEVELS = {1: {ASSIGNMENT_PROTOCOL: 11}, 2: {ASSIGNMENT_PROTOCOL: 101}}
LIMIT_S = 180


class LevelMember:
    """A consumer in a thread that polls until it is closed.

    Args:
        servers: addresses of the cluster.
        node: index of the server that it polls for levels.
        topic, group: topic that it reads, and its group id.
        release: release that it emulates.
        levels: level of `FEATURE` -> levels of the group.
        settings: further arguments of the assignor.

    Attributes:
        assignor, consumer: assignor and Kafka consumer.
        observations: events of its assignor.
        levels_written: for each subscription: (version, level of the protocol, 0 if unknown).
        polls: how many times it polled for levels.
        error: why it stopped, or None.
    """

    def __init__(
        self,
        servers: Sequence[str],
        node: int,
        *,
        topic: str = "words",
        group: str = "app",
        release: str = "native",
        levels: Mapping[int, Mapping[str, int]] = LEVELS,
        settings: Mapping[str, Any] = MappingProxyType({"level_poll_s": 0.2}),
    ) -> None:
        self.observations: list[Observation] = []
        self.levels_written: list[tuple[int, int]] = []
        self.polls = 0
        self._source = ClusterFeature(servers[node], FEATURE, levels)
        self._finds = bool(levels)
        self.error: str | None = None
        self.assignor = StreamsAssignor(
            Topology().add_source("words", topics=[topic]).add_processor("n", parents=["words"]),
            application_id=group,
            release=release,
            observer=self._observe,
            internal_topics=None,
            level_source=self._poll,
            **settings,
        )
        self.consumer = KafkaConsumer(
            topic,
            bootstrap_servers=list(servers),
            group_id=group,
            partition_assignment_strategy=[self.assignor],
            session_timeout_ms=60_000,  # no session may expire in these tests
            heartbeat_interval_ms=100,
        )
        self.assignor.attach(self.consumer)
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            for _ in polled(self.consumer, self.assignor, stop=self.stop):
                pass
        except MemberStopped as error:
            self.error = str(error)

    def _observe(self, event: Observation) -> None:
        self.observations.append(event)
        if isinstance(event, SubscriptionWritten):
            level = self.assignor.levels.level_of(ASSIGNMENT_PROTOCOL)
            self.levels_written.append((event.version, level))

    def _poll(self) -> FinalizedLevels:
        self.polls += 1
        # Without levels it learns them from the leader; an empty answer would count as the latest.
        return self._source() if self._finds else UNKNOWN_LEVELS

    @property
    def epoch(self) -> int:
        """Epoch of the levels that it uses."""
        return self.assignor.levels.epoch

    @property
    def written(self) -> list[int]:
        """The version of each of its subscriptions."""
        return [
            event.version for event in self.observations if isinstance(event, SubscriptionWritten)
        ]

    @property
    def generation(self) -> int:
        """Generation of its last assignment; -1 while it waits for one."""
        for event in reversed(tuple(self.observations)):
            if isinstance(event, SubscriptionWritten):
                break
            if isinstance(event, AssignmentTaken):
                return event.generation
        return -1

    def since(self, generation: int) -> list[tuple[str, int]]:
        """Return its events after the assignment of a generation.

        Returns: ("wrote", version) for each subscription; ("took", generation) for each assignment,
            followed by ("writes next", version).
        """
        trace: list[tuple[str, int]] = []
        for event in tuple(self.observations):
            if isinstance(event, SubscriptionWritten):
                trace.append(("wrote", event.version))
            elif isinstance(event, AssignmentTaken):
                trace += [("took", event.generation), ("writes next", event.next_version)]
        return trace[trace.index(("took", generation)) + 2 :]

    @property
    def tasks(self) -> list[str]:
        """Its active tasks."""
        return sorted(str(task) for task in self.assignor.tasks.active)

    def close(self) -> None:
        """Stop, and leave the group."""
        self.stop.set()
        self.thread.join(LIMIT_S)
        self.consumer.close(autocommit=False)
        self.assignor.close()


def until(holds: Callable[[], bool], what: Callable[[], object]) -> None:
    """Wait for a condition.

    Raises:
        TimeoutError: it did not hold in time; the message has `what()`.
    """
    end = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"still {what()} after {LIMIT_S} s")
        time.sleep(0.05)


def finalize(servers: Sequence[str], level: int, kind: UpdateKind = UpdateKind.UPGRADE) -> None:
    """Change the level of `FEATURE` with an UpdateFeatures request.

    Raises:
        RuntimeError: the cluster refused.
    """
    with open_admin(Target(servers=tuple(servers), timeout_ms=120_000)) as admin:
        (answer,) = update_features(
            admin, [FeatureUpdate(feature=FEATURE, level=level, kind=kind)], dry_run=False
        )
    if answer.error:
        raise RuntimeError(answer.why)
