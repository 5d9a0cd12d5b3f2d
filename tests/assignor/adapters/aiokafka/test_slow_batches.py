"""A batch that takes longer than `max_poll_interval_ms` costs the membership, as in Kafka."""

import asyncio

import pytest

from assignor.adapters import aiokafka
from tests.assignor.adapters.reports.logs import GROUP, SESSION, TOPOLOGY, filled

LIMIT_S = 60

pytestmark = pytest.mark.usefixtures("clock")


def members(broker):
    return len(broker.groups()[GROUP].members)


async def until(holds):
    async with asyncio.timeout(LIMIT_S):
        while not holds():  # noqa: ASYNC110 the broker has no events
            await asyncio.sleep(0.02)


def test_a_member_leaves_in_each_batch_that_is_too_slow_and_the_log_says_so(caplog):
    """Before, aiokafka took a call that had ended with an error for one that polls, for ever."""

    async def run(broker):
        async with aiokafka.streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            max_poll_interval_ms=1000,
            max_poll_records=1,
            **SESSION,
        ) as consumer:
            slow = 0
            async for batch in aiokafka.polled(consumer, timeout_ms=100):
                if any(batch.values()):
                    await until(lambda: members(broker) == 0)
                    slow += 1
                if slow == 3:
                    break

    with filled(1) as broker:
        asyncio.run(asyncio.wait_for(run(broker), LIMIT_S))
    lines = [line for line in caplog.messages if "passed between two polls" in line]
    assert len(lines) == 2
    assert all("this member left the group meanwhile" in line for line in lines)
    assert all("a single record took so long" in line for line in lines)
