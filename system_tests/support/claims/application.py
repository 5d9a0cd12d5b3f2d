"""A Kafka Streams application on a real broker: its members, its input and its results.

Every wait is for an event, and ends early when a member ends that was not asked to.
"""

import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from textwrap import shorten
from time import monotonic, sleep
from typing import Any, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import NoError
from kafka.structs import OffsetAndMetadata

from assignor.adapters.connecting import network_client
from system_tests.errors import EnvironmentFailureError
from system_tests.support.claims.workloads import WORKLOADS
from system_tests.support.describe import describe_group
from system_tests.support.member import NotInTime, RealMember, start_member
from system_tests.support.word_count import counts_topic

PARTITIONS = 4
WAIT_S = 600.0
"""The limit of every wait: JVMs start slowly on a machine with other work."""

_STATE = "state"
_LOOK_S = 0.3
_POLL_MS = 500
_COMMITS_S = 15.0  # 150 intervals of commits
_MAX_WHY = 160
# What differs from run to run: files, records, the application id.
_OWN = re.compile(r" in file /\S+|: ConsumerRecord\(.*|\bclaim-[0-9a-f]{8}-")
_PACKAGE = re.compile(r"\b(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")
_TWICE = re.compile(r"\b(\w+Exception: )\1")


class MemberEnded(Exception):
    """A member ended without being asked to.

    Attributes:
        release: what it ran; why: its last exception, without packages.
    """

    def __init__(self, release: str, why: str) -> None:
        self.release, self.why = release, why
        super().__init__(f"{release} ends: {why}")


class WrongResults(Exception):
    """Everything was processed, and the results are not those of the records."""


