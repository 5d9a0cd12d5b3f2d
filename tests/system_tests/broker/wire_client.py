"""A client of single requests for a fresh embedded broker."""

import asyncio
import struct

from system_tests.broker import EmbeddedBroker
from system_tests.broker.node import Node
from system_tests.broker.wire import APIS
from tests.system_tests.broker import in_memory

LIMIT_S = 120


class Client:
    """A connection that sends requests of the protocol, one by one or several at once."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def send(self, request, version):
        request.API_VERSION = version
        request.with_header(correlation_id=version, client_id="test")
        self.writer.write(request.encode(header=True, framed=True))

    async def receive(self, response_class, version):
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        frame = await self.reader.readexactly(size)
        return response_class.decode(frame, version=version, header=True)

    async def ask(self, api_name, version, **fields):
        api = next(api for api in APIS if api.name == api_name)
        self.send(api.request(**fields), version)
        return await asyncio.wait_for(self.receive(api.response, version), LIMIT_S)

    async def is_closed(self):
        return await asyncio.wait_for(self.reader.read(), LIMIT_S) == b""


def on_broker(work, config=None):
    """Run `work(broker, connect)` with the nodes of a fresh broker, in memory and virtual time."""

    async def body():
        broker = EmbeddedBroker(config)
        nodes = {n: Node(broker.cluster, n) for n in range(1, broker.config.nodes + 1)}
        for node_id in nodes:
            broker.cluster.node_started(node_id, ("memory", node_id))
        for topic, partitions in broker.config.topics.items():
            broker.create_topic(topic, partitions)
        clients, served = [], []

        async def connect(node_id=1):
            own_end, node_end = in_memory.connect()
            served.append(asyncio.create_task(nodes[node_id].serve(*node_end)))
            clients.append(Client(*own_end))
            return clients[-1]

        try:
            return await asyncio.wait_for(work(broker, connect), 2 * LIMIT_S)
        finally:
            for client in clients:
                client.writer.close()
            broker.cluster.close()
            await asyncio.gather(*served)

    return in_memory.run(body())
