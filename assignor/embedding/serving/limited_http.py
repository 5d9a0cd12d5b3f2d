"""A web server of waitress (extra `http`), with a limit of time for each connection."""

import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from assignor.errors import ConfigError
from assignor.logs import line_logger
from assignor.rebalance import parse_endpoint
from encoding import HostInfo, shown

_log = line_logger(__name__)

_HEADER_BYTES: Final = 64 << 10
_BODY_BYTES: Final = 4 << 10
_MEMORY_BYTES: Final = 256 << 10
"""Of an answer that its client has not read yet; the rest waits in a temporary file."""
_NEVER_S: Final = 10**9
# waitress warns of each request that waits for a thread.
_QUIET: Final = line_logger(f"{__name__}.waiting")
_QUIET.disabled = True

_PIECE: Final = 128 << 10
"""In such pieces, an answer goes to the disk without a second copy in memory."""
_FULL: Final = "STREAMS_FULL"
OK: Final = "200 OK"
FAILED: Final = "500 Internal Server Error"
UNAVAILABLE: Final = "503 Service Unavailable"


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: its status, body, and headers besides the length."""

    status: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Respond = Callable[[Mapping[str, Any]], Response]
"""Called with the environment of a request, by WSGI (PEP 3333)."""


def listening_address(endpoint: str) -> HostInfo:
    """Return where to listen.

    Raises:
        ConfigError: the endpoint is not `host:port`.
    """
    found = parse_endpoint(endpoint)
    if found is None:
        raise ConfigError(f"endpoint {shown(repr(endpoint))} is not host:port")
    return found


_BUSY: Final = Response(UNAVAILABLE, b"too many requests wait; try again\n")


class LimitedServer:
    """Answers requests on threads of its own, until it is closed.

    One thread receives and sends; a client that is slow or idle holds none of the others.

    Args:
        own: where to listen.
        respond: called on one of the threads for each request that is complete. Whatever it raises
            is logged, and answered as a failure.
        failure: that answer.
        connections: open at a time; others wait to be accepted.
        threads: that call `respond`.
        connection_s: how long a connection may last; then it is cut.
        passed_on: header, and its value, of requests that have as many threads of their own:
            members that wait for each other's answers would else have no thread left to give one.
        waits: whether the answer to a path waits for another member, or may hang. Such requests
            have as many threads, too, so that they hold up no others; half of the connections may
            wait for one, and further requests get `full`.
        full: an answer.

    Raises:
        ModuleNotFoundError: the extra `http` is not installed.
        OSError: it cannot be listened on.
    """

    def __init__(
        self,
        own: HostInfo,
        respond: Respond,
        *,
        failure: Response,
        connections: int,
        threads: int,
        connection_s: float,
        passed_on: tuple[str, str] | None = None,
        waits: Callable[[str], bool] | None = None,
        full: Response = _BUSY,
    ) -> None:
        try:
            from waitress.server import create_server  # noqa: PLC0415 an extra
            from waitress.task import ThreadedTaskDispatcher  # noqa: PLC0415 an extra
        except ModuleNotFoundError as error:
            advice = "queries need waitress: pip install 'streams-rebalance[http]'"
            raise ModuleNotFoundError(advice, name="waitress") from error
        family, *_ = socket.getaddrinfo(*own, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(own, family=family)
        self._server: Any = create_server(
            self._application,
            sockets=[listening],
            threads=threads,
            connection_limit=connections + len(("the listening socket", "the wake-up call")),
            cleanup_interval=1,
            channel_timeout=_NEVER_S,
            max_request_header_size=_HEADER_BYTES,
            max_request_body_size=_BODY_BYTES,
            outbuf_overflow=_MEMORY_BYTES,
            outbuf_high_watermark=_NEVER_S,
            asyncore_use_poll=True,
            log_socket_errors=False,
            expose_tracebacks=False,
            clear_untrusted_proxy_headers=False,
            ident=None,
        )
        self._server.logger = _log
        self._respond, self._failure, self._full = respond, failure, full
        self._most_waiting = connections // 2
        name, self._passed_on_value = passed_on or ("", "")
        self._passed_on = name.upper().replace("-", "_")
        self._waits = waits
        self._dispatchers = [self._server.task_dispatcher]
        for _ in filter(None, (passed_on, waits)):
            self._dispatchers.append(ThreadedTaskDispatcher())
            self._dispatchers[-1].set_thread_count(threads)
        for each in self._dispatchers:
            each.logger, each.queue_logger = _log, _QUIET
        self._server.add_task = self._add
        self._server.maintenance = partial(_cut_old, self._server, connection_s)
        self._thread = threading.Thread(target=self._server.run, name="state-queries", daemon=True)
        self._thread.start()
        self._process = os.getpid()

    def close(self, *, wait_s: float) -> None:
        """Wait so long for calls of the application that run, and close all connections.

        Nothing is done in a forked process, which has none of the threads.
        """
        if os.getpid() != self._process:
            return
        for each in self._dispatchers:
            each.logger = _QUIET  # it warns of queries that wait, whose clients see the end
            each.shutdown(timeout=wait_s)
        self._server.trigger.pull_trigger(partial(_close_all, self._server))
        self._thread.join()

    def _add(self, channel: Any) -> None:
        """Have the next request of a connection answered."""
        if channel.total_outbufs_len > _MEMORY_BYTES:
            # Of a client that asks again before it reads: it gets what is answered, and no more.
            channel.requests, channel.close_when_flushed = [], True
            return
        found = channel.requests[0].headers.get(self._passed_on)
        if found is not None and found == self._passed_on_value:
            self._dispatchers[1].add_task(channel)
        else:
            waits = None if channel.requests[0].error else self._waits
            self._dispatchers[0].add_task(_Arrived(self, channel) if waits else channel)

    def look(self, channel: Any) -> None:
        """Answer the next request of a connection, on this thread or on one that may wait."""
        request, waiting = channel.requests[0], self._dispatchers[-1]
        try:
            waits = self._waits is not None and self._waits(request.request_uri)
        except BaseException:  # noqa: BLE001 it is raised again, and answered, by `respond`
            waits = False
        if waits and len(waiting.queue) < self._most_waiting:
            waiting.add_task(channel)
            return
        if waits:
            request.headers[_FULL] = "1"
        channel.service()

    def _application(
        self, environ: Mapping[str, Any], start: Callable[[str, list[tuple[str, str]]], object]
    ) -> Iterable[bytes]:
        """Answer a request, by WSGI (PEP 3333)."""
        try:
            found = self._full if f"HTTP_{_FULL}" in environ else self._respond(environ)
        except BaseException:  # noqa: BLE001 also SystemExit: nothing else on this thread answers
            _log.exception("the request %s failed", shown(environ["REQUEST_URI"]))
            found = self._failure
        body = found.body
        start(found.status, [*found.headers.items(), ("Content-Length", str(len(body)))])
        if environ["REQUEST_METHOD"] == "HEAD":
            return []
        return (body[at : at + _PIECE] for at in range(0, len(body), _PIECE))


@dataclass(frozen=True, slots=True)
class _Arrived:
    """A task of waitress: a connection whose next request is looked at on a thread."""

    server: LimitedServer
    channel: Any

    def service(self) -> None:
        """Answer the request."""
        self.server.look(self.channel)

    def cancel(self) -> None:
        """Close the connection."""
        self.channel.cancel()


def _cut_old(server: Any, connection_s: float, now_s: float) -> None:
    """Cut connections that last for too long; waitress calls it each second."""
    for channel in server.active_channels.values():
        if channel.creation_time < now_s - connection_s:
            channel.will_close = True
            with suppress(OSError):  # else it would wait for a client that does not read
                channel.socket.shutdown(socket.SHUT_RDWR)


def _close_all(server: Any) -> None:
    """Close all sockets of a server, so that its thread ends; on that thread."""
    server.asyncore.close_all(server._map)  # noqa: SLF001 waitress has no other way to end
