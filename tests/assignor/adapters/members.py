"""Members on adapters without a client: a listener that records its calls; wire values."""

from types import SimpleNamespace
from uuid import UUID

from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

from assignor import TasksListener
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from assignor.adapters.membership.rejoin_timer import FollowupTimer
from tests.assignor.rebalance.groups import TOPOLOGY


class Listener(TasksListener):
    """A listener that records its calls, with the active tasks."""

    def __init__(self):
        self.calls = []

    def on_tasks_assigned(self, active, standby):
        self.calls.append(("assigned", sorted(active)))

    def on_tasks_revoked(self, active, standby):
        self.calls.append(("revoked", sorted(active)))

    def on_tasks_lost(self, active, standby):
        self.calls.append(("lost", sorted(active)))

    def on_error(self, why):
        self.calls.append(("error", why))


def cluster(**counts):
    """Topics as metadata of either client."""
    return SimpleNamespace(
        partitions_for_topic=lambda topic: set(range(counts[topic])) if topic in counts else None
    )


class Coordinator:
    """A fake of kafka-python's coordinator: counts requests; can be busy or without membership."""

    def __init__(self, group_id="app"):
        self.group_id = group_id
        self.requests = 0
        self.busy = False
        self._subscription = SimpleNamespace(assign_from_subscribed=lambda _: None)
        self._generation = SimpleNamespace(generation_id=1, member_id="m1")

    def request_rejoin(self):
        self.requests += 1

    def rebalance_in_progress(self):
        return self.busy


class Timers:
    """Timers that a test fires; with `is_late`, a timer can no longer be cancelled."""

    def __init__(self):
        self.calls = []
        self.is_late = False

    def __call__(self, delay_s, call):
        self.calls.append(call)
        return SimpleNamespace(cancel=lambda: self._cancel(call))

    def _cancel(self, call):
        if call in self.calls and not self.is_late:
            self.calls.remove(call)

    def fire(self):
        """Fire all timers that were started so far."""
        for call in tuple(self.calls):
            self.calls.remove(call)
            call()


def followups(coordinator):
    """A timer for follow-ups, and a function that fires it."""
    timers = Timers()
    return FollowupTimer(
        coordinator.request_rejoin, coordinator.rebalance_in_progress, timers
    ), timers


class AnyConsumer(SimpleNamespace):
    """A consumer that can be referred to weakly."""


def consumer_with(coordinator, **attributes):
    """Return a consumer that lives as long as its coordinator."""
    coordinator.consumer = AnyConsumer(_coordinator=coordinator, **attributes)
    return coordinator.consumer


def with_timers(assignor):
    """Give a member timers that the test fires; return them."""
    timers = Timers()
    followups = assignor._membership.followups
    followups.client.start_timer = followups.timer._start_timer = timers
    return timers


def made(*, number=1, release="native", topology=TOPOLOGY, coordinator=None, **options):
    """A member on a fake coordinator, whose `timers` the test fires, and its events."""
    seen = []
    settings = {"application_id": "app", "process_id": UUID(int=number)} | options
    assignor = StreamsAssignor(topology, observer=seen.append, release=release, **settings)
    coordinator = coordinator or Coordinator(settings["application_id"])
    assignor.attach(consumer_with(coordinator))
    coordinator.timers = with_timers(assignor)
    return assignor, coordinator, seen


def joined(assignor, name, topic="lines"):
    """The members of a JoinGroup response: bytes of the wire, decoded by the client."""
    wire = assignor.metadata({topic}).encode()
    return SimpleNamespace(member_id=name, metadata=ConsumerProtocolSubscription.decode(wire))


def on_the_wire(answer):
    return ConsumerProtocolAssignment.decode(answer.encode())
