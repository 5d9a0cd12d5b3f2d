"""Interactive queries over HTTP: any member answers, with the state of the member that has a key.

It has no users and no encryption: bind it to an address that only the application's hosts reach,
or use `TaskStores.local_state` and `hosts_for_key` in the web framework of your service.

waitress (extra `http`) receives and sends: a client that is slow, idle or hostile costs a
connection of a limited number for a limited time, and neither a thread nor memory.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from http.client import HTTPConnection, HTTPException
from types import MappingProxyType
from typing import Any, Final, Protocol, Self
from urllib.parse import quote_from_bytes, unquote_to_bytes

from assignor.config import check_kind
from assignor.embedding.errors import StoreNotHeld
from assignor.embedding.queries import KeyHosts, Partitioner, partition_for_key
from assignor.embedding.serving.limited_http import (
    FAILED,
    OK,
    UNAVAILABLE,
    LimitedServer,
    Response,
    listening_address,
)
from assignor.embedding.state_stores import StateStore, TaskState, TaskStores
from assignor.errors import MissingSourceTopic
from assignor.logs import line_logger
from assignor.option_fields import Kind, described, number, option, option_text
from encoding import HostInfo

_log = line_logger(__name__)

Answer = Callable[[bytes, TaskState], bytes]
"""Key and the stores of its task -> body of the response."""

_MOST_S: Final = 24 * 3600
_MARK: Final = "Streams-Query"
_HERE: Final = "here"
"""Header of members: `here` in a request that is not passed on, `answer` in responses."""
_HEADERS: Final = MappingProxyType(
    {
        "Content-Type": "application/octet-stream",
        "X-Content-Type-Options": "nosniff",
        _MARK: "answer",
    }
)


def _response(status: str, body: bytes) -> Response:
    return Response(status, body, _HEADERS)


_TRY_AGAIN: Final = _response(UNAVAILABLE, b"no member has this key at the moment; try again\n")
_BUSY: Final = _response(UNAVAILABLE, b"too many queries wait for other members; try again\n")
_SEE_LOG: Final = _response(
    FAILED, b"the query failed; see the log of the member that has this key\n"
)
_NOT_ALLOWED: Final = _response("405 Method Not Allowed", b"a query is a GET\n")
_NO_KEY: Final = _response(
    "400 Bad Request", b"a key is percent-encoded: its ? is %3F, its # is %23\n"
)


class RoutesKeys(Protocol):
    """A `StreamsAssignor`, as far as queries need it."""

    def hosts_for_key(self, store: str, key: bytes, *, partitioner: Partitioner) -> KeyHosts:
        """Return the hosts that have the state of a key."""
        ...


_COUNT: Final = Kind("a number from 1 on", lambda value: type(value) is int and value >= 1)
_SECONDS: Final = number(
    f"a number of seconds above 0, up to {_MOST_S}", lambda value: 0 < value <= _MOST_S
)


@described
@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLimits:
    """What queries of a member may cost.

    Raises:
        ConfigError: a value is not a positive number.
    """

    connections: int = option(64, "open at a time; others wait to be accepted.", _COUNT)
    threads: int = option(
        4,
        "queries for keys of this member that are answered at a time; as many that other members"
        " pass on, and as many that wait for other members. Others wait.",
        _COUNT,
    )
    connection_s: float = option(
        30.0,
        "how long a connection may last, from its start until its answer is read; a client that"
        " uses it for further queries must repeat one that is cut off.",
        _SECONDS,
    )
    peer_s: float = option(5.0, "how long another member may take for its answer.", _SECONDS)
    answer_bytes: int = option(64 << 20, "most bytes of an answer.", _COUNT)

    def __post_init__(self) -> None:
        """Check the values."""
        for each in fields(self):
            check_kind(each.name, getattr(self, each.name), option_text(each).kind)


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
            failure=_SEE_LOG,
            passed_on=(_MARK, _HERE),
            waits=self._is_elsewhere,
            full=_BUSY,
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

    def response(self, key: bytes, *, is_passed_on: bool) -> Response:
        """Return the answer for a key; one that was passed on is answered here or nowhere."""
        try:
            hosts = self._hosts_of(key)
        except MissingSourceTopic:
            return _TRY_AGAIN
        for host in [self._own] if is_passed_on else _asked(hosts, self._own):
            if host == self._own:
                found = self._here(key, hosts.partition)
            else:
                found = _asked_at(host, key, self._limits)
            if found is not None:
                return found
        return _TRY_AGAIN

    def _hosts_of(self, key: bytes) -> KeyHosts:
        return self._assignor.hosts_for_key(self._store.name, key, partitioner=self._partitioner)

    def _is_elsewhere(self, path: str) -> bool:
        """Return whether the answer for a key may have to wait for another member."""
        hosts = self._hosts_of(_key_of(path))
        asked = _asked(hosts, self._own)
        if asked[0] != self._own:
            return True
        try:
            self._stores.local_state(self._store, hosts.partition)
        except StoreNotHeld:
            return asked != [self._own]
        return False

    def _here(self, key: bytes, partition: int) -> Response | None:
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
        return _response(OK, body)

    def _respond(self, environ: Mapping[str, Any]) -> Response:
        path = environ["REQUEST_URI"]
        if environ["REQUEST_METHOD"] != "GET":
            return _NOT_ALLOWED
        if not path.startswith("/") or {"?", "#"} & {*path}:
            return _NO_KEY
        is_passed_on = environ.get("HTTP_STREAMS_QUERY") == _HERE
        return self.response(_key_of(path), is_passed_on=is_passed_on)


def _key_of(path: str) -> bytes:
    return unquote_to_bytes(path[1:])


def _asked(hosts: KeyHosts, own: HostInfo) -> list[HostInfo]:
    """Return the hosts to ask, best first."""
    return [own] if hosts.active is None else [hosts.active, *hosts.standby]


def _asked_at(host: HostInfo, key: bytes, limits: QueryLimits) -> Response | None:
    """Return the whole answer of another member; None if it has none, or cannot be reached."""
    connection = HTTPConnection(host.host, host.port, timeout=limits.peer_s)
    # A timeout of a socket is one of each read: an answer that comes byte by byte has none.
    is_over = threading.Event()
    end = threading.Timer(limits.peer_s, _cut, [connection, is_over])
    end.daemon = True
    end.start()
    try:
        connection.connect()
        if is_over.is_set():  # before there was a socket to cut
            return None
        path = "/" + quote_from_bytes(key, safe="")
        connection.request("GET", path, headers={_MARK: _HERE})
        response = connection.getresponse()
        status = f"{response.status} {response.reason}"
        if response.getheader(_MARK) != "answer" or status not in (OK, FAILED):
            return None
        if response.length is None or response.length > limits.answer_bytes:
            return None
        return _response(status, response.read())
    except (HTTPException, OSError, ValueError) as error:
        _log.debug("the query of a key at %s:%d: %r", host.host, host.port, error)
        return None
    finally:
        end.cancel()
        connection.close()


def _cut(connection: HTTPConnection, is_over: threading.Event) -> None:
    """End what waits for a connection's socket, or will."""
    is_over.set()
    taken = connection.sock
    if taken is not None:
        with suppress(OSError):  # it is closed already
            taken.shutdown(socket.SHUT_RDWR)
