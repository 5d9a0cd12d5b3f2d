"""What short polls and long pauses between polls cost a kafka-python group.

`python -m benchmarks.clients.polls [--seconds 20] [--joins 5]`. The first part starts three members
that poll with a timeout and pause between two polls, with and without the way in which `attach` has
an answer kept that arrives between two polls; it counts the generations until the group has settled
for 3 s. The second part has a member join and leave a group of two with a session timeout of 2 s,
whose members pause; it counts the generations, which are two for each visit and one or two for the
start, unless a pause costs a membership.
"""

import argparse
import sys
import threading
import time
from unittest.mock import patch

from assignor import RebalanceHook, Topology
from assignor.adapters.kafka_python import streams_consumer
from assignor.adapters.kafka_python.port import keep_joins
from benchmarks.rows import at_most, say
from system_tests.broker import BrokerConfig, running_broker

TOPOLOGY = Topology().add_source("lines", topics=["lines"])
MEMBERS = 3
SETTLED_S = 3.0
SESSION_MS = 2000
# Timeout of a poll, and the pause after it, in milliseconds.
POLLS = ((0, 10), (10, 10), (100, 10), (100, 300), (1000, 10), (1000, 2000))
PAUSES = ((100, 200), (100, 1800), (100, 4000), (1000, 4000))


class Last(RebalanceHook):
    """Keeps the last generation of a member and its number of tasks."""

    def __init__(self):
        self.generation = self.tasks = 0

    def on_rebalance_end(self, end):
        self.generation, self.tasks = end.generation, len(end.active_tasks)


def consumer(broker, hook, session_ms):
    return streams_consumer(
        TOPOLOGY,
        group_id="app",
        bootstrap_servers=broker.bootstrap_servers,
        hooks=[hook],
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=session_ms // 10,
        metrics_enabled=False,
    )


def run_member(broker, hook, stop, *, timeout_ms, pause_ms, session_ms):
    with consumer(broker, hook, session_ms) as member:
        while not stop.is_set():
            member.poll(timeout_ms=timeout_ms)
            stop.wait(pause_ms / 1000)


def members(broker, hooks, stop, **times):
    threads = [
        threading.Thread(target=run_member, args=(broker, hook, stop), kwargs=times)
        for hook in hooks
    ]
    for thread in threads:
        thread.start()
    return threads


def keeps_nothing(coordinator, report, on_choice):
    """What `attach` does, but for the kept answer."""
    join = coordinator._do_join_and_sync_async  # noqa: SLF001 what `keep_joins` replaces
    keep_joins(coordinator, report, on_choice)
    coordinator._do_join_and_sync_async = join  # noqa: SLF001 as above


def generations(timeout_ms, pause_ms, seconds):
    """Generations until every member has tasks and nothing changes; None: not in time."""
    hooks, stop = [Last() for _ in range(MEMBERS)], threading.Event()
    with running_broker(BrokerConfig(topics={"lines": 2 * MEMBERS})) as broker:
        times = {"timeout_ms": timeout_ms, "pause_ms": pause_ms, "session_ms": 6000}
        threads = members(broker, hooks, stop, **times)
        end, last, since = time.monotonic() + seconds, None, time.monotonic()
        while time.monotonic() < end and not (last and time.monotonic() - since > SETTLED_S):
            seen = [(hook.generation, hook.tasks) for hook in hooks]
            if len(set(seen)) > 1 or not seen[0][1] or seen != last:
                since = time.monotonic()
                last = seen if len(set(seen)) == 1 and seen[0][1] else None
            time.sleep(0.02)
        stop.set()
        for thread in threads:
            thread.join()
        return max(hook.generation for hook in hooks), last is not None


def generations_of_visits(timeout_ms, pause_ms, joins):
    """Generations of a group of two members while a third one comes and goes."""
    hooks, stop = [Last(), Last()], threading.Event()
    times = {"timeout_ms": timeout_ms, "pause_ms": pause_ms, "session_ms": SESSION_MS}
    with running_broker(BrokerConfig(topics={"lines": 2 * MEMBERS})) as broker:
        threads = members(broker, hooks, stop, **times)
        for _ in range(joins):
            leave = threading.Event()
            quick = {"timeout_ms": 100, "pause_ms": 0, "session_ms": SESSION_MS}
            [visitor] = members(broker, [Last()], leave, **quick)
            time.sleep(2 * pause_ms / 1000 + 2)
            leave.set()
            visitor.join()
            time.sleep(pause_ms / 1000 + 1)
        stop.set()
        for thread in threads:
            thread.join()
    return max(hook.generation for hook in hooks)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--joins", type=int, default=5)
    options = parser.parse_args()
    is_met = True
    for timeout_ms, pause_ms in POLLS:
        name = f"poll({timeout_ms}), pause {pause_ms} ms"
        found, settled = generations(timeout_ms, pause_ms, options.seconds)
        row = at_most("polls", f"generations, {name}", found, 2 * MEMBERS)
        is_met &= bool(row.met) and settled
        with patch("assignor.adapters.kafka_python.assignor.keep_joins", keeps_nothing):
            found, settled = generations(timeout_ms, pause_ms, options.seconds)
        text = f"{found}" if settled else f"{found}, not settled in {options.seconds} s"
        say("polls", f"the same, answers not kept, {name}", text)
    for timeout_ms, pause_ms in PAUSES:
        found = generations_of_visits(timeout_ms, pause_ms, options.joins)
        name = f"{options.joins} visits, poll({timeout_ms}), pause {pause_ms} ms"
        say("polls", f"generations, {name}, session {SESSION_MS} ms", found)
    return int(not is_met)


if __name__ == "__main__":
    sys.exit(main())
