"""What members on all clients share: count words, report it, and build the assignor."""

import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from assignor import Topology, sticky
from assignor.adapters.admin import GroupLevels
from assignor.adapters.rebootstrap import Listener, Rebootstrapped, RebootstrapRequiredError
from assignor.observe import (
    AnswersDecided,
    AssignmentTaken,
    MemberFailed,
    Observation,
    RejoinRequested,
    SubscriptionWritten,
)
from system_tests.live import events
from system_tests.live.members.config import MemberConfig
from system_tests.live.members.process import Reporter, now_ms

# The default of a minute would make the experiment long.
_LEVEL_POLL_S = 0.5


class Record(Protocol):
    """A record, as each client gives it."""

    @property
    def offset(self) -> int:
        """Offset in its partition."""

    @property
    def value(self) -> bytes:
        """The word."""


def rebootstrap_listener(report: Reporter) -> Listener:
    """Return a supervisor's listener that reports every rebootstrap."""

    def listener(event: Rebootstrapped | RebootstrapRequiredError) -> None:
        if isinstance(event, Rebootstrapped):
            report(events.ClientRebootstrapped(rule=event.rule, why=event.why))

    return listener


class Work:
    """The application: counts words of the partitions that the member owns."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._owned: set[int] = set()
        self.counts: Counter[bytes] = Counter()
        self.records = 0

    def own(self, partitions: Iterable[int]) -> None:
        """Process these partitions, too, from now on."""
        with self._lock:
            self._report(events.PartitionsAssigned(partitions=tuple(sorted(partitions))))
            self._owned.update(partitions)

    def disown(self, partitions: Iterable[int], *, lost: bool = False) -> None:
        """Stop processing these partitions; `lost`: other members may own them already."""
        kind = events.PartitionsLost if lost else events.PartitionsRevoked
        with self._lock:
            self._owned.difference_update(partitions)
            self._report(kind(partitions=tuple(sorted(partitions))))

    def disown_all(self) -> None:
        """Stop processing all partitions; a client that closes by failure calls no listener."""
        if self._owned:
            self.disown(set(self._owned))

    def process(self, partition: int, records: Sequence[Record]) -> bool:
        """Process one batch and report it; return False if the partition was revoked meanwhile."""
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


def reporting_observer(report: Reporter) -> Callable[[Observation], None]:
    """Return the adapter's observer that reports every observation that is an event of a member."""

    def observer(observation: Observation) -> None:
        match observation:
            case AssignmentTaken():
                report(
                    events.AssignmentTaken(
                        generation=observation.generation,
                        version=observation.version,
                        commonly_supported_version=observation.commonly_supported_version,
                        active_tasks=tuple(map(str, observation.active_tasks)),
                        standby_tasks=tuple(map(str, observation.standby_tasks)),
                        error_code=observation.error_code,
                        next_version=observation.next_version,
                        size=observation.size,
                    )
                )
            case AnswersDecided() | MemberFailed() | RejoinRequested() | SubscriptionWritten():
                report(observation)
            case _:
                pass

    return observer


def build_assignor(config: MemberConfig, report: Reporter, adapter: Callable[..., Any]) -> Any:
    """Build the assignor of a word count of one subtopology, as the release configures it.

    Args:
        config: of the member.
        report: where its observations go.
        adapter: the `StreamsAssignor` of the member's client.
    """
    topology = Topology()
    topology.add_source("words", topics=[config.group.topic])
    topology.add_processor("count", parents=["words"])
    topology.add_state_store("counts", processors=["count"])
    return adapter(
        topology,
        application_id=config.group.group_id,
        release=config.stage.release,
        upgrade_from=config.stage.upgrade_from,
        rebalance_protocol=config.stage.rebalance_protocol,
        process_id=uuid.UUID(config.process_id),
        num_standby_replicas=0,
        internal_topics=None,  # its tasks have no changelog
        strategy=sticky,  # the default strategy needs lags, which do not exist
        observer=reporting_observer(report),
        hold_back=config.group.hold_back,
        level_source=(
            GroupLevels(config.group.bootstrap_servers, config.group.group_id)
            if config.group.hold_back
            else None
        ),
        level_poll_s=_LEVEL_POLL_S,
    )
