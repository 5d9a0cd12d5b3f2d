"""A batch that takes longer than `max_poll_interval_ms` costs the membership, as in Kafka."""

import asyncio

import pytest

from assignor.adapters import aiokafka
from system_tests.broker import Fault
from tests.assignor.adapters.reports.logs import GROUP, SESSION, TOPOLOGY, filled

LIMIT_S = 60

pytestmark = pytest.mark.usefixtures("clock")


def members(broker):
    return len(broker.groups()[GROUP].members)


async def until(holds):
    async with asyncio.timeout(LIMIT_S):
        while not holds():  # noqa: ASYNC110 the broker has no events
            await asyncio.sleep(0.02)


def run(broker, caplog, batches, work):
    """Do the work of so many batches; return the lines about the pauses."""

    async def go():
        async with aiokafka.streams_consumer(
            TOPOLOGY,
            group_id=GROUP,
            bootstrap_servers=broker.bootstrap_servers,
            max_poll_interval_ms=1000,
            max_poll_records=1,
            **SESSION,
        ) as consumer:
            left = batches
            async for batch in aiokafka.polled(consumer, timeout_ms=100):
                if not left:
                    break
                if any(batch.values()):
                    await work(consumer)
                    left -= 1

    asyncio.run(asyncio.wait_for(go(), LIMIT_S))
    return [line for line in caplog.messages if "passed between two polls" in line]


def test_a_member_leaves_in_each_batch_that_is_too_slow_and_the_log_says_so(caplog):
    """Before, aiokafka took a call that had ended with an error for one that polls, for ever."""

    async def work(consumer):
        await until(lambda: members(broker) == 0)
        # The client learns of it from the answer to its LeaveGroup request.
        await until(lambda: consumer._coordinator.generation < 0)

    with filled(1) as broker:
        lines = run(broker, caplog, 2, work)
    assert len(lines) == 2
    assert all("this member left the group meanwhile" in line for line in lines)
    assert all("a single record took so long" in line for line in lines)


@pytest.mark.parametrize("error", [None, 27])
def test_the_time_of_a_commit_is_not_the_applications(caplog, error):
    """A broker hung with a commit in flight, and the line told to lower `max_poll_records`."""

    async def work(consumer):
        broker.inject(Fault(api="OffsetCommit", delay_ms=3000, error=error))
        assert await aiokafka.commit_next(consumer) is (error is None)

    with filled(1) as broker:
        [line] = run(broker, caplog, 1, work)
    assert "s of it was waited for brokers and the disk" in line
