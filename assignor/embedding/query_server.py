"""Interactive queries over HTTP: any member answers, with the state of the member that has a key.

It has no users and no encryption: bind it to an address that only the application's hosts reach,
or use `TaskStores.local_state` and `hosts_for_key` in the web framework of your service.

`assignor.embedding` does not export it, because most members do not need what it imports.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, Self
from urllib.parse import quote_from_bytes, unquote_to_bytes

from assignor.embedding.errors import StoreNotHeld
from assignor.embedding.queries import KeyHosts
from assignor.embedding.state_stores import StateStore, TaskState, TaskStores
from assignor.errors import ConfigError, MissingSourceTopic
from assignor.logs import line_logger
from assignor.rebalance import parse_endpoint
from encoding import HostInfo

_log = line_logger(__name__)

Answer = Callable[[bytes, TaskState], bytes]
"""Key and the stores of its task -> body of the response."""

_TIMEOUT_S: Final = 5.0
_ANSWER_BYTES: Final = 64 << 20
_HERE: Final = "/here/"
_OK: Final = 200
_FAILED: Final = 500
_UNAVAILABLE: Final = 503
_TRY_AGAIN: Final = b"no member has this key at the moment; try again\n"


class RoutesKeys(Protocol):
    """A `StreamsAssignor`, as far as queries need it."""

    def hosts_for_key(self, store: str, key: bytes) -> KeyHosts:
        """Return the hosts that have the state of a key."""
        ...


class QueryServer:
    """Answers `GET /KEY` on the member's endpoint, on threads of its own, until it is closed.

    A key that another member has is asked for there: at the active task, or at a standby while that
    cannot be reached. The status is 503 while no member can answer, and 500 if `answer` raises.

    Args:
        endpoint: `host:port`, as given to the assignor.
        assignor: knows which host has a key.
        stores: the state of the member's tasks.
        store: whose tasks have the keys.
        answer: called with the key, and with the stores of its task.

    Raises:
        ConfigError: the endpoint is not `host:port`.
        OSError: it cannot be listened on.
    """

    def __init__(
        self,
        endpoint: str,
        assignor: RoutesKeys,
        stores: TaskStores,
        store: StateStore[Any, Any],
        answer: Answer,
    ) -> None:
        own = parse_endpoint(endpoint)
        if own is None:
            raise ConfigError(f"endpoint {endpoint!r} is not host:port")
        self._own = own
        self._assignor = assignor
        self._stores = stores
        self._store = store
        self._answer = answer
        self._server = ThreadingHTTPServer(own, partial(_Handler, self.response))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="state-queries", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def response(self, path: str) -> tuple[int, bytes]:
        """Return status and body for `/KEY`, or for `/here/KEY`, which is not passed on."""
        is_passed_on = path.startswith(_HERE)
        key = unquote_to_bytes(path.removeprefix(_HERE if is_passed_on else "/"))
        try:
            hosts = self._assignor.hosts_for_key(self._store.name, key)
        except MissingSourceTopic:
            return _UNAVAILABLE, _TRY_AGAIN
        for host in self._asked(hosts, is_passed_on=is_passed_on):
            with suppress(StoreNotHeld, HTTPException, OSError):
                if host != self._own:
                    return _OK, _asked_at(host, key)
                state = self._stores.local_state(self._store, hosts.partition)
                return _OK, self._answer(key, state)
        return _UNAVAILABLE, _TRY_AGAIN

    def _asked(self, hosts: KeyHosts, *, is_passed_on: bool) -> list[HostInfo]:
        """Return the hosts to ask, best first."""
        if is_passed_on or hosts.active is None:
            return [self._own]
        return [hosts.active, *hosts.standby]


class _Handler(BaseHTTPRequestHandler):
    """A request; `response` is called with its path."""

    timeout = _TIMEOUT_S

    def __init__(self, response: Callable[[str], tuple[int, bytes]], *given: Any) -> None:
        self._response = response
        super().__init__(*given)

    def do_GET(self) -> None:
        """Answer the request."""
        try:
            status, body = self._response(self.path)
        except Exception:  # noqa: BLE001 a defect of the application's function: log it, and answer
            _log.exception("the query %s failed", self.path)
            status, body = _FAILED, b"the query failed; see the log of this member\n"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, form: str, *values: Any) -> None:
        """Log a request at DEBUG."""
        _log.debug(form, *values)


def _asked_at(host: HostInfo, key: bytes) -> bytes:
    """Return the answer of another member.

    Raises:
        HTTPException: it cannot answer.
        OSError: it cannot be reached.
    """
    connection = HTTPConnection(host.host, host.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", _HERE + quote_from_bytes(key, safe=""))
        response = connection.getresponse()
        if response.status != _OK:
            raise HTTPException(f"status {response.status}")
        body = response.read(_ANSWER_BYTES + 1)
        if len(body) > _ANSWER_BYTES:
            raise HTTPException(f"more than {_ANSWER_BYTES} bytes")
        return body
    finally:
        connection.close()
