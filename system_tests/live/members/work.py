"""What a member does whatever client it runs on: count words, say so, and be an assignor's host."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any, Protocol

from assignor import Topology, sticky
from assignor.adapters.admin import GroupLevels
from assignor.adapters.rebootstrap import Listener, Rebootstrapped, RebootstrapRequiredError
from system_tests.live import events
from system_tests.live.members.config import MemberConfig
from system_tests.live.members.process import Reporter, now_ms

# An operator waits for a minute; an experiment does not.
_LEVEL_POLL_S = 0.5


class Record(Protocol):
    """A record, as either client gives it."""

    offset: int
    value: bytes


def tell_rebootstraps(report: Reporter) -> Listener:
    """Make a supervisor's listener that reports every rebootstrap."""

    def listener(what: Rebootstrapped | RebootstrapRequiredError) -> None:
        if isinstance(what, Rebootstrapped):
            report(events.BeganAgain(rule=what.rule, why=what.why))

    return listener


class Work:
    """What the application does: counts words, for the partitions that it owns."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._owned: set[int] = set()
        self.counts: Counter[bytes] = Counter()
        self.records = 0

    def own(self, partitions: Iterable[int]) -> None:
        """Process these too from now on."""
        with self._lock:
            self._report(events.PartitionsAssigned(partitions=tuple(sorted(partitions))))
            self._owned.update(partitions)

    def disown(self, partitions: Iterable[int], *, lost: bool = False) -> None:
        """Process these no more; `lost`: others may do so already."""
        kind = events.PartitionsLost if lost else events.PartitionsRevoked
        with self._lock:
            self._owned.difference_update(partitions)
            self._report(kind(partitions=tuple(sorted(partitions))))

    def disown_all(self) -> None:
        """Hand back what is left; the client tells nobody when it closes after a failure."""
        if self._owned:
            self.disown(set(self._owned))

    def process(self, partition: int, records: Sequence[Record]) -> bool:
        """Process one batch and report it; False if the partition went away meanwhile."""
        with self._lock:
            if partition not in self._owned:
                return False
            began_ms = now_ms()
            for record in records:
                self.counts[record.value] += 1
            self.records += len(records)
            self._report(
                events.RecordsProcessed(
                    partition=partition,
                    first_offset=records[0].offset,
                    last_offset=records[-1].offset,
                    began_ms=round(began_ms, 3),
                )
            )
            return True


def observe(report: Reporter) -> Any:
    """Make the adapter's observer: every observation of a known name becomes a report."""

    def observer(observation: Any) -> None:
        kind = events.EVENTS.get(type(observation).__name__)
        if kind is not None:
            values = {field.name: getattr(observation, field.name) for field in fields(kind)}
            for name in ("active_tasks", "standby_tasks"):
                if name in values:
                    values[name] = tuple(str(task) for task in values[name])
            report(kind(**values))

    return observer


def build_assignor(config: MemberConfig, report: Reporter, adapter: Callable[..., Any]) -> Any:
    """Build the assignor of one subtopology that counts words, as the release would have it.

    Args:
        config: of the member.
        report: where its observations go.
        adapter: the `StreamsAssignor` of the member's client.
    """
    topology = Topology()
    topology.add_source("words", topics=[config.topic])
    topology.add_processor("count", parents=["words"])
    topology.add_state_store("counts", processors=["count"])
    return adapter(
        topology,
        application_id=config.group_id,
        release=config.release,
        upgrade_from=config.upgrade_from,
        rebalance_protocol=config.rebalance_protocol,
        process_id=uuid.UUID(config.process_id),
        num_standby_replicas=0,
        internal_topics=None,  # its tasks keep no changelog
        strategy=sticky,  # and lags, which the default strategy goes by, do not exist
        observer=observe(report),
        hold_back=config.hold_back,
        level_source=(
            GroupLevels(config.bootstrap_servers, config.group_id) if config.hold_back else None
        ),
        level_poll_s=_LEVEL_POLL_S,
    )
