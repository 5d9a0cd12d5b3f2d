"""Interactive queries over HTTP: any member answers, with the state of the member that has a key.

It has no users and no encryption: bind it to an address that only the application's hosts reach,
or use `TaskStores.local_state` and `hosts_for_key` in the web framework of your service.

waitress (extra `http`) receives and sends: a client that is slow, idle or hostile costs a
connection of a limited number for a limited time, and neither a thread nor memory.
"""

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, Protocol, Self
from urllib.parse import quote_from_bytes, unquote_to_bytes

from assignor.config import refused
from assignor.embedding.errors import StoreNotHeld
from assignor.embedding.queries import KeyHosts, Partitioner, partition_for_key
from assignor.embedding.serving.limited_http import LimitedServer, listening_address
from assignor.embedding.state_stores import StateStore, TaskState, TaskStores
from assignor.errors import MissingSourceTopic
from assignor.logs import line_logger
from encoding import HostInfo, shown

_log = line_logger(__name__)

Answer = Callable[[bytes, TaskState], bytes]
"""Key and the stores of its task -> body of the response."""

_MOST_S: Final = 24 * 3600
_PIECE: Final = 128 << 10
"""In such pieces, an answer goes to the disk without a second copy in memory."""
_MARK: Final = "Streams-Query"
"""Header of members: `here` in a request that is not passed on, `answer` in responses."""
_OK: Final = "200 OK"
_BAD_REQUEST: Final = "400 Bad Request"
_NOT_ALLOWED: Final = "405 Method Not Allowed"
_FAILED: Final = "500 Internal Server Error"
_UNAVAILABLE: Final = "503 Service Unavailable"
_TRY_AGAIN: Final = b"no member has this key at the moment; try again\n"
_SEE_LOG: Final = b"the query failed; see the log of the member that has this key\n"
_MARKS_OF_URLS: Final = b"a key is percent-encoded: its ? is %3F, its # is %23\n"

_Response = tuple[str, bytes]


