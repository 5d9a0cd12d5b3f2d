"""A group on a real broker: JVM members and native members that count the same words.

All topics, also internal ones, are created first, so that any member may be leader. Words are
produced during the whole test; at the end the changelog must hold the count of each word.
"""

import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Self

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from system_tests.live import WordProducer
from system_tests.support.counts import read_counts
from system_tests.support.describe import DescribedGroup, describe_group
from system_tests.support.member import NotInTime, RealMember, start_member
from system_tests.support.word_count import (
    POISON,
    changelog_topic,
    counts_topic,
    repartition_topic,
    words_topic,
)

PARTITIONS = 4
_RATE = 50.0
_QUIET_S = 1.0
_LOOK_S = 0.1
_FIRST_PORT = 7001
_DRAIN_S = 240.0


class RealGroup:
    """Members of one group, by name; use it as a context manager.

    Args:
        bootstrap_servers: address of a real broker.
        folder: directory for state and logs of the members.
        session_timeout_ms: session timeout of all members; the default is longer than a busy
            machine stalls.
    """

    def __init__(
        self, bootstrap_servers: str, folder: Path, *, session_timeout_ms: int = 60_000
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.application_id = f"word-count-{uuid.uuid4().hex[:8]}"
        self.members: dict[str, RealMember] = {}
        self.started: list[RealMember] = []
        self._folder = folder
        self._session_timeout_ms = session_timeout_ms
        self._endpoints: dict[str, str] = {}
        _make_topics(bootstrap_servers, self.application_id)
        self._producer = WordProducer(
            bootstrap_servers=bootstrap_servers,
            topic=words_topic(self.application_id),
            partitions=PARTITIONS,
            rate=_RATE,
        )

    def __enter__(self) -> Self:
        """Start to produce words."""
        self._producer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill all members that still run."""
        self._producer.close()
        for member in self.started:
            member.kill()

    def start(
        self, name: str, release: str, *, has_endpoint: bool = True, **config: Any
    ) -> RealMember:
        """Start a member; after a restart it has its former state directory and process id."""
        endpoint = None
        if has_endpoint:
            endpoint = self._endpoints.setdefault(
                name, f"127.0.0.1:{_FIRST_PORT + len(self._endpoints)}"
            )
        member = start_member(
            self._folder,
            name,
            release=release,
            bootstrap_servers=self.bootstrap_servers,
            application_id=self.application_id,
            endpoint=endpoint,
            session_timeout_ms=self._session_timeout_ms,
            **config,
        )
        self.members[name] = member
        self.started.append(member)
        return member

    def stop(self, name: str) -> None:
        """Stop a member cleanly."""
        self.members.pop(name).stop()

    def describe(self) -> DescribedGroup:
        """Return the coordinator's description of the group."""
        return describe_group(self.bootstrap_servers, self.application_id)

    def settle(self, *, timeout_s: float = 240.0) -> DescribedGroup:
        """Wait until every task runs exactly once and nothing changes for a second.

        Raises:
            NotInTime: the group did not settle in time; the message says why.
        """
        deadline = monotonic() + timeout_s
        quiet_since = monotonic()
        before: object = None
        while monotonic() < deadline:
            reason = self._unsettled()
            now = tuple(len(member.reports) for member in self.started)
            if reason is not None or now != before:
                before, quiet_since = now, monotonic()
            elif monotonic() - quiet_since >= _QUIET_S:
                described = self.describe()
                if described.state == "Stable" and len(described.members) == len(self.members):
                    return described
            sleep(_LOOK_S)
        raise NotInTime(
            f"the group did not settle in {timeout_s:.0f} s: {self._unsettled()}"
            + "".join(
                f"\n{m.name} {m.state} {'; '.join(m.failures)}{m.tail()}"
                for m in self.members.values()
            )
        )

    def wait(self, what: str, found: Callable[[], object], *, timeout_s: float = 240.0) -> None:
        """Wait until `found()` is true.

        Raises:
            NotInTime: it was not true in time.
        """
        deadline = monotonic() + timeout_s
        while not found():
            if monotonic() > deadline:
                raise NotInTime(f"{what} did not come in {timeout_s:.0f} s")
            sleep(_LOOK_S)

    def failures(self) -> dict[str, list[str]]:
        """Return why stream threads failed, by member; only members with failures."""
        return {m.name: m.failures for m in self.started if m.failures}

    def poison(self, partition: int) -> None:
        """Produce the word that makes JVM members fail."""
        producer = KafkaProducer(bootstrap_servers=self.bootstrap_servers, metrics_enabled=False)
        topic = words_topic(self.application_id)
        producer.send(topic, value=POISON.encode(), partition=partition)
        producer.close()

    def finish(self) -> tuple[Counter[str], Counter[str]]:
        """Stop producing, wait until all words are counted; return (produced, counted) words.

        Raises:
            NotInTime: a word could not be written.
        """
        self._producer.stop()
        if self._producer.failed:
            raise NotInTime(f"a word could not be written: {self._producer.failed}")
        written = self._producer.words()
        counted: Counter[str] = Counter()
        deadline = monotonic() + _DRAIN_S
        while monotonic() < deadline:
            found = read_counts(
                self.bootstrap_servers, changelog_topic(self.application_id), range(PARTITIONS)
            )
            counted = Counter({word.decode(): count for word, count in found.items()})
            if all(counted[word] >= count for word, count in written.items()):
                break
            sleep(_LOOK_S)
        return written, counted

    def _unsettled(self) -> str | None:
        members = self.members.values()
        gone = [m.name for m in members if not m.is_running]
        if gone:
            return f"{', '.join(gone)} ended"
        waiting = [f"{m.name} is {m.state}" for m in members if m.state != "RUNNING"]
        if waiting:
            return ", ".join(waiting)
        running = sorted(task for m in members for task in m.active)
        wanted = sorted(f"{s}_{p}" for s in range(2) for p in range(PARTITIONS))
        return None if running == wanted else f"running tasks are {running}"


def _make_topics(bootstrap_servers: str, application_id: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    policies = {
        words_topic(application_id): "delete",
        counts_topic(application_id): "delete",
        repartition_topic(application_id): "delete",
        changelog_topic(application_id): "compact",
    }
    try:
        admin.create_topics(
            [
                NewTopic(topic, PARTITIONS, 1, topic_configs={"cleanup.policy": policy})
                for topic, policy in sorted(policies.items())
            ]
        )
    finally:
        admin.close()
