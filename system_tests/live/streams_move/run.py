"""Run the rehearsal: a classic group, all members stopped, a streams group, and back."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

from kafka import KafkaConsumer
from kafka.structs import TopicPartition as ClientPartition

from assignor.adapters.admin import Target, committed_offsets, look_at_group, open_admin
from assignor.adapters.connecting import network_client
from system_tests.errors import EnvironmentFailureError
from system_tests.live.environment import Environment, topic_of
from system_tests.live.producer import WordProducer
from system_tests.live.streams_move.member import STORE, JvmMemberConfig
from system_tests.live.streams_move.member_process import (
    MemberProcess,
    first_restores,
    overlaps,
)
from system_tests.live.streams_move.verdict import MoveVerdict, Phase, verdict_of
from system_tests.real import running_real_broker

_APP = "rolling-bounce-move"
_TOPIC = "words"
_WAIT_S = 240.0
_EVERY_S = 0.1
_STREAMS_SESSION_MS = 45_000  # streams.session.timeout.ms of brokers, by default
_POLL_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMoveOptions:
    """How the rehearsal is run.

    Attributes:
        broker, release: exact releases of the broker and of the members.
        members, partitions: processes, and partitions of the source topic.
        rate: records per second.
        session_timeout_ms, heartbeat_ms: of classic members.
        static: whether members have a group.instance.id, in both protocols.
        seconds: how long each phase runs before the next move.
    """

    broker: str
    release: str
    members: int = 3
    partitions: int = 6
    rate: float = 200.0
    session_timeout_ms: int = 6000
    heartbeat_ms: int = 300
    static: bool = False
    seconds: float = 3.0


def run_streams_move(
    options: StreamsMoveOptions, tell: Callable[[str], None] = lambda _: None
) -> MoveVerdict:
    """Run a classic group, move it to the streams protocol and back, and check what happened.

    Raises:
        EnvironmentFailureError: no broker, no Java, or a phase that does not settle in time.
    """
    with running_real_broker(options.broker) as broker, TemporaryDirectory() as folder:
        environment = Environment(
            bootstrap_servers=broker.bootstrap_servers, group_id=_APP, topic=_TOPIC
        )
        tell(f"broker {options.broker} at {broker.bootstrap_servers}, group {_APP}, topic {_TOPIC}")
        tell(
            "look meanwhile: assignor inspect --bootstrap-server"
            f" {broker.bootstrap_servers} --group {_APP} --watch 2"
        )
        with topic_of(environment, options.partitions, keep=True):
            return _Rehearsal(options, broker.bootstrap_servers, Path(folder), tell).run()


class _Rehearsal:
    """The phases of one rehearsal."""

    def __init__(
        self, options: StreamsMoveOptions, servers: str, folder: Path, tell: Callable[[str], None]
    ) -> None:
        self._options, self._servers, self._folder, self._tell = options, servers, folder, tell
        self._target = Target(servers=(servers,), timeout_ms=120_000)
        self._all: list[MemberProcess] = []
        self._producer = WordProducer(
            bootstrap_servers=servers,
            topic=_TOPIC,
            partitions=options.partitions,
            rate=options.rate,
        )

    def run(self) -> MoveVerdict:
        """Run all phases; no process is left behind."""
        options = self._options
        try:
            self._producer.start()
            phases = [self._phase("classic", None)]
            for protocol in ("streams", "classic"):
                phases.append(self._phase(protocol, phases[-1]))
            self._producer.stop()
            written = {str(n): 1 for n in range(sum(self._producer.counts().values()))}
            with suppress(EnvironmentFailureError):  # then the verdict says how many are missing
                self._wait("all records", lambda: len(self._counted()) >= len(written))
            return verdict_of(
                phases,
                release=options.release,
                broker=options.broker,
                written=written,
                counted=self._counted(),
                expiry_ms={
                    "classic": options.session_timeout_ms,
                    "streams": _STREAMS_SESSION_MS if options.static else 0,
                },
            )
        finally:
            self._producer.close()
            for member in self._all:
                member.kill()

    def _phase(self, protocol: str, before: Phase | None) -> Phase:
        """Stop the members of the phase before, start all with the protocol, and let them run."""
        options, old = self._options, list(self._all)
        stopped = empty = None
        offsets: Mapping[int, int] = {}
        if before is not None:
            stopped = monotonic() * 1000
            self._tell(f"stop all members of the {before.protocol} group")
            for member in old:
                member.say("stop")
            for member in old:
                member.end()
            offsets = self._committed()
            self._wait("an empty group", lambda: self._state()[1] == "Empty")
            empty = monotonic() * 1000
            self._tell(f"the group is empty after {(empty - stopped) / 1000:.1f} s")
        kept, predicted = self._committed() if before else {}, self._changelog_sizes(before)
        members = [self._member(number, protocol) for number in range(options.members)]
        self._all = members
        self._wait("ready members", lambda: all(member.of("ready") for member in members))
        started = monotonic() * 1000
        for member in members:
            member.say("start")
        kind = "static members" if options.static else "members"
        self._tell(f"start {options.members} {kind} with group.protocol={protocol}")
        self._wait("every task on one member", self._has_settled)
        running = monotonic() * 1000
        self._tell(f"tasks run: {', '.join(map(_tasks_of, members))}")
        sleep(options.seconds)  # the time during which this phase processes records
        self._wait("every task on one member", self._has_settled)
        group_type, state, described = self._described()
        restored, moves = first_restores(members)
        return Phase(
            protocol=protocol,
            stopped_ms=stopped,
            empty_ms=empty,
            started_ms=started,
            running_ms=running,
            owners=dict(sorted((task, m.config.name) for m in members for task in m.active)),
            described=described,
            group_type=group_type,
            state=state,
            offsets_before=offsets,
            offsets_kept=kept,
            predicted=predicted,
            restored=restored,
            moves=moves,
            overlaps=tuple(overlaps({m.config.name: m.of("tasks") for m in members})),
            failures=tuple(report["why"] for m in members for report in m.of("failed")),
        )

    def _member(self, number: int, protocol: str) -> MemberProcess:
        name = "abcdefghijklmnopqrstuvwxyz"[number]
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        options = self._options
        config = JvmMemberConfig(
            name=name,
            release=options.release,
            bootstrap_servers=self._servers,
            application_id=_APP,
            topic=_TOPIC,
            protocol=protocol,
            state_dir=str(folder),
            session_timeout_ms=options.session_timeout_ms,
            heartbeat_ms=options.heartbeat_ms,
            static=options.static,
        )
        member = MemberProcess(config, folder / "log")
        self._all.append(member)
        return member

    # Conditions

    def _wait(self, what: str, found: Callable[[], object]) -> None:
        deadline = monotonic() + _WAIT_S
        while not found():
            ended = [member.ended for member in self._all if member.ended]
            if ended and what != "an empty group":
                raise EnvironmentFailureError(ended[0])
            if monotonic() > deadline:
                raise EnvironmentFailureError(f"{what}: not in {_WAIT_S:.0f} s")
            sleep(_EVERY_S)

    def _has_settled(self) -> bool:
        running = sorted(task for member in self._all for task in member.active)
        return running == [f"0_{number}" for number in range(self._options.partitions)]

    def _state(self) -> tuple[str, str]:
        with open_admin(self._target) as admin:
            look = look_at_group(admin, _APP)
        return look.described.group_type or "classic", look.described.state

    def _described(self) -> tuple[str, str, dict[str, str]]:
        """Return type, state and owners as the coordinator describes them, once it is stable."""
        self._wait("a stable group", lambda: self._state()[1] == "Stable")
        with open_admin(self._target) as admin:
            look = look_at_group(admin, _APP)
        streams = look.streams_group
        if streams is None:
            rows = ((client.client, map(str, client.active)) for client in look.clients)
        else:
            rows = (
                (streams.client_names[member.member_id], map(str, member.current.active))
                for member in streams.group.members
            )
        owners = {task: name for name, tasks in rows for task in tasks}
        return (
            "classic" if streams is None else "streams",
            look.described.state,
            dict(sorted(owners.items())),
        )

    # Topics

    def _committed(self) -> dict[int, int]:
        with open_admin(self._target) as admin:
            found = committed_offsets(admin, _APP)
        return {
            partition.partition: offset
            for partition, offset in sorted(found.items())
            if partition.topic == _TOPIC
        }

    def _changelog_sizes(self, before: Phase | None) -> dict[int, int]:
        """Return the records of each changelog partition, which nobody writes now."""
        if before is None:
            return {}
        with _changelog(self._servers, self._options.partitions) as (consumer, partitions):
            starts, ends = (
                consumer.beginning_offsets(partitions),
                consumer.end_offsets(partitions),
            )
        return {where.partition: ends[where] - starts[where] for where in partitions}

    def _counted(self) -> dict[str, int]:
        """Return how many records the changelog has of each key: each is one count of a record."""
        found: Counter[str] = Counter()
        with _changelog(self._servers, self._options.partitions) as (consumer, partitions):
            consumer.seek_to_beginning(*partitions)
            ends = consumer.end_offsets(partitions)
            while any(consumer.position(where) < ends[where] for where in partitions):
                for records in consumer.poll(timeout_ms=_POLL_MS).values():
                    found.update(record.key.decode() for record in records)
        return dict(found)


def _tasks_of(member: MemberProcess) -> str:
    """Return how many tasks a member has, and for none what may give it some."""
    count = len(member.active)
    return f"{member.config.name} {count or '0 (idle until the next rebalance gives it tasks)'}"


@contextmanager
def _changelog(servers: str, partitions: int) -> Iterator[tuple[Any, list[ClientPartition]]]:
    """Provide a consumer of the changelog of the counts, and its partitions."""
    with network_client() as kafka_client:
        consumer = KafkaConsumer(
            bootstrap_servers=servers,
            fetch_max_wait_ms=100,
            metrics_enabled=False,
            kafka_client=kafka_client,
        )
    wheres = [ClientPartition(f"{_APP}-{STORE}-changelog", n) for n in range(partitions)]
    try:
        consumer.assign(wheres)
        yield consumer, wheres
    finally:
        consumer.close()
