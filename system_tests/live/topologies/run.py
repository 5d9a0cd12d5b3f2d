"""A rolling change of the topology with real member processes."""

import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition as ClientPartition

from assignor.adapters.admin import GroupLevels
from assignor.topology import content_fingerprint
from system_tests.errors import EnvironmentFailureError
from system_tests.live.topologies.cluster import Cluster, open_cluster
from system_tests.live.topologies.member import Member
from system_tests.live.topologies.programs import APP, MemberConfig
from system_tests.live.topologies.verdict import TopologyVerdict, broken_rules, expected_counts
from system_tests.topology_changes import EXTRA, STORES, WORDS, ChangeKind, program

_KEYS = (b"be", b"not", b"or", b"to")
_WAIT_S = 240.0
_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyOptions:
    """How a change is run.

    Attributes:
        kind: of the change.
        partitions: of each source topic.
        members: of the group.
        rate: records per second and topic.
        cooperative: members keep what does not move.
        session_timeout_ms: of the members.
        kill: SIGKILL the group's leader instead of stopping it, while another member has the new
            program and, with three members or more, one still has the old one.
        broker: release of a real Kafka broker; None: the embedded one.
        take_back: afterwards, lower what the group remembers, and bounce it to the old program.
    """

    kind: ChangeKind
    partitions: int = 4
    members: int = 3
    rate: float = 40.0
    cooperative: bool = False
    session_timeout_ms: int = 6000
    kill: bool = False
    broker: str | None = None
    take_back: bool = False


