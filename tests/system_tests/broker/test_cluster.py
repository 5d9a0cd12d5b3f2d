"""State that all nodes share, and the stop of a node, which waits for no client."""

import asyncio
import socket
import struct
from contextlib import suppress

import pytest

from system_tests.broker import BrokerConfig, running_broker
from system_tests.broker.cluster import Cluster
from tests.system_tests.broker import in_memory

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def test_a_cancelled_wait_for_records_ends_even_when_a_record_comes_in_the_same_step():
    async def cancelled():
        cluster = Cluster(BrokerConfig())
        waiting = asyncio.create_task(cluster.wait_for_append(60))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        cluster.announce_append()
        waiting.cancel()
        await asyncio.wait([waiting])
        return waiting.cancelled()

    assert in_memory.run(cancelled())


def test_a_wait_for_records_ends_with_its_time_and_with_a_record():
    async def waited():
        cluster = Cluster(BrokerConfig())
        await cluster.wait_for_append(60)
        assert asyncio.get_running_loop().time() == 60
        waiting = asyncio.create_task(cluster.wait_for_append(60))
        await asyncio.sleep(0)
        cluster.announce_append()
        await asyncio.wait_for(waiting, 120)

    in_memory.run(waited())


@pytest.mark.slow
@pytest.mark.usefixtures("clock")
def test_a_node_stops_although_a_client_reads_no_more():
    with running_broker(BrokerConfig(nodes=2)) as broker:
        host, port = broker.addresses[1].rsplit(":", 1)
        with socket.create_connection((host, int(port))) as client:
            client.settimeout(1.0)
            with suppress(TimeoutError):  # neither side takes any more
                while True:
                    client.sendall(API_VERSIONS * 1_000)
            broker.stop_node(1)
            assert sorted(broker.addresses) == [2]
