"""A background thread that queries the cluster, so that a leader never blocks its client.

The thread keeps one value, `LeaderFacts`, up to date: partition counts of source topics, internal
topics (which it creates while this member leads), and changelog end offsets. The client's thread
reads the value and can request a new one. It never waits, but for end offsets that have become old,
for as long as it says. Lags that are not known in time count as unknown (KIP-441).
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from assignor.embedding.errors import ClusterUnavailable, error_text
from assignor.embedding.internal_topics import (
    ClusterAccess,
    ExistingTopic,
    InternalTopic,
    InternalTopicSettings,
    internal_topics,
    setting_warnings,
    topic_problem,
)
from assignor.embedding.leader_facts import NOTHING_FOUND, InternalTopicStatus, LeaderFacts
from assignor.logs import line_logger
from assignor.topology import Subtopology, plan_tasks
from encoding import RebalanceError, TopicPartition

_log = line_logger(__name__)

# Delay before the next query while a topic is missing or a query failed; it doubles to a minute.
_FIRST_RETRY_S = 0.2
_LAST_RETRY_S = 60.0
# Shortest time between two queries, however often the group rebalances.
_LEAST_BETWEEN_S = 0.1
# Older end offsets are read again if the leader may wait: by old ones, a copy counts as caught up
# that lacks what was written since. (Kafka Streams' leader reads them in every rebalance.)
_OFFSETS_FRESH_S = 1.0
# Older end offsets are not used to compute lags.
_OFFSETS_MAX_AGE_S = 30.0
# A leader queries this often, so that an unexpected rebalance finds recent end offsets.
_LEADER_EVERY_S = 10.0
# What a problem is about: partition counts that contradict each other, internal topics, the query.
_TOPOLOGY, _TOPICS, _QUERY = "topology", "topics", "query"


class InternalTopicManager:
    """A thread that creates internal topics and updates `LeaderFacts`; only `facts` may wait.

    Args:
        connect: opens a connection; called on the thread, and again after a failure.
        subtopologies: subtopologies of the application.
        settings: how internal topics are created.
        on_ready: called on the thread when the leader's last answer is outdated.
        on_error: called on the thread with each new problem, as a sentence; a cluster that does not
            answer is in the log alone.
        now: a monotonic clock, in seconds.
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
        self._has_looked = False
        self._answered_by: Mapping[str, int] | None = None
        self._reported: dict[str, frozenset[str]] = {}
        self._warned: frozenset[str] = frozenset()
        self._access: ClusterAccess | None = None
        self._leads = False
        self._asked = False
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="cluster-facts", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def facts(self, *, patience_s: float = 0.0) -> LeaderFacts:
        """Return what is known.

        Args:
            patience_s: how long to wait for newer end offsets if the known ones are old. Nothing
                waits for the first ones: their topics may not exist yet.
        """
        with self._changed:
            is_old = self._now() - self._offsets_at > _OFFSETS_FRESH_S
            if patience_s and is_old and self._facts.end_offsets is not None:
                before, self._asked = self._offsets_at, True
                self._changed.notify_all()
                self._changed.wait_for(
                    lambda: self._closed or self._offsets_at > before, patience_s
                )
            if self._now() - self._offsets_at > _OFFSETS_MAX_AGE_S:
                return replace(self._facts, end_offsets=None)
            return self._facts

    @property
    def problems(self) -> tuple[str, ...]:
        """What keeps tasks from running, by the last query: topics that have to be corrected."""
        reported = self._reported
        found = reported.get(_TOPOLOGY, frozenset()) | reported.get(_TOPICS, frozenset())
        return tuple(sorted(found))

    def know(self, subtopologies: Sequence[Subtopology]) -> None:
        """Query for these subtopologies from now on; do not wait."""
        with self._changed:
            self._subtopologies = tuple(subtopologies)
            self._asked = True
            self._changed.notify_all()

    def join(self) -> None:
        """Request a query because a rebalance begins that this member may lead; do not wait."""
        with self._changed:
            self._leads = False
            self._asked = True
            self._changed.notify_all()

    def lead(self, used: LeaderFacts, *, waits: bool) -> None:
        """Note that this member has answered the group as its leader; do not wait.

        Until the next rebalance the thread creates missing topics, and calls `on_ready` once if the
        usable topics differ from those in `used`.

        Args:
            used: the facts on which the answer is based.
            waits: whether some tasks wait for internal topics; then the thread queries now.
        """
        with self._changed:
            self._leads = True
            self._answered_by = _usable(used.topics)
            self._asked = self._asked or waits
            self._changed.notify_all()

    def close(self, timeout_s: float = 2.0) -> None:
        """Stop the thread and close the connection; wait at most `timeout_s` for a request."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    # Methods that run on the thread

    def _run(self) -> None:
        retry_s = 0.0
        try:
            while self._wait(retry_s):
                retry_s = self._query(retry_s)
        finally:
            self._disconnect()

    def _query(self, retry_s: float) -> float:
        """Query once; return after how many seconds to query again by itself, 0: not at all.

        Args:
            retry_s: what the query before returned.
        """
        try:
            complete = self._look()
        except Exception as error:  # noqa: BLE001 a client may raise anything; go on
            self._failed(error)
            complete = False
        self._has_looked = True
        return 0.0 if complete else min(2 * retry_s or _FIRST_RETRY_S, _LAST_RETRY_S)

    def _wait(self, retry_s: float) -> bool:
        """Wait until the next query is due; False if closed."""
        with self._changed:
            if self._has_looked:
                self._changed.wait_for(lambda: self._closed, _LEAST_BETWEEN_S)
            self._changed.wait_for(
                lambda: self._asked or self._closed,
                retry_s or (_LEADER_EVERY_S if self._leads else None),
            )
            self._asked = False
            return not self._closed

    def _look(self) -> bool:
        """Query the cluster once; return whether nothing is missing."""
        access = self._access = self._access or self._connect()
        sources = self._sources()
        counts = access.partition_counts(sources)
        plan = plan_tasks(self._subtopologies, counts)
        self._report(_TOPOLOGY, frozenset())
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
        topics = {
            name: InternalTopicStatus(partitions=0, problem=why) for name, why in failed.items()
        }
        topics |= {
            topic.name: InternalTopicStatus(
                partitions=found[topic.name].partitions,
                problem=topic_problem(topic, found[topic.name]) or "",
            )
            for topic in wanted
            if topic.name in found
        }
        is_outdated = self._publish(counts, topics)
        self._warn(setting_warnings(self._subtopologies, found, self._settings))
        try:
            asked_at = self._now()
            ends = self._ends(access, plan.partition_counts, topics)
            with self._changed:
                self._facts = replace(self._facts, end_offsets=ends)
                self._offsets_at = asked_at
                self._changed.notify_all()
        finally:
            # Tasks can run without end offsets; only their lags are unknown.
            if is_outdated:
                self._on_ready()
        if self._reported.get(_QUERY):
            _log.info("the cluster can be queried again")
        self._report(_QUERY, frozenset())
        healthy = all(topic.name in topics and not topics[topic.name].problem for topic in wanted)
        return healthy and not plan.unknown_topics if leads else True

    def _sources(self) -> list[str]:
        internal = {t.name for part in self._subtopologies for t in part.repartition_topics}
        return sorted({t for part in self._subtopologies for t in part.source_topics} - internal)

    def _found(
        self, access: ClusterAccess, wanted: Sequence[InternalTopic]
    ) -> dict[str, ExistingTopic]:
        counts = access.partition_counts([topic.name for topic in wanted]) if wanted else {}
        configs = access.topic_configs(sorted(counts)) if counts else {}
        return {
            name: ExistingTopic(partitions=count, configs=configs.get(name, {}))
            for name, count in counts.items()
        }

    def _ends(
        self,
        access: ClusterAccess,
        counts: Mapping[str, int],
        topics: Mapping[str, InternalTopicStatus],
    ) -> dict[TopicPartition, int]:
        """Return changelog end offsets; for source topics used as changelogs, committed offsets."""
        changelogs = {name for part in self._subtopologies for name in part.changelog_topics}
        sources = {name for part in self._subtopologies for name in part.source_changelogs}
        own = (changelogs - sources) & _usable(topics).keys()
        ends = dict(access.end_offsets(_partitions(own, counts))) if own else {}
        tables = _partitions(sources & counts.keys(), counts)
        return ends | dict(access.committed(tables)) if tables else ends

    def _publish(
        self, counts: Mapping[str, int], topics: Mapping[str, InternalTopicStatus]
    ) -> bool:
        """Publish new facts; return whether this leader's answer was based on other topics."""
        with self._changed:
            self._facts = replace(self._facts, partition_counts=counts, topics=topics)
            answered_by = self._answered_by
            is_outdated = self._leads and answered_by not in (None, _usable(topics))
            if is_outdated:
                self._answered_by = None
        self._report(
            _TOPICS, frozenset(topic.problem for topic in topics.values() if topic.problem)
        )
        return is_outdated

    def _warn(self, sentences: Sequence[str]) -> None:
        """Log each sentence, once while it is true."""
        for sentence in sentences:
            if sentence not in self._warned:
                _log.warning("%s", sentence)
        self._warned = frozenset(sentences)

    def _failed(self, error: Exception) -> None:
        """Report a failed query, or topics that do not fit, once; the facts stay as they are."""
        known = isinstance(error, RebalanceError)
        if known and not isinstance(error, ClusterUnavailable):
            self._report(_TOPOLOGY, frozenset({str(error)}))
            return
        if not self._reported.get(_QUERY):  # else those before have failed, too
            sentence = f"the cluster query failed: {error if known else error_text(error)}"
            if known:  # brokers do not answer: nothing in the application is to be corrected
                self._reported[_QUERY] = frozenset({sentence})
                _log.warning("%s; tasks run, and lags are unknown until it succeeds", sentence)
            else:
                self._report(_QUERY, frozenset({sentence}))
                _log.warning("the cluster query failed", exc_info=error)
        self._disconnect()

    def _report(self, about: str, sentences: frozenset[str]) -> None:
        """Report the problems that the previous query did not have."""
        before = self._reported.get(about, frozenset())
        self._reported[about] = sentences
        for sentence in sorted(sentences - before):
            self._on_error(sentence)

    def _disconnect(self) -> None:
        access, self._access = self._access, None
        if access is not None:
            try:
                access.close()
            except Exception as error:  # noqa: BLE001 the connection is dropped anyway
                _log.debug("closing failed: %s", error)


def _usable(topics: Mapping[str, InternalTopicStatus]) -> dict[str, int]:
    return {name: state.partitions for name, state in topics.items() if not state.problem}


def _partitions(topics: set[str], counts: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, n) for topic in sorted(topics) for n in range(counts[topic])]
