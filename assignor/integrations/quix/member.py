"""A Quix Streams application as a member of a group: installed in it, and what it sees of tasks."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import quixstreams

from assignor.errors import ConfigError
from assignor.integrations.quix.consumer import QuixConsumer
from assignor.integrations.quix.standbys import StandbyFollower
from assignor.integrations.quix.state import QuixState
from assignor.integrations.quix.topology import quix_topology
from assignor.rebalance import PartitionsByTask, TasksListener
from assignor.topology import Topology
from encoding import TaskId

TESTED: Final = "3.28."
"""Releases of Quix Streams that this package was written for; it uses private parts of them."""

# Of the application's consumer; the thread of the standbys logs and joins no group.
_NOT_FOR_STANDBYS: Final = (
    "error_cb",
    "stats_cb",
    "statistics.interval.ms",
    "logger",
    "on_commit",
    "group.instance.id",
    "partition.assignment.strategy",
)

Connect = Callable[[dict[str, Any], Topology, TasksListener], Any]
"""(settings of the application's consumer, topology, listener) -> a client in the group."""


class QuixMember(TasksListener):
    """One run of an application: its tasks, its state on disk, and its standbys.

    Args:
        app: the application, with complete dataframes.

    Attributes:
        topology: of the application.
        state: its copies on disk.
        standbys: follows the changelogs of standby tasks.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self.topology = quix_topology(app)
        changelogs = app._topic_manager.changelog_topics
        self.state = QuixState(
            app._state_manager.stores,
            {s: {n: topic.name for n, topic in by.items()} for s, by in changelogs.items()},
            self.topology.subtopologies(app.config.consumer_group),
        )
        self.state.find()
        settings = consumer_settings(app)
        self.standbys = StandbyFollower(
            {name: value for name, value in settings.items() if name not in _NOT_FOR_STANDBYS},
            self.state,
        )
        self._assigned: frozenset[TaskId] = frozenset()
        self._run_here: frozenset[TaskId] = frozenset()
        self._followed: frozenset[TaskId] = frozenset()

    # What the assignor calls

    def on_tasks_assigned(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Remember the standby tasks; the application's thread has them followed."""
        del active  # Quix is called with their partitions
        self._assigned = frozenset(standby)

    def on_tasks_revoked(self, active: PartitionsByTask, standby: PartitionsByTask) -> None:
        """Forget standby tasks that another member has now."""
        del active  # as above
        self._assigned -= standby.keys()

    def on_shutdown_requested(self) -> None:
        """Stop the application."""
        self._app.stop()

    def task_offsets(self) -> Mapping[TaskId, int]:
        """Return how far the copies on disk are."""
        return self.state.offset_sums()

    # What the application's thread calls

    def run_here(self, tasks: frozenset[TaskId]) -> None:
        """Close standby copies of tasks that the application runs."""
        self._run_here = tasks
        self.turn()

    def turn(self) -> None:
        """Follow the standby tasks of the last assignment."""
        followed = self._assigned - self._run_here
        if followed != self._followed:
            self.standbys.follow(followed)
            self._followed = followed

    def close(self) -> None:
        """Close the standbys."""
        self.standbys.close()


@dataclass(slots=True)
class QuixSession:
    """What a block in which an application runs as a member has of it.

    Attributes:
        member: tasks, state and standbys of the last run; None before the first.
        client: the client of the last run; None before the first. With the assignor it is a
            `assignor.adapters.confluent.Consumer`, and its attribute `assignor` has the host map.
    """

    member: QuixMember | None = None
    client: Any = None


@contextmanager
def installed(app: Any, connect: Connect) -> Iterator[QuixSession]:
    """Have each `run` of an application in this block use a client of `connect`.

    Raises:
        ConfigError: the release of Quix is not supported, or the application is exactly-once.
    """
    _check(app)
    session = QuixSession()
    consumer = app._consumer
    subscribe = type(consumer).subscribe

    def subscribe_as_member(**arguments: Any) -> None:
        member = QuixMember(app)
        client = connect(consumer_settings(app), member.topology, member)
        # Quix makes its client at the first use, in one place, and keeps it here.
        consumer._inner_consumer = QuixConsumer(app, client, member.state, member)
        session.member, session.client = member, client
        subscribe(consumer, **arguments)

    consumer.subscribe = subscribe_as_member
    try:
        yield session
    finally:
        del consumer.subscribe


def consumer_settings(app: Any) -> dict[str, Any]:
    """Return what Quix would give its `confluent_kafka.Consumer`."""
    return dict(app._consumer._consumer_config)


def _check(app: Any) -> None:
    if not quixstreams.__version__.startswith(TESTED):
        raise ConfigError(
            f"quixstreams {quixstreams.__version__} is not supported; install {TESTED}x"
        )
    if app.config.exactly_once:
        raise ConfigError(
            'processing_guarantee="exactly-once" is refused: no transaction can be fenced by this '
            'group\'s generation; use "at-least-once"'
        )