class Application:
    """An application with a topology of its own; use it as a context manager.

    Args:
        bootstrap_servers: of a real broker.
        folder: for the state and the logs of its members.
        topology: a name of `system_tests.support.jvm.topologies`.
        settings: Kafka settings of all members.

    Attributes:
        members: those that run, by name.
    """

    def __init__(
        self, bootstrap_servers: str, folder: Path, *, topology: str, settings: Mapping[str, str]
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.application_id = f"claim-{uuid.uuid4().hex[:8]}"
        self.members: dict[str, RealMember] = {}
        self._started: list[RealMember] = []
        self._folder = folder
        self._topology, self._workload = topology, WORKLOADS[topology]
        self._settings = dict(settings)
        self._batches = 0
        self._results: dict[str, str] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        """Make its topics, and read its results from now on."""
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers)
        self._admin = admin
        self._closing.callback(admin.close)
        topics = [*self._inputs, counts_topic(self.application_id)]
        admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
        client = self._closing.enter_context(network_client())
        self._reader = KafkaConsumer(
            bootstrap_servers=self.bootstrap_servers,
            isolation_level="read_committed",
            fetch_max_wait_ms=100,
            metrics_enabled=False,
            kafka_client=client,
        )
        self._closing.callback(self._reader.close)
        self._closing.callback(self._kill_all)
        where = [TopicPartition(topics[-1], number) for number in range(PARTITIONS)]
        self._reader.assign(where)
        self._reader.seek_to_beginning(*where)
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all members that still run."""
        self._closing.close()

    def start(
        self,
        name: str,
        release: str,
        *,
        pin: str = "",
        settings: Mapping[str, str] | None = None,
        **config: Any,
    ) -> None:
        """Start a member and wait until it runs tasks; after a restart it has its former state.

        Args:
            name: of the member.
            release: of Kafka Streams.
            pin: its upgrade.from.
            settings: beside those of the application.
            config: fields of `RealConfig`.

        Raises:
            MemberEnded: it, or another member, ended.
        """
        member = start_member(
            self._folder,
            name,
            state=_STATE,
            release=release,
            bootstrap_servers=self.bootstrap_servers,
            application_id=self.application_id,
            upgrade_from=pin or None,
            session_timeout_ms=int(WAIT_S / 10 * 1000),
            topology=self._topology,
            on_disk=True,
            settings=self._settings | dict(settings or {}),
            **config,
        )
        self.members[name] = member
        self._started.append(member)
        self._until(f"{name} runs tasks", lambda: member.state == "RUNNING" and member.active)

    def create_changelogs(self, stores: Iterable[str]) -> None:
        """Create the changelog topics of stores, as the leader of a group does."""
        names = (f"{self.application_id}-{store}-changelog" for store in stores)
        self._admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names])

    def stop(self, name: str) -> None:
        """Stop a member cleanly; its state stays."""
        self.members.pop(name).stop()

    def kill(self, name: str) -> None:
        """Kill a member; its state stays as it is on disk."""
        self.members.pop(name).kill()

    def delete_state(self, name: str) -> None:
        """Delete the state directory of a member that was stopped."""
        shutil.rmtree(self._folder / name / _STATE)

    def process(self, *, is_committed: bool = True) -> None:
        """Write the next batch, and wait until its results are right.

        Args:
            is_committed: wait until members have committed all of their input as well.

        Raises:
            MemberEnded: a member ended.
            WrongResults: everything was processed, and the results are others.
        """
        self._batches += 1
        with KafkaProducer(bootstrap_servers=self.bootstrap_servers, acks="all") as producer:
            for topic, records in self._workload.batch(self._batches):
                for key, value in records.items():
                    producer.send(topic(self.application_id), value.encode(), key.encode())
        self._until("right results", self._has_right_results)
        if is_committed:
            self.until_consumed()

    def until_consumed(self) -> None:
        """Wait until nothing is left to read in any topic that members read."""
        self._until("everything is consumed", self._is_consumed)

    def until_expired(self, name: str) -> None:
        """Wait until the group has no member of this name, or is empty."""

        def is_gone() -> bool:
            group = describe_group(self.bootstrap_servers, self.application_id)
            clients = [member.client for member in group.members]
            return group.state == "Empty" or bool(clients and name not in clients)

        self._until(f"{name} is no longer in the group", is_gone)

    def rewind_internal_topics(self, *, to_last: bool = False) -> None:
        """Set the committed offsets of internal topics back, as if no member had read them.

        The members are stopped, and committed at their end only: Kafka Streams deletes records of
        these topics after each other commit. A group that is stopped may leave records unread.

        Args:
            to_last: to the last offset, which is a transaction marker's under exactly-once; else
                everything is read again.
        """
        self._until("the group is empty", self._is_empty)
        ends: Mapping[TopicPartition, int] = self._reader.end_offsets(self._internal_partitions())
        offsets = {
            each: OffsetAndMetadata(end - 1 if to_last else 0, "", -1)
            for each, end in ends.items()
            if end
        }
        self._check_done(self._admin.alter_group_offsets(self.application_id, offsets))

    def check_last_markers(self) -> None:
        """Check that committed offsets of internal topics stay below the ends, without a record.

        Raises:
            MemberEnded: a member ended.
            WrongResults: the ends are committed in the end, or there is a record to read.
        """
        end_s = monotonic() + _COMMITS_S
        while monotonic() < end_s:
            self._check_members()
            sleep(_LOOK_S)
        where = self._internal_partitions()
        committed = self._admin.list_group_offsets({self.application_id: None})
        offsets = committed[self.application_id]
        ends: Mapping[TopicPartition, int] = self._reader.end_offsets(where)
        behind = [each for each in where if each in offsets and offsets[each].offset < ends[each]]
        self._reader.assign(behind)
        for each in behind:
            self._reader.seek(each, offsets[each].offset)
        left = 0
        while any(self._reader.position(each) < ends[each] for each in behind):
            left += sum(map(len, self._reader.poll(timeout_ms=_POLL_MS).values()))
        if left or not behind:
            raise WrongResults(f"{len(behind)} partitions have lag, and {left} records are left")

    def reset(self, name: str) -> None:
        """Do what the application reset tool does, for a member that was stopped."""
        self._until("the group is empty", self._is_empty)
        self._check_done(self._admin.delete_groups([self.application_id]))
        internal = self._internal_topics()
        self._admin.delete_topics(internal)
        self._until("internal topics are gone", lambda: not self._internal_topics())
        self.delete_state(name)

    # Steps

    def _is_empty(self) -> bool:
        return describe_group(self.bootstrap_servers, self.application_id).state == "Empty"

    @staticmethod
    def _check_done(results: Mapping[Any, type[Exception] | str]) -> None:
        """Raise the first error of an admin request about several things."""
        for what, result in results.items():
            if result not in (NoError, "OK"):
                raise EnvironmentFailureError(f"{what}: {result}")

    @property
    def _inputs(self) -> Sequence[str]:
        return [topic(self.application_id) for topic in self._workload.topics]

    def _internal_topics(self) -> Sequence[str]:
        own = {*self._inputs, counts_topic(self.application_id)}
        names = self._admin.list_topics()
        return [each for each in names if each.startswith(self.application_id) and each not in own]

    def _read_topics(self) -> Sequence[str]:
        """The topics that members read and commit."""
        internal = self._internal_topics()
        return [*self._inputs, *(each for each in internal if not each.endswith("-changelog"))]

    def _internal_partitions(self) -> Sequence[TopicPartition]:
        """The partitions of internal topics that members read and commit."""
        topics = [name for name in self._read_topics() if name not in self._inputs]
        return [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]

    def _until(self, what: str, found: Callable[[], object]) -> None:
        end_s = monotonic() + WAIT_S
        while not found():
            self._check_members()
            if monotonic() > end_s:
                logs = "".join(f"\n{m.name} {m.state}{m.tail()}" for m in self.members.values())
                raise NotInTime(f"{what} did not come in {WAIT_S:.0f} s{logs}")
            sleep(_LOOK_S)
        self._check_members()

    def _check_members(self) -> None:
        for member in self.members.values():
            if member.is_running and not member.failures:
                continue
            member.kill()  # then all its reports have arrived
            lines = [line for line in member.last_lines if line.strip()]
            failure = next(iter([*member.failures, *reversed(lines)]), "its process ended")
            raise MemberEnded(member.config.release, _last_cause(failure))

    def _has_right_results(self) -> bool:
        """Return whether they are right; raises if all is processed and they are not."""
        was_consumed = self._is_consumed()
        wanted = self._workload.results(self._batches)
        self._read_results()
        if self._results == wanted:
            return True
        if was_consumed:
            others = [key for key in sorted(wanted) if self._results.get(key) != wanted[key]]
            example = f"{self._results.get(others[0])}, not {wanted[others[0]]}" if others else ""
            raise WrongResults(f"{len(others)} of {len(wanted)}, as {example}")
        return False

    def _read_results(self) -> None:
        """Read the topic of the results to its current end."""
        ends: Mapping[TopicPartition, int] = self._reader.end_offsets(self._reader.assignment())
        while any(self._reader.position(where) < end for where, end in ends.items()):
            for records in self._reader.poll(timeout_ms=_POLL_MS).values():
                for record in records:
                    self._results[record.key.decode()] = self._workload.read_value(record.value)

    def _is_consumed(self) -> bool:
        """Return whether committed offsets, read first, are the ends, which are read then.

        Members flush what they wrote before they commit, so nothing is between two topics.
        """
        topics = self._read_topics()
        where = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]
        committed = self._admin.list_group_offsets({self.application_id: None})
        offsets = committed[self.application_id]
        ends: Mapping[TopicPartition, int] = self._reader.end_offsets(where)
        starts: Mapping[TopicPartition, int] = self._reader.beginning_offsets(where)
        return all(
            max(starts[each], offsets[each].offset if each in offsets else 0) >= ends[each]
            for each in where
        )

    def _kill_all(self) -> None:
        for member in self._started:
            member.kill()


def _last_cause(failure: str) -> str:
    """Return the last exception of a chain, shortened: no packages, and nothing of this run."""
    last = _OWN.sub("", _PACKAGE.sub("", failure.rpartition("; because of ")[2]))
    return shorten(_TWICE.sub(r"\1", last).rstrip("."), _MAX_WHY, placeholder=" ...")