class _Producer(threading.Thread):
    """Writes words to all partitions of the source topics in turn, until it is stopped."""

    def __init__(self, servers: str, topics: tuple[str, ...], options: TopologyOptions) -> None:
        super().__init__(daemon=True)
        self._producer = KafkaProducer(
            bootstrap_servers=servers, acks="all", linger_ms=0, metrics_enabled=False
        )
        self._topics, self._options = topics, options
        self._stopping = threading.Event()
        self.written: dict[str, dict[int, int]] = {t: defaultdict(int) for t in topics}
        self.failed = ""

    def run(self) -> None:
        number = 0
        while not self._stopping.wait(1 / self._options.rate):
            partition = number % self._options.partitions
            key = _KEYS[number // self._options.partitions % len(_KEYS)]
            for topic in self._topics:
                self._producer.send(topic, key=key, partition=partition)
                self.written[topic][partition] += 1
            number += 1

    def stop(self) -> Mapping[str, Mapping[int, int]]:
        """Stop, and return how many records each partition has."""
        if not self._stopping.is_set():
            self._stopping.set()
            self.join()
            self._producer.flush(120)
            self._producer.close()
        return self.written


def run_topology_change(
    options: TopologyOptions, tell: Callable[[str], None] = lambda _: None
) -> TopologyVerdict:
    """Start a group with the old program, bounce it to the new one, and check the changelogs.

    Raises:
        EnvironmentFailureError: the group does not settle, or a record is not counted, in time.
    """
    kind = options.kind
    before, after = (program(kind, version).subtopologies(APP) for version in (1, 2))
    with open_cluster(APP, options.broker) as cluster, TemporaryDirectory() as folder:
        topics = tuple(sorted({*STORES[kind][0], *STORES[kind][1]} & {WORDS, EXTRA}))
        cluster.create(topics, options.partitions)
        producer = _Producer(cluster.servers, topics, options)
        producer.start()
        group = _Group(options, cluster, Path(folder), tell)
        try:
            killed = group.change()
            written = producer.stop()
            counted = group.wait_until_counted(written)
        finally:
            group.stop()
            producer.stop()
        return TopologyVerdict(
            kind=kind.value,
            broker=f"kafka:{options.broker}" if options.broker else "embedded",
            before=tuple(content_fingerprint(part).hex() for part in before),
            after=tuple(content_fingerprint(part).hex() for part in after),
            written={topic: sum(counts.values()) for topic, counts in written.items()},
            expected=expected_counts(kind, written, taken_back=options.take_back),
            found={
                store: sum(map(len, partitions.values()))
                for store, partitions in sorted(counted.items())
            },
            broken=broken_rules(kind, written, counted, taken_back=options.take_back),
            taken_back=options.take_back,
            lowered=group.lowered,
            killed=killed,
            errors=tuple(sorted({why for member in group.all for why in member.errors})),
        )


def _next(waiting: Sequence[str], leader: str, *, is_first: bool) -> str:
    """The member whose turn it is: a leader that is to be killed is the second one."""
    if is_first:
        return next((name for name in waiting if name != leader), waiting[0])
    return leader if leader in waiting else waiting[0]


class _Group:
    """The member processes of a change, and what it waits for."""

    def __init__(
        self,
        options: TopologyOptions,
        cluster: Cluster,
        folder: Path,
        tell: Callable[[str], None],
    ) -> None:
        self._options, self._cluster, self._servers = options, cluster, cluster.servers
        self._folder, self._tell = folder, tell
        self._kept = GroupLevels(cluster.servers, APP)
        self._members: dict[str, Member] = {}
        self.all: list[Member] = []
        self.lowered: Mapping[str, int] = {}

    def change(self) -> str:
        """Bounce from the old program to the new one, and back if wanted; return who was killed."""
        names = [f"member-{number}" for number in range(self._options.members)]
        for name in names:
            self._start(name, version=1)
        self._wait_until_stable(len(names))
        self._wait_for_progress()
        killed = self._bounce(names, version=2, kill=self._options.kill)
        if self._options.take_back:
            self._lower()
            self._bounce(names, version=1, kill=False)
        return killed

    def _bounce(self, names: Sequence[str], *, version: int, kill: bool) -> str:
        """Bounce member by member; return who was killed."""
        killed, words = "", f"start it with the {('old', 'new')[version - 1]} program"
        waiting = list(names)
        while waiting:
            leader = self._leader() if kill and not killed else ""
            name = _next(waiting, leader, is_first=len(waiting) == len(names))
            waiting.remove(name)
            is_leader = name == leader
            self._tell(f"{'kill' if is_leader else 'stop'} {name}, {words}")
            self._members.pop(name).stop(kill=is_leader)
            killed = name if is_leader else killed
            if len(names) > 1:
                self._wait_until_stable(len(names) - 1)
            self._start(name, version=version)
            self._wait_until_stable(len(names))
            if self._is_lowered:
                self._wait(self._has_met_both, "the leader has not read both programs")
            self._wait_for_progress()
        return killed

    @property
    def _is_lowered(self) -> bool:
        """Whether the way back needs a lower memory; added topics need no such step."""
        options = self._options
        return options.take_back and options.kind in {ChangeKind.CHANGE, ChangeKind.RENAME}

    def _has_met_both(self) -> bool:
        """Whether the leader has written down that it led members with both programs.

        A leader asks members for the topology that they had not described before. Members that
        stop until then leave a group of one program, which has nothing to lower.
        """
        return any(r.version > 1 or r.epoch > 0 for r in self._kept.reached().values())

    def _lower(self) -> None:
        """Lower what the group remembers, as an operator does."""
        if not self._is_lowered:
            return
        kind = self._options.kind
        command = [sys.executable, "-m", "assignor.entry", "features"]
        command += ["downgrade-topology", "--bootstrap-server", self._servers, "--group", APP]
        command += ["--topology", f"system_tests.live.topologies.programs:OLD_{kind.name}"]
        command += ["--yes", "--wait", f"{_WAIT_S:.0f}", "--timeout", "120", "--format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EnvironmentFailureError(f"the memory was not lowered: {done.stderr.strip()}")
        found = json.loads(done.stdout)
        self.lowered = {"version": found["version"], "epoch": found["epoch"]}
        self._tell(f"lower to version {found['version']}, epoch {found['epoch']}")

    def stop(self) -> None:
        """End all processes."""
        for member in self._members.values():
            member.stop()
        self._members.clear()

    def wait_until_counted(
        self, written: Mapping[str, Mapping[int, int]]
    ) -> dict[str, dict[int, list[int]]]:
        """Return the counted offsets of each store, once the last program has counted all."""
        old, new = STORES[self._options.kind]
        last = old if self._options.take_back else new
        wanted = {store: topic for topic, stores in last.items() for store in stores}
        stores = sorted({s for each in (old, new) for names in each.values() for s in names})
        counted: dict[str, dict[int, list[int]]] = {}

        def is_done() -> bool:
            counted.clear()
            counted.update({store: self._changelog(store) for store in stores})
            return all(
                (counted[store].get(partition) or [-1])[-1] >= count - 1
                for store, topic in wanted.items()
                for partition, count in written[topic].items()
            )

        self._wait(is_done, "the last program has not counted all records")
        return counted

    def _start(self, name: str, *, version: int) -> None:
        number = int(name.rpartition("-")[2])
        config = MemberConfig(
            name=name,
            kind=self._options.kind.value,
            version=version,
            servers=self._servers,
            state_dir=str(self._folder / name),
            process_id=str(UUID(int=number + 1)),
            cooperative=self._options.cooperative,
            follows=self._options.take_back,
            session_timeout_ms=self._options.session_timeout_ms,
        )
        self._members[name] = Member(config)
        self.all.append(self._members[name])

    def _leader(self) -> str:
        """Name of the member that led last; a broker does not tell who leads."""
        return max(self._members.values(), key=lambda member: member.led_at).config.name

    def _wait_until_stable(self, members: int) -> None:
        self._wait(
            lambda: self._cluster.stable_members() == members,
            f"the group has not settled with {members} members",
        )

    def _wait_for_progress(self) -> None:
        """Wait until every partition that a live program reads is committed further than now."""
        versions = {member.config.version for member in self._members.values()}
        topics = {
            topic for version in versions for topic in STORES[self._options.kind][version - 1]
        }
        ends = self._cluster.end_offsets(topics)

        def has_progressed() -> bool:
            committed = self._cluster.committed()
            return all(committed.get(partition, -1) > end for partition, end in ends.items())

        self._wait(has_progressed, "a partition is not processed")

    def _wait(self, is_done: Callable[[], bool], why: str) -> None:
        deadline = time.monotonic() + _WAIT_S
        while not is_done():
            for name, member in self._members.items():
                if not member.is_running:
                    raise EnvironmentFailureError(f"{name} ended by itself: {member.last_line}")
            if time.monotonic() > deadline:
                errors = "; ".join(sorted({e for each in self.all for e in each.errors}))
                raise EnvironmentFailureError(
                    f"{why} in {_WAIT_S:.0f} s; members reported: {errors or 'nothing'}"
                )
            time.sleep(_EVERY_S)

    def _changelog(self, store: str) -> dict[int, list[int]]:
        """Partition -> offsets of the counted input records, in the order of the changelog."""
        consumer = KafkaConsumer(
            bootstrap_servers=self._servers, auto_offset_reset="earliest", metrics_enabled=False
        )
        try:
            topic = f"{APP}-{store}-changelog"
            numbers = consumer.partitions_for_topic(topic) or set()
            partitions = [ClientPartition(topic, number) for number in sorted(numbers)]
            found: dict[int, list[int]] = {number: [] for number in numbers}
            if not partitions:
                return found
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            while any(consumer.position(p) < ends[p] for p in partitions):
                for partition, records in consumer.poll(timeout_ms=200).items():
                    found[partition.partition] += [json.loads(r.value)["at"] for r in records]
            return found
        finally:
            consumer.close()
