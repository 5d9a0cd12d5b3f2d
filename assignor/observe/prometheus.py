"""Rebalances as Prometheus metrics (extra `metrics`).

```
streams_rebalance_total{outcome}                   rebalances of this member, by outcome
streams_rebalance_duration_seconds                 time from the JoinGroup to the assigned tasks
streams_rebalance_last_timestamp_seconds           end of the last rebalance
streams_rebalance_generation                       generation of the group
streams_rebalance_version{kind}                    used, received, common, next
streams_rebalance_tasks{kind}                      active, standby, warmup
streams_rebalance_task_moves_total{kind}           gained, lost
streams_rebalance_bytes{kind}                      subscription, assignment
streams_rebalance_membership_lost_total            times that the group continued without it
streams_rebalance_member_failed_total              times that this member could not continue
streams_rebalance_leader_assignments_total         assignments computed as the leader
streams_rebalance_leader_errors_total              times that the leader found no assignment
streams_rebalance_leader_duration_seconds          time to compute an assignment
streams_rebalance_leader_moved_tasks_total         active tasks that moved to another process
streams_rebalance_leader_members{kind}             all, future, quarantined, waiting
streams_rebalance_leader_waiting_partitions        partitions that wait for another topology
streams_rebalance_leader_bytes                     size of all assignments together
```

Counters begin at 0. `leader_members`, `leader_waiting_partitions` and `leader_bytes` have a value
while the member is the leader, and none else. All metrics have the labels `group` and `client_id`,
like Kafka's consumer metrics.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from assignor.observe.events import AnswersDecided, MembershipLost
from assignor.observe.rebalances import Outcome, RebalanceEnd, RebalanceHook

_PREFIX = "streams_rebalance"
_LABELS = ("group", "client_id")
# A rebalance takes tenths of a second, or waits for a slow member or a session timeout.
_REBALANCE_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_KINDS = ("all", "future", "quarantined", "waiting")  # of members, as a leader sees them
_DECIDING_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metrics:
    """All metrics of one registry, which allows each metric name only once."""

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
    leader_waiting: Gauge


_METRICS: WeakKeyDictionary[CollectorRegistry, _Metrics] = WeakKeyDictionary()
_LOCK = threading.Lock()


def _metrics_of(registry: CollectorRegistry) -> _Metrics:
    with _LOCK:
        if registry not in _METRICS:
            _METRICS[registry] = _made(registry)
        return _METRICS[registry]


def _made(registry: CollectorRegistry) -> _Metrics:
    def counter(name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}{name}", help_text, (*_LABELS, *labels), registry=registry)

    def gauge(name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"{_PREFIX}{name}", help_text, (*_LABELS, *labels), registry=registry)

    def histogram(name: str, help_text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"{_PREFIX}{name}", help_text, _LABELS, buckets=buckets, registry=registry)

    return _Metrics(
        rebalances=counter("", "Rebalances of this member, by outcome.", "outcome"),
        seconds=histogram("_duration_seconds", "Time from JoinGroup to tasks.", _REBALANCE_S),
        last=gauge("_last_timestamp_seconds", "End of the last rebalance."),
        generation=gauge("_generation", "Generation of the group."),
        version=gauge("_version", "Versions of the assignment protocol.", "kind"),
        tasks=gauge("_tasks", "Tasks of this member.", "kind"),
        moves=counter("_task_moves", "Active tasks gained and lost by this member.", "kind"),
        size=gauge("_bytes", "Size of this member's subscription and assignment.", "kind"),
        lost=counter("_membership_lost", "Times that the group continued without this member."),
        failed=counter("_member_failed", "Times that this member could not continue."),
        leader_assignments=counter("_leader_assignments", "Assignments computed as the leader."),
        leader_errors=counter("_leader_errors", "Times that the leader found no assignment."),
        leader_seconds=histogram("_leader_duration_seconds", "Time to assign.", _DECIDING_S),
        leader_moved=counter("_leader_moved_tasks", "Active tasks that moved to another process."),
        leader_members=gauge("_leader_members", "Members of the group, by kind.", "kind"),
        leader_size=gauge("_leader_bytes", "Size of all assignments together."),
        leader_waiting=gauge(
            "_leader_waiting_partitions", "Partitions that wait for another topology."
        ),
    )


class PrometheusHook(RebalanceHook):
    """A hook that updates the metrics of one member.

    Args:
        group: value of the label `group`, the consumer's `group.id`.
        client_id: value of the label `client_id`.
        registry: Prometheus registry; several members may share it.
        now: returns seconds since the epoch.
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
        metrics, who = self._metrics, self._who
        # From the start: `increase` misses the first event of a series.
        counters = (metrics.lost, metrics.failed, metrics.leader_assignments, metrics.leader_errors)
        for each in (*counters, metrics.leader_moved, metrics.seconds, metrics.leader_seconds):
            each.labels(*who)
        for outcome in Outcome:
            metrics.rebalances.labels(*who, outcome.value)
        for kind in ("gained", "lost"):
            metrics.moves.labels(*who, kind)

    def on_rebalance_end(self, end: RebalanceEnd) -> None:
        """Count the rebalance, and set the member's versions, tasks and sizes."""
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
        if not end.is_leader:
            self._remove_gauges_of_leader()

    def on_assignment_completed(self, decided: AnswersDecided) -> None:
        """Count an assignment that this member computed as the leader."""
        metrics, who = self._metrics, self._who
        metrics.leader_assignments.labels(*who).inc()
        metrics.leader_seconds.labels(*who).observe(decided.seconds)
        metrics.leader_moved.labels(*who).inc(decided.moved_tasks)
        counts = (
            decided.members,
            len(decided.future_members),
            len(decided.quarantined_members),
            len(decided.waiting_members),
        )
        for kind, count in zip(_KINDS, counts, strict=True):
            metrics.leader_members.labels(*who, kind).set(count)
        metrics.leader_waiting.labels(*who).set(decided.waiting_partitions)
        metrics.leader_size.labels(*who).set(decided.size)

    def _remove_gauges_of_leader(self) -> None:
        """Remove what another member shows now, or none."""
        with suppress(KeyError):  # it has not led
            self._metrics.leader_waiting.remove(*self._who)
            self._metrics.leader_size.remove(*self._who)
            for kind in _KINDS:
                self._metrics.leader_members.remove(*self._who, kind)

    def on_assignment_error(self, why: str) -> None:  # noqa: ARG002 a sentence is no label
        """Count that the leader found no valid assignment."""
        self._metrics.leader_errors.labels(*self._who).inc()

    def on_membership_lost(self, lost: MembershipLost) -> None:
        """Count the loss, and set the member's tasks to 0; it leads no more."""
        self._remove_gauges_of_leader()
        self._metrics.lost.labels(*self._who).inc()
        self._metrics.moves.labels(*self._who, "lost").inc(len(lost.active_tasks))
        for kind in ("active", "standby", "warmup"):
            self._metrics.tasks.labels(*self._who, kind).set(0)

    def on_member_failed(self, why: str) -> None:  # noqa: ARG002 a sentence is no label
        """Count the failure; it leads no more."""
        self._remove_gauges_of_leader()
        self._metrics.failed.labels(*self._who).inc()
