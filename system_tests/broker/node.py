"""One node: a listening socket and its connections.

As in Kafka, the requests of a connection are answered one after the other, in order: a pending
JoinGroup blocks only its own connection. Invalid bytes close their connection. A request whose
handler fails gets UNKNOWN_SERVER_ERROR. Both log one line.
"""

import asyncio
import contextlib
import logging
from typing import Any

from encoding import shown
from system_tests.broker.cluster import Cluster
from system_tests.broker.faults import Fault, RecordedRequest
from system_tests.broker.handlers.cluster import CLUSTER_HANDLERS
from system_tests.broker.handlers.features import FEATURE_HANDLERS
from system_tests.broker.handlers.groups import GROUP_HANDLERS
from system_tests.broker.handlers.offsets import OFFSET_HANDLERS
from system_tests.broker.handlers.records import RECORD_HANDLERS
from system_tests.broker.handlers.refusals import refuse
from system_tests.broker.handlers.table import Call, DropConnectionError, merge
from system_tests.broker.handlers.topics import TOPIC_HANDLERS
from system_tests.broker.nulls import first_null
from system_tests.broker.wire import (
    UNSUPPORTED_VERSION,
    FrameError,
    Incoming,
    api_versions_response,
    decode_request,
    encode_response,
    read_frame,
)

logger = logging.getLogger(__name__)

_ACCEPT_STEPS = 5
_UNKNOWN_SERVER_ERROR = -1

HANDLERS = merge(
    CLUSTER_HANDLERS,
    FEATURE_HANDLERS,
    GROUP_HANDLERS,
    OFFSET_HANDLERS,
    RECORD_HANDLERS,
    TOPIC_HANDLERS,
)


class Node:
    """A broker of the cluster while it listens."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self._server: asyncio.Server | None = None
        self._is_stopping = False
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self, port: int) -> tuple[str, int]:
        """Listen, and return the address.

        Raises:
            OSError: the port is not available.
        """
        server = await asyncio.start_server(self.serve, self.cluster.config.host, port)
        self._server = server
        host, bound = server.sockets[0].getsockname()[:2]
        return str(host), int(bound)

    async def stop(self) -> None:
        """Close the socket and every connection."""
        if self._server is None:
            return
        self._is_stopping = True
        server, self._server = self._server, None
        # asyncio loses a connection that is accepted in the step that closes the server: stop
        # accepting first, and wait until accepted connections have become tasks.
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
        for _ in range(_ACCEPT_STEPS):
            await asyncio.sleep(0)
        server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()

    @property
    def connections(self) -> int:
        """Number of connected clients."""
        return len(self._connections)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until either side closes it."""
        task = asyncio.current_task()
        if task is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        peer = writer.get_extra_info("peername") or ("?", 0)
        try:
            await self._answer_all(reader, writer, str(peer[0]))
        except (FrameError, DropConnectionError) as error:
            logger.warning("node %d closes the connection from %s: %s", self.node_id, peer, error)
        except (ConnectionError, asyncio.CancelledError):
            # The peer closed the connection, or the node stops: do not wait for pending writes.
            writer.transport.abort()
        except Exception as error:
            # An error closes one connection, never the broker.
            why = shown(repr(error))
            logger.error("node %d closes the connection from %s: %s", self.node_id, peer, why)  # noqa: TRY400 the traceback is at DEBUG
            logger.debug("where it was raised", exc_info=True)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer_all(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_host: str
    ) -> None:
        limit = self.cluster.config.max_frame_bytes
        while (frame := await read_frame(reader, limit)) is not None:
            incoming = decode_request(frame, self.cluster.config.newest_versions)
            response = await self._answer(incoming, client_host)
            if self._is_stopping:
                # Clients would learn from a stopping node that the cluster has fewer brokers.
                raise ConnectionAbortedError(f"node {self.node_id} stops")
            if response is not None:
                writer.write(_encoded(incoming, response))
                await writer.drain()
            # Yield: neither reading nor writing waits while data is available.
            await asyncio.sleep(0)

    async def _answer(self, incoming: Incoming, client_host: str) -> Any | None:
        if incoming.body is None:
            # KIP-511: an unknown version of ApiVersions is answered in v0.
            return api_versions_response(UNSUPPORTED_VERSION, self.cluster.config.newest_versions)
        recorded = self._recorded(incoming)
        self.cluster.requests.add(recorded)
        fault = self.cluster.faults.take(recorded)
        if fault is not None:
            await self.cluster.faults.delay(fault)
            response = _apply_fault(fault, incoming)
            if response is not None:
                return response
        response = await self._handled(incoming, client_host)
        if fault is not None and fault.lose_answer:
            raise DropConnectionError(f"fault: the answer to {incoming.api.name} is lost")
        return response

    async def _handled(self, incoming: Incoming, client_host: str) -> Any | None:
        """Return the handler's response, or an error response if the handler fails.

        Raises:
            DropConnectionError: the handler demands it, or the API has no error response.
            FrameError: a field without an error code is null.
        """
        api = incoming.api.name
        null = first_null(incoming.body, incoming.version)
        if null is not None:
            why = f"{api} v{incoming.version}: {null.name} is null, which the protocol forbids"
            response = None if null.error is None else _refusal(incoming, null.error)
            if response is None:
                raise FrameError(why)
            logger.debug("node %d refuses %s", self.node_id, why)
            return response
        call = Call(
            cluster=self.cluster,
            node_id=self.node_id,
            version=incoming.version,
            client_id=incoming.client_id,
            client_host=client_host,
            request=incoming.body,
        )
        try:
            return await HANDLERS[api](call)
        except (ConnectionError, DropConnectionError):
            raise
        except Exception as error:
            logger.debug("where it was raised", exc_info=True)
            why = f"{api} v{incoming.version} failed: {shown(repr(error))}"
            response = _refusal(incoming, _UNKNOWN_SERVER_ERROR)
            if response is None:
                raise DropConnectionError(why) from error
            logger.error("node %d answers UNKNOWN_SERVER_ERROR: %s", self.node_id, why)  # noqa: TRY400 the traceback is at DEBUG
            return response

    def _recorded(self, incoming: Incoming) -> RecordedRequest:
        body = incoming.body
        return RecordedRequest(
            at_ms=self.cluster.now_ms(),
            node_id=self.node_id,
            api=incoming.api.name,
            version=incoming.version,
            client_id=incoming.client_id,
            group_id=getattr(body, "group_id", None) or "",
            member_id=getattr(body, "member_id", None) or "",
        )


def _refusal(incoming: Incoming, error: int) -> Any | None:
    """Return the error response; None if no response is expected, or none has an error code."""
    if not incoming.body.expect_response():
        return None
    try:
        return refuse(incoming.api.name, incoming.version, incoming.body, error)
    except Exception:  # noqa: BLE001 the request is too broken for a response
        return None


def _encoded(incoming: Incoming, response: Any) -> bytes:
    try:
        return encode_response(incoming, response)
    except Exception as error:
        # The encoder raises whatever its innermost step does.
        logger.debug("where it was raised", exc_info=True)
        raise DropConnectionError(
            f"the response to {incoming.api.name} v{incoming.version} cannot be written:"
            f" {shown(repr(error))}"
        ) from error


def _apply_fault(fault: Fault, incoming: Incoming) -> Any | None:
    """Apply a fault; return the response that replaces the real one, or None."""
    if fault.drop:
        raise DropConnectionError(f"fault: {incoming.api.name} is dropped")
    if fault.error is None:
        return None
    return refuse(incoming.api.name, incoming.version, incoming.body, fault.error)
