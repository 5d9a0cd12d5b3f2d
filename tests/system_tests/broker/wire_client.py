"""A client of single requests for a fresh embedded broker."""

import asyncio
import struct

from system_tests.broker import EmbeddedBroker
from system_tests.broker.wire import APIS

LIMIT_S = 120


class Client:
    """A socket that sends requests of the protocol, one by one or several at once."""

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
    """Run `work(broker, connect)` with a fresh broker."""

    async def body():
        async with EmbeddedBroker(config) as broker:
            clients = []

            async def connect(node_id=1):
                host, port = broker.cluster.address_by_node[node_id]
                clients.append(Client(*await asyncio.open_connection(host, port)))
                return clients[-1]

            try:
                return await asyncio.wait_for(work(broker, connect), 2 * LIMIT_S)
            finally:
                for client in clients:
                    client.writer.close()

    return asyncio.run(body())
