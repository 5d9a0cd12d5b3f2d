"""Polls of kafka-python, however short: what they cost a group."""

import threading
import time

import pytest

from assignor import RebalanceHook, Topology
from assignor.adapters.kafka_python import assignor as kafka_assignor
from assignor.adapters.kafka_python import streams_consumer
from system_tests.broker import BrokerConfig, running_broker

pytestmark = pytest.mark.usefixtures("clock")
TOPOLOGY = Topology().add_source("lines", topics=["lines"])
MEMBERS = 3
SETTLED = 2 * MEMBERS  # generations in which a group has settled, at most
LIMIT_S = 120
GROUPS, LASTING_S, SHORT_MS = 20, 3.0, 6_000


class Last(RebalanceHook):
    """Keeps the generation, and the number of tasks in it."""

    generation = tasks = 0

    def on_rebalance_end(self, end):
        self.generation, self.tasks = end.generation, len(end.active_tasks)


def run(servers, hook, stop, *, timeout_ms, session_ms):
    with streams_consumer(
        TOPOLOGY,
        group_id="app",
        bootstrap_servers=servers,
        hooks=[hook],
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=100,
    ) as consumer:
        while not stop.is_set():
            consumer.poll(timeout_ms=timeout_ms)
            stop.wait(0.01)


def generations(timeout_ms, is_over, *, session_ms=60_000):
    """The generations of members that poll with this timeout, at the moment when it is over."""
    times = {"timeout_ms": timeout_ms, "session_ms": session_ms}
    hooks, stop = [Last() for _ in range(MEMBERS)], threading.Event()
    with running_broker(BrokerConfig(topics={"lines": 2 * MEMBERS})) as broker:
        threads = [
            threading.Thread(target=run, args=(broker.bootstrap_servers, hook, stop), kwargs=times)
            for hook in hooks
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + LIMIT_S
        while not is_over(hooks) and time.monotonic() < end:
            time.sleep(0.01)
        found = [hook.generation for hook in hooks]
        stop.set()
        for thread in threads:
            thread.join()
    return found


def are_settled(hooks):
    return len({hook.generation for hook in hooks}) == 1 and all(h.tasks == 2 for h in hooks)


def joined_often_or_waits():
    """A condition: there were many generations, or none for longer than a join takes."""
    since = {}

    def is_over(hooks):
        seen_s = since.setdefault(tuple(h.generation for h in hooks), time.monotonic())
        waits = time.monotonic() - seen_s > LASTING_S
        return waits or max(hook.generation for hook in hooks) > SETTLED

    return is_over


@pytest.mark.parametrize("timeout_ms", [0, 10, 1000])
def test_a_group_settles_whatever_the_timeout_of_polls_is(timeout_ms):
    found = generations(timeout_ms, are_settled)
    assert len(set(found)) == 1
    assert found[0] <= SETTLED


def test_without_the_kept_answer_short_polls_join_again_and_again(monkeypatch):
    """The defect of the client that `attach` works around: if this ends, so can the workaround."""
    monkeypatch.setattr(kafka_assignor, "keep_joins", lambda *_: None)
    # Now and then a group settles by luck, or waits until the session of a lost join is over.
    found = (
        max(generations(0, joined_often_or_waits(), session_ms=SHORT_MS)) for _ in range(GROUPS)
    )
    assert any(generation > SETTLED for generation in found)
