"""What a member does, as Prometheus metrics (extra `metrics`).

```
streams_application_records_total{task}                 records read, repeated ones among them
streams_application_bad_records_total{stage,outcome}    records skipped, or written as dead letters
streams_application_commits_total                       commits of records, not idle ones
streams_application_commit_seconds_total                time that they took
streams_application_tasks{state}                        active, running, restoring, standby
streams_application_changelog_records_left{task}        that a copy lacks, restoring or standby
streams_application_ready                               1: all of its tasks run
streams_application_problems                            what has to be corrected
```

All metrics have the labels `group` and `client_id`. They are read when they are asked for.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from assignor.embedding.bad_records import BadRecordStage
from assignor.embedding.serving.health import Health
from assignor.embedding.state_stores import TaskStores

_PREFIX: Final = "streams_application"
_LABELS: Final = ("group", "client_id")
_Values = Mapping[tuple[str, ...], float]


class ApplicationCollector:
    """A collector of one member; registering several with a registry is fine.

    Args:
        stores: its state.
        health: returns what it does.
        group: value of the label `group`.
        client_id: value of the label `client_id`; each member of a process has its own.
    """

    def __init__(
        self, stores: TaskStores, health: Callable[[], Health], *, group: str, client_id: str
    ) -> None:
        self._stores = stores
        self._health = health
        self._who = (group, client_id)

    def describe(self) -> list[Metric]:
        """Return nothing: names are known when they are asked for."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        work, health = self._stores.work, self._health()
        read = work.records.copy()  # of no task that has read none: `increase` misses the first
        tasks = (health.running & health.active) | read.keys()
        records: _Values = {(str(task),): read[task] for task in tasks}
        what = "Records read by tasks, also bad ones, and again those after a failed commit."
        yield self._counter("_records", what, records, "task")
        pairs = work.bad_records.copy()
        kinds = ("skip", "dead letter")  # from the start, too
        bad: _Values = {(s.value, k): pairs.get((s, k), 0) for s in BadRecordStage for k in kinds}
        yield self._counter(
            "_bad_records", "Records skipped, or written as dead letters.", bad, "stage", "outcome"
        )
        yield self._counter("_commits", "Commits of records.", {(): work.commits})
        yield self._counter(
            "_commit_seconds", "Seconds of these commits, together.", {(): work.commit_s}
        )
        waiting = health.left.keys() & health.active
        counts = {
            "active": len(health.active),
            "running": len(health.active & health.running),
            "restoring": len(waiting),
            "standby": len(health.left.keys() - health.active),
        }
        yield self._gauge(
            "_tasks", "Tasks of this member.", {(k,): n for k, n in counts.items()}, "state"
        )
        left: _Values = {(str(task),): n for task, n in health.left.items() if n is not None}
        yield self._gauge(
            "_changelog_records_left", "Changelog records that a copy lacks.", left, "task"
        )
        yield self._gauge("_ready", "Whether all tasks run.", {(): int(health.is_ready)})
        yield self._gauge("_problems", "What has to be corrected.", {(): len(health.problems)})

    def _counter(self, name: str, text: str, values: _Values, *labels: str) -> Metric:
        found = CounterMetricFamily(_PREFIX + name, text, labels=(*_LABELS, *labels))
        for key, value in sorted(values.items()):
            found.add_metric((*self._who, *key), value)
        return found

    def _gauge(self, name: str, text: str, values: _Values, *labels: str) -> Metric:
        found = GaugeMetricFamily(_PREFIX + name, text, labels=(*_LABELS, *labels))
        for key, value in sorted(values.items()):
            found.add_metric((*self._who, *key), value)
        return found


def exposition(registry: CollectorRegistry = REGISTRY) -> tuple[str, bytes]:
    """Return the content type and the text of all metrics of a registry."""
    return CONTENT_TYPE_LATEST, generate_latest(registry)
