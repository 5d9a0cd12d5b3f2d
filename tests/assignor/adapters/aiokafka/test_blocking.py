"""Calls that block the event loop longer than the session, in virtual time.

aiokafka's own code sends the heartbeats; the coordinator around it is a fake.
"""

import asyncio
import time
from types import MethodType, SimpleNamespace

import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import RequestTimedOutError

from assignor.adapters.aiokafka.coordinator import CoordinatorHooks
from assignor.adapters.aiokafka.port import AiokafkaPort
from tests.assignor.adapters.contract.aiokafka import Loop
from tests.assignor.adapters.contract.cluster import Clock
from tests.assignor.adapters.members import consumer_with
from tests.log_records import records_of

ANSWERED_S = 0.01


class Coordinator:
    """What the heartbeats use of aiokafka's coordinator; a broker that answers, or is `silent`."""

    _session_timeout_ms, _heartbeat_interval_ms, _retry_backoff_ms = 6000, 3000, 100
    _max_poll_interval, _performed_join_prepare = 1000.0, False

    def __init__(self):
        self.group_id, self.coordinator_id, self.generation, self.member_id = "app", 0, 7, "one"
        self._subscription = SimpleNamespace(fetcher_idle_time=0.0)
        self.silent = False
        for name in ("_heartbeat_routine", "_do_heartbeat"):
            setattr(self, name, MethodType(getattr(GroupCoordinator, name), self))

    async def _send_req(self, request):
        await asyncio.sleep(1.0 if self.silent else ANSWERED_S)
        if self.silent:
            raise RequestTimedOutError
        return SimpleNamespace(error_code=0)

    async def ensure_coordinator_known(self):
        pass

    def coordinator_dead(self):
        pass

    async def _on_join_complete(self, *_):
        pass

    async def _perform_assignment(self, response):
        return response


def lines(caplog, work):
    """Run `work` while heartbeats are sent; return what the log says."""

    async def run():
        coordinator = Coordinator()
        consumer = consumer_with(coordinator)
        CoordinatorHooks(AiokafkaPort(consumer), print, print).install()
        beats = asyncio.create_task(coordinator._heartbeat_routine())
        await work(coordinator)
        beats.cancel()
        await asyncio.wait([beats])

    with Clock().installed() as clock, asyncio.Runner(loop_factory=lambda: Loop(clock)) as runner:
        runner.run(run())
    return [each.getMessage() for each in records_of(caplog, "assignor")]


@pytest.mark.parametrize("before_s", [0.0, 1.7, 2.9, 3.0 + ANSWERED_S / 2, 4.0])
def test_a_call_that_blocks_the_event_loop_longer_than_the_session_is_named(caplog, before_s):
    async def work(_):
        await asyncio.sleep(before_s)
        time.sleep(20)  # noqa: ASYNC251 that is the mistake
        await asyncio.sleep(30)

    [line] = lines(caplog, work)
    assert 20 <= float(line.split()[0]) <= 20 + 3 + 2 * ANSWERED_S
    assert " s passed between two heartbeats, above session_timeout_ms=6000: this costs the" in line
    blocked_s = float(line.split("; a call blocked the event loop for ")[1].split()[0])
    assert 19.4 < blocked_s <= 20
    assert line.endswith(": await such a call with asyncio.to_thread, or raise the limit")


def test_calls_within_the_session_are_no_line(caplog):
    async def work(_):
        for _ in range(10):
            time.sleep(4)  # noqa: ASYNC251 within the session
            await asyncio.sleep(0.1)

    assert lines(caplog, work) == []


def test_a_silent_broker_is_not_a_call_that_blocks(caplog):
    async def work(coordinator):
        coordinator.silent = True
        for _ in range(10):
            await asyncio.sleep(1)
            time.sleep(0.2)  # noqa: ASYNC251 a short one

    [line] = lines(caplog, work)
    assert line.startswith("no broker has answered the heartbeats of this member for ")
