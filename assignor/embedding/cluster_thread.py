"""The thread that talks to the cluster, so that a leader never blocks its client.

It keeps one value, `LeaderFacts`, up to date: counts of the source topics, internal topics (which
it creates when this member leads), ends of the changelogs. The client's thread reads the value and
asks for a newer one; it never waits. What is not there in time is unknown (KIP-441).
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from assignor.embedding.errors import ClusterUnavailable
from assignor.embedding.internal_topics import (
    ClusterAccess,
    InternalTopic,
    InternalTopicSettings,
    TopicFound,
    internal_topics,
    topic_problem,
)
from assignor.embedding.leader_facts import NOTHING_FOUND, LeaderFacts, TopicState
from assignor.logs import line_logger
from assignor.topology import Subtopology, plan_tasks
from encoding import RebalanceError, TopicPartition

_log = line_logger(__name__)

# Asked again while something is missing or failed: doubled up to a minute.
_FIRST_RETRY_S = 0.2
_LAST_RETRY_S = 60.0
# Two looks are never nearer to each other than this, however often a group rebalances.
_LEAST_BETWEEN_S = 0.1
# Ends of changelogs that are older say too little about lags.
_OFFSETS_MAX_AGE_S = 30.0
# A leader looks this often, so that a rebalance that comes out of the blue finds ends to go by.
_LEADER_EVERY_S = 10.0


class LeaderProvider:
    """What the leader needs to know of the cluster, always at hand, never waited for.

    Args:
        connect: opens the cluster; called on the thread, and again after a failure.
        subtopologies: of the application.
        settings: how internal topics are created.
        on_ready: called on the thread when the leader's last answer is out of date.
        on_error: called on the thread with each new sentence of what is wrong.
        now: seconds, any clock that only goes forward.
    """

    def __init__(
        self,
        connect: Callable[[], ClusterAccess],
        subtopologies: Sequence[Subtopology],
        *,
        settings: InternalTopicSettings | None = None,
        on_ready: Callable[[], None] = lambda: None,
        on_error: Callable[[str], None] = lambda _: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._subtopologies = tuple(subtopologies)
        self._settings = settings or InternalTopicSettings()
        self._on_ready = on_ready
        self._on_error = on_error
        self._now = now
        self._facts = NOTHING_FOUND
        self._offsets_at = float("-inf")
        self._looked = 0
        self._answered_by: Mapping[str, int] | None = None
        self._said: dict[str, frozenset[str]] = {}
        self._access: ClusterAccess | None = None
        self._leads = False
        self._asked = False
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cluster-facts", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def facts(self) -> LeaderFacts:
        """What is known now; returns at once."""
        with self._changed:
            if self._now() - self._offsets_at > _OFFSETS_MAX_AGE_S:
                return replace(self._facts, end_offsets=None)
            return self._facts

    def join(self) -> None:
        """A rebalance begins, and this member may come to lead it: look; returns at once."""
        with self._changed:
            self._leads = False
            self._asked = True
            self._changed.notify_all()

    def lead(self, used: LeaderFacts, *, waits: bool) -> None:
        """This member answered the group: look on until the next rebalance; returns at once.

        From now on missing topics are created, and `on_ready` is called once the usable topics
        are others than the answer was made with.

        Args:
            used: the facts that it answered by.
            waits: some tasks wait for internal topics, so look now.
        """
        with self._changed:
            self._leads = True
            self._answered_by = _usable(used.topics)
            self._asked = self._asked or waits
            self._changed.notify_all()

    def close(self, timeout_s: float = 5.0) -> None:
        """End the thread and close the cluster; waits for a request under way at most so long."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    # On the thread

    def _run(self) -> None:
        retry_s = 0.0
        try:
            while self._wait(retry_s):
                try:
                    complete = self._look()
                except Exception as error:  # noqa: BLE001 a client may raise anything; go on
                    self._failed(error)
                    complete = False
                with self._changed:
                    self._looked += 1
                    self._changed.notify_all()
                retry_s = 0.0 if complete else min(2 * retry_s or _FIRST_RETRY_S, _LAST_RETRY_S)
        finally:
            self._disconnect()

    def _wait(self, retry_s: float) -> bool:
        """Until it is time to look; False when closed."""
        with self._changed:
            if self._looked:
                self._changed.wait_for(lambda: self._closed, _LEAST_BETWEEN_S)
            self._changed.wait_for(
                lambda: self._asked or self._closed,
                retry_s or (_LEADER_EVERY_S if self._leads else None),
            )
            self._asked = False
            return not self._closed

    def _look(self) -> bool:
        """One look at everything; True when there is nothing left to wait for."""
        access = self._access = self._access or self._connect()
        sources = self._sources()
        counts = access.partition_counts(sources)
        plan = plan_tasks(self._subtopologies, counts)
        wanted = internal_topics(self._subtopologies, plan, self._settings)
        found = self._found(access, wanted)
        missing = [topic for topic in wanted if topic.name not in found]
        with self._changed:
            leads = self._leads
        failed: Mapping[str, str] = {}
        if missing and leads:
            factor = self._settings.replication_factor
            failed = access.create_topics(missing, replication_factor=factor)
            found |= self._found(access, missing)
        topics = {name: TopicState(partitions=0, problem=why) for name, why in failed.items()}
        topics |= {
            topic.name: TopicState(
                partitions=found[topic.name].partitions,
                problem=topic_problem(topic, found[topic.name]) or "",
            )
            for topic in wanted
            if topic.name in found
        }
        is_outdated = self._publish(counts, topics)
        try:
            ends = self._ends(access, plan.partition_counts, topics)
            with self._changed:
                self._facts = replace(self._facts, end_offsets=ends)
                self._offsets_at = self._now()
        finally:
            # Tasks can run without the ends: only lags are unknown then.
            if is_outdated:
                self._on_ready()
        self._say("failure", frozenset())
        healthy = all(topic.name in topics and not topics[topic.name].problem for topic in wanted)
        return healthy and not plan.unknown_topics if leads else True

    def _sources(self) -> list[str]:
        internal = {t.name for part in self._subtopologies for t in part.repartition_topics}
        return sorted({t for part in self._subtopologies for t in part.source_topics} - internal)

    def _found(
        self, access: ClusterAccess, wanted: Sequence[InternalTopic]
    ) -> dict[str, TopicFound]:
        counts = access.partition_counts([topic.name for topic in wanted]) if wanted else {}
        policies = access.cleanup_policies(sorted(counts)) if counts else {}
        return {
            name: TopicFound(partitions=count, cleanup_policy=policies.get(name))
            for name, count in counts.items()
        }

    def _ends(
        self,
        access: ClusterAccess,
        counts: Mapping[str, int],
        topics: Mapping[str, TopicState],
    ) -> dict[TopicPartition, int]:
        """Where the changelogs end; tables that are source topics end where the group committed."""
        changelogs = {name for part in self._subtopologies for name in part.changelog_topics}
        sources = {name for part in self._subtopologies for name in part.source_changelogs}
        own = (changelogs - sources) & _usable(topics).keys()
        ends = dict(access.end_offsets(_partitions(own, counts))) if own else {}
        tables = _partitions(sources & counts.keys(), counts)
        return ends | dict(access.committed(tables)) if tables else ends

    def _publish(self, counts: Mapping[str, int], topics: Mapping[str, TopicState]) -> bool:
        """Show what there is; True when this leader's answer was made with other topics."""
        with self._changed:
            self._facts = replace(self._facts, partition_counts=counts, topics=topics)
            answered_by = self._answered_by
            is_outdated = self._leads and answered_by not in (None, _usable(topics))
            if is_outdated:
                self._answered_by = None
        self._say("topics", frozenset(one.problem for one in topics.values() if one.problem))
        return is_outdated

    def _failed(self, error: Exception) -> None:
        """A look failed: what was found stays, ends of changelogs grow old, and it is told once."""
        known = isinstance(error, RebalanceError)
        why = str(error) if known else f"{type(error).__name__}: {error}"
        _log.warning("the cluster could not be asked: %s", why, exc_info=None if known else error)
        self._say("failure", frozenset({why}))
        if isinstance(error, ClusterUnavailable) or not known:
            self._disconnect()

    def _say(self, about: str, sentences: frozenset[str]) -> None:
        """Tell what was not told at the look before."""
        for sentence in sorted(sentences - self._said.get(about, frozenset())):
            self._on_error(sentence)
        self._said[about] = sentences

    def _disconnect(self) -> None:
        access, self._access = self._access, None
        if access is not None:
            try:
                access.close()
            except Exception as error:  # noqa: BLE001 it is given up anyway
                _log.debug("closing failed: %s", error)


def _usable(topics: Mapping[str, TopicState]) -> dict[str, int]:
    return {name: state.partitions for name, state in topics.items() if not state.problem}


def _partitions(topics: set[str], counts: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, n) for topic in sorted(topics) for n in range(counts[topic])]
