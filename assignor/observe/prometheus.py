"""Rebalances as Prometheus metrics (extra `metrics`).

```
streams_rebalance_total{outcome}                   rebalances of this member by what came of them
streams_rebalance_duration_seconds                 from the JoinGroup to the application's tasks
streams_rebalance_last_timestamp_seconds           when the last one ended
streams_rebalance_generation                       of the group
streams_rebalance_version{kind}                    used, received, common, next
streams_rebalance_tasks{kind}                      active, standby, warmup
streams_rebalance_task_moves_total{kind}           gained, lost
streams_rebalance_bytes{kind}                      subscription, assignment
streams_rebalance_membership_lost_total            the group went on without this member
streams_rebalance_member_failed_total              this member cannot go on
streams_rebalance_leader_assignments_total         answers that this member decided as the leader
streams_rebalance_leader_errors_total              times that it had no valid answer
streams_rebalance_leader_duration_seconds          of deciding
streams_rebalance_leader_moved_tasks_total         active tasks that left their process
streams_rebalance_leader_members{kind}             all, future, quarantined, waiting
streams_rebalance_leader_bytes                     of all answers
```

Each has the labels `group` and `client_id`, as Kafka's own consumer metrics have them.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from assignor.observe.events import AnswersDecided, MembershipLost
from assignor.observe.rebalances import RebalanceEnd, RebalanceHook

_PREFIX = "streams_rebalance"
_LABELS = ("group", "client_id")
# A rebalance takes tenths of a second, or as long as the slowest member or a dead one's session.
_REBALANCE_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_DECIDING_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metrics:
    """All metrics of one registry; a registry takes a name once, whoever asks."""

    rebalances: Counter
    seconds: Histogram
    last: Gauge
    generation: Gauge
    version: Gauge
    tasks: Gauge
    moves: Counter
    size: Gauge
    lost: Counter
    failed: Counter
    leader_assignments: Counter
    leader_errors: Counter
    leader_seconds: Histogram
    leader_moved: Counter
    leader_members: Gauge
    leader_size: Gauge


_METRICS: WeakKeyDictionary[CollectorRegistry, _Metrics] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _metrics_of(registry: CollectorRegistry) -> _Metrics:
    with _LOCK:
        if registry not in _METRICS:
            _METRICS[registry] = _made(registry)
        return _METRICS[registry]


def _made(registry: CollectorRegistry) -> _Metrics:
    def counter(name: str, said: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}{name}", said, (*_LABELS, *labels), registry=registry)

    def gauge(name: str, said: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}{name}", said, (*_LABELS, *labels), registry=registry)

    def histogram(name: str, said: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"{_PREFIX}{name}", said, _LABELS, buckets=buckets, registry=registry)

    return _Metrics(
        rebalances=counter("", "Rebalances of this member by what came of them.", "outcome"),
        seconds=histogram("_duration_seconds", "From JoinGroup to tasks.", _REBALANCE_S),
        last=gauge("_last_timestamp_seconds", "When the last rebalance ended."),
        generation=gauge("_generation", "Generation of the group."),
        version=gauge("_version", "Versions of the assignment protocol.", "kind"),
        tasks=gauge("_tasks", "Tasks of this member.", "kind"),
        moves=counter("_task_moves", "Active tasks gained and lost by this member.", "kind"),
        size=gauge("_bytes", "Size of this member's blobs.", "kind"),
        lost=counter("_membership_lost", "Times that the group went on without this member."),
        failed=counter("_member_failed", "Times that this member could not go on."),
        leader_assignments=counter("_leader_assignments", "Answers decided as the leader."),
        leader_errors=counter("_leader_errors", "Times that the leader had no valid answer."),
        leader_seconds=histogram("_leader_duration_seconds", "Time to decide.", _DECIDING_S),
        leader_moved=counter("_leader_moved_tasks", "Active tasks that left their process."),
        leader_members=gauge("_leader_members", "Members by what the leader saw.", "kind"),
        leader_size=gauge("_leader_bytes", "Size of all answers together."),
    )


class PrometheusHook(RebalanceHook):
    """Counts the rebalances of one member.

    Args:
        group: label `group`, the consumer's `group.id`.
        client_id: label `client_id`.
        registry: the metrics' registry; several members may share it.
        now: seconds since the epoch.
    """

    def __init__(
        self,
        *,
        group: str,
        client_id: str,
        registry: CollectorRegistry = REGISTRY,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._metrics = _metrics_of(registry)
        self._who = (group, client_id)
        self._now = now

    def on_rebalance_end(self, end: RebalanceEnd) -> None:
        """Count it, and show what this member has now."""
        metrics, who = self._metrics, self._who
        metrics.rebalances.labels(*who, end.outcome.value).inc()
        metrics.seconds.labels(*who).observe(end.seconds)
        metrics.last.labels(*who).set(self._now())
        metrics.generation.labels(*who).set(end.generation)
        for kind, version in (
            ("used", end.used_version),
            ("received", end.received_version),
            ("common", end.commonly_supported_version),
            ("next", end.next_version),
        ):
            metrics.version.labels(*who, kind).set(version)
        for kind, tasks in (
            ("active", end.active_tasks),
            ("standby", end.standby_tasks),
            ("warmup", end.warmup_tasks),
        ):
            metrics.tasks.labels(*who, kind).set(len(tasks))
        metrics.moves.labels(*who, "gained").inc(len(end.gained_tasks))
        metrics.moves.labels(*who, "lost").inc(len(end.lost_tasks))
        metrics.size.labels(*who, "subscription").set(end.subscription_size)
        metrics.size.labels(*who, "assignment").set(end.assignment_size)

    def on_assignment_completed(self, decided: AnswersDecided) -> None:
        """Count what this member decided as the leader."""
        metrics, who = self._metrics, self._who
        metrics.leader_assignments.labels(*who).inc()
        metrics.leader_seconds.labels(*who).observe(decided.seconds)
        metrics.leader_moved.labels(*who).inc(decided.moved_tasks)
        for kind, count in (
            ("all", decided.members),
            ("future", len(decided.future_members)),
            ("quarantined", len(decided.quarantined_members)),
            ("waiting", len(decided.waiting_members)),
        ):
            metrics.leader_members.labels(*who, kind).set(count)
        metrics.leader_size.labels(*who).set(decided.size)

    def on_assignment_error(self, why: str) -> None:  # noqa: ARG002 a sentence is no label
        """Count that there was no valid answer."""
        self._metrics.leader_errors.labels(*self._who).inc()

    def on_membership_lost(self, lost: MembershipLost) -> None:
        """Count it; the tasks are others' now."""
        self._metrics.lost.labels(*self._who).inc()
        self._metrics.moves.labels(*self._who, "lost").inc(len(lost.active_tasks))
        for kind in ("active", "standby", "warmup"):
            self._metrics.tasks.labels(*self._who, kind).set(0)

    def on_member_failed(self, why: str) -> None:  # noqa: ARG002 a sentence is no label
        """Count it."""
        self._metrics.failed.labels(*self._who).inc()