class RoutesKeys(Protocol):
    """A `StreamsAssignor`, as far as queries need it."""

    def hosts_for_key(self, store: str, key: bytes, *, partitioner: Partitioner) -> KeyHosts:
        """Return the hosts that have the state of a key."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """What queries of a member may cost.

    Attributes:
        connections: open at a time; others wait to be accepted.
        threads: queries that are answered at a time, and as many of other members; others wait.
        connection_s: how long a connection may last, from its start until its answer is read; a
            client that uses it for further queries must repeat one that is cut off.
        peer_s: how long another member may take for its answer.
        answer_bytes: most bytes of an answer.

    Raises:
        ConfigError: a value is not a positive number.
    """

    connections: int = 64
    threads: int = 4
    connection_s: float = 30.0
    peer_s: float = 5.0
    answer_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("connections", "threads", "answer_bytes"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise refused(name, value, "a number from 1 on")
        for name in ("connection_s", "peer_s"):
            value = getattr(self, name)
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not 0 < value <= _MOST_S
            ):
                raise refused(name, value, f"a number of seconds above 0, up to {_MOST_S}")


_LIMITS: Final = QueryLimits()


class QueryServer:
    """Answers `GET /KEY` on the member's endpoint, on threads of its own, until it is closed.

    KEY is percent-encoded. A key that another member has is asked for there: at the active task, or
    at a standby if that cannot be reached or has the task no longer. An answer is complete or none.
    The status is 503 while no member can answer, and 500 if `answer` raises, wherever it runs.

    Args:
        endpoint: `host:port`, as given to the assignor.
        assignor: knows which host has a key.
        stores: the state of the member's tasks.
        store: whose tasks have the keys.
        answer: called with the key, and with the stores of its task.
        limits: of what queries may cost.
        partitioner: (key, partitions) -> partition, by that of the producers of the store's input.

    Raises:
        ConfigError: the endpoint is not `host:port`.
        ModuleNotFoundError: the extra `http` is not installed.
        OSError: it cannot be listened on.
    """

    def __init__(
        self,
        endpoint: str,
        assignor: RoutesKeys,
        stores: TaskStores,
        store: StateStore[Any, Any],
        answer: Answer,
        *,
        limits: QueryLimits = _LIMITS,
        partitioner: Partitioner = partition_for_key,
    ) -> None:
        self._own = own = listening_address(endpoint)
        self._assignor = assignor
        self._stores = stores
        self._store = store
        self._answer = answer
        self._limits = limits
        self._partitioner = partitioner
        self._server = LimitedServer(
            own,
            self._respond,
            connections=limits.connections,
            threads=limits.threads,
            connection_s=limits.connection_s,
            passed_on=_MARK,
        )

    def close(self) -> None:
        """Answer no more; queries that are being answered have as long as another member has."""
        self._server.close(wait_s=self._limits.peer_s)

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def response(self, key: bytes, *, is_passed_on: bool) -> _Response:
        """Return status and body for a key; one that was passed on is answered here or nowhere."""
        try:
            hosts = self._assignor.hosts_for_key(
                self._store.name, key, partitioner=self._partitioner
            )
        except MissingSourceTopic:
            return _UNAVAILABLE, _TRY_AGAIN
        for host in self._asked(hosts, is_passed_on=is_passed_on):
            if host == self._own:
                found = self._here(key, hosts.partition)
            else:
                found = _asked_at(host, key, self._limits)
            if found is not None:
                return found
        return _UNAVAILABLE, _TRY_AGAIN

    def _asked(self, hosts: KeyHosts, *, is_passed_on: bool) -> list[HostInfo]:
        """Return the hosts to ask, best first."""
        if is_passed_on or hosts.active is None:
            return [self._own]
        return [hosts.active, *hosts.standby]

    def _here(self, key: bytes, partition: int) -> _Response | None:
        """Answer with the state of this member; None if it has the task no longer."""
        try:
            body: object = self._answer(key, self._stores.local_state(self._store, partition))
        except StoreNotHeld:
            return None
        if not isinstance(body, bytes):
            raise TypeError(f"the function that answers queries returned {type(body).__name__}")
        if len(body) > self._limits.answer_bytes:
            raise ValueError(
                f"an answer has {len(body)} bytes, more than QueryLimits.answer_bytes allows:"
                f" {self._limits.answer_bytes}"
            )
        return _OK, body

    def _respond(
        self, environ: Mapping[str, Any], start: Callable[[str, list[tuple[str, str]]], object]
    ) -> Iterable[bytes]:
        """Answer a request, by WSGI (PEP 3333)."""
        path = environ["REQUEST_URI"]
        status, body = _BAD_REQUEST, _MARKS_OF_URLS
        try:
            if environ["REQUEST_METHOD"] != "GET":
                status, body = _NOT_ALLOWED, b"a query is a GET\n"
            elif path.startswith("/") and not {"?", "#"} & {*path}:
                is_passed_on = environ.get("HTTP_STREAMS_QUERY") == "here"
                key = unquote_to_bytes(path[1:])
                status, body = self.response(key, is_passed_on=is_passed_on)
        except Exception:  # noqa: BLE001 a defect of the application's function: log it, and answer
            _log.exception("the query %s failed", shown(path))
            status, body = _FAILED, _SEE_LOG
        headers = {
            "Content-Length": str(len(body)),
            "Content-Type": "application/octet-stream",
            "X-Content-Type-Options": "nosniff",
            _MARK: "answer",
        }
        start(status, [*headers.items()])
        return (body[at : at + _PIECE] for at in range(0, len(body), _PIECE))


def _asked_at(host: HostInfo, key: bytes, limits: QueryLimits) -> _Response | None:
    """Return the whole answer of another member; None if it has none, or cannot be reached."""
    connection = HTTPConnection(host.host, host.port, timeout=limits.peer_s)
    # A timeout of a socket is one of each read: an answer that comes byte by byte has none.
    end = threading.Timer(limits.peer_s, _cut, [connection])
    end.daemon = True
    end.start()
    try:
        path = "/" + quote_from_bytes(key, safe="")
        connection.request("GET", path, headers={_MARK: "here"})
        response = connection.getresponse()
        status = f"{response.status} {response.reason}"
        if response.getheader(_MARK) != "answer" or status not in (_OK, _FAILED):
            return None
        if response.length is None or response.length > limits.answer_bytes:
            return None
        return status, response.read()
    except (HTTPException, OSError, ValueError) as error:
        _log.debug("the query of a key at %s:%d: %r", host.host, host.port, error)
        return None
    finally:
        end.cancel()
        connection.close()


def _cut(connection: HTTPConnection) -> None:
    """End what waits for a connection's socket."""
    taken = connection.sock
    if taken is not None:
        with suppress(OSError):  # it is closed already
            taken.shutdown(socket.SHUT_RDWR)
