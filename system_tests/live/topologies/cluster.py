"""The broker of a change, embedded or real, and what the driver asks it about the group."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from kafka.admin import NewTopic
from kafka.errors import KafkaError

from assignor.adapters.admin import (
    LATEST,
    Admin,
    BrokerError,
    Target,
    committed_offsets,
    describe_group,
    offsets_of_topics,
    open_admin,
)
from encoding import TopicPartition
from system_tests.broker import running_broker
from system_tests.errors import EnvironmentFailureError

_ANSWER_MS = 120_000
_Answer = TypeVar("_Answer")


class Cluster:
    """Questions about one group, the same for embedded and real brokers.

    Args:
        admin: connected.
        group: id of the group.
    """

    def __init__(self, admin: Admin, group: str) -> None:
        self._admin, self._group = admin, group
        self.servers = admin.target.spelled

    def create(self, topics: Sequence[str], partitions: int) -> None:
        """Create topics.

        Raises:
            EnvironmentFailureError: the broker refuses.
        """
        try:
            self._admin.client.create_topics([NewTopic(topic, partitions, 1) for topic in topics])
        except KafkaError as error:
            raise EnvironmentFailureError(
                f"the broker at {self.servers} refuses to create {', '.join(topics)}: {error}"
            ) from error

    def stable_members(self) -> int | None:
        """Return how many members the group has; None while it rebalances.

        Raises:
            EnvironmentFailureError: the broker does not answer.
        """
        group = self._ask(lambda: describe_group(self._admin, self._group))
        return len(group.members) if group.state == "Stable" else None

    def end_offsets(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Return the end offsets of these topics alone.

        Raises:
            EnvironmentFailureError: the broker does not answer.
        """
        return self._ask(lambda: offsets_of_topics(self._admin, topics, LATEST))

    def committed(self) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, also of topics that it does not read any more.

        Raises:
            EnvironmentFailureError: the broker does not answer.
        """
        return self._ask(lambda: committed_offsets(self._admin, self._group))

    def _ask(self, question: Callable[[], _Answer]) -> _Answer:
        self._admin.again()
        try:
            return question()
        except BrokerError as error:
            raise EnvironmentFailureError(str(error)) from error


@contextmanager
def open_cluster(group: str, release: str | None) -> Iterator[Cluster]:
    """Provide an empty broker, and leave nothing of it behind.

    Args:
        group: that the driver asks about.
        release: of a real Kafka; None: the embedded broker.

    Raises:
        EnvironmentFailureError: the broker is not available, or does not start.
    """
    with _started(release) as servers:
        try:
            context = open_admin(Target(servers=(servers,), timeout_ms=_ANSWER_MS))
            admin = context.__enter__()
        except BrokerError as error:
            raise EnvironmentFailureError(str(error)) from error
        try:
            yield Cluster(admin, group)
        finally:
            context.__exit__(None, None, None)


@contextmanager
def _started(release: str | None) -> Iterator[str]:
    if release is None:
        with running_broker() as broker:
            yield broker.bootstrap_servers[0]
        return
    from system_tests.real import running_real_broker  # noqa: PLC0415 only a real broker needs Java

    with running_real_broker(release) as real:
        yield real.bootstrap_servers
