"""Probes of a member over HTTP: `/live`, `/ready`, `/health` and, with `metrics`, `/metrics`."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Self

from assignor.embedding.serving.health import Health
from assignor.embedding.serving.limited_http import LimitedServer, listening_address
from assignor.logs import line_logger

_log = line_logger(__name__)

_OK: Final = "200 OK"
_NOT_FOUND: Final = "404 Not Found"
_FAILED: Final = "500 Internal Server Error"
_UNAVAILABLE: Final = "503 Service Unavailable"
_PATHS: Final = b"there are /live, /ready, /health and /metrics\n"
_CONNECTIONS, _THREADS, _CONNECTION_S, _LAST_S = 128, 2, 5.0, 2.0


class ProbeServer:
    """Answers probes on threads of its own, until it is closed. It needs the extra `http`.

    - `/live`: 503 once the member processes nothing any more until it is started again;
    - `/ready`: 503 until it processes all of its tasks, and while something has to be corrected;
    - `/health`: what it does, as JSON; 503 if something has to be corrected;
    - `/metrics`: for Prometheus, if `metrics` is given.

    Args:
        endpoint: `host:port`, such as `0.0.0.0:8080`.
        health: called for each request.
        metrics: returns content type and text, such as
            `assignor.embedding.serving.metrics.exposition`.

    Raises:
        ConfigError: the endpoint is not `host:port`.
        ModuleNotFoundError: the extra `http` is not installed.
        OSError: it cannot be listened on.
    """

    def __init__(
        self,
        endpoint: str,
        health: Callable[[], Health],
        metrics: Callable[[], tuple[str, bytes]] | None = None,
    ) -> None:
        self._health = health
        self._metrics = metrics
        self._server = LimitedServer(
            listening_address(endpoint),
            self._respond,
            connections=_CONNECTIONS,
            threads=_THREADS,
            connection_s=_CONNECTION_S,
        )

    def close(self) -> None:
        """Answer no more."""
        self._server.close(wait_s=_LAST_S)

    def __enter__(self) -> Self:
        """Return the server."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _respond(
        self, environ: Mapping[str, Any], start: Callable[[str, list[tuple[str, str]]], object]
    ) -> Iterable[bytes]:
        """Answer a request, by WSGI (PEP 3333)."""
        try:
            status, kind, body = self._answer(environ["PATH_INFO"])
        except Exception:  # noqa: BLE001 a defect here: log it, and answer
            _log.exception("the probe failed")
            status, kind, body = _FAILED, "text/plain", b"the probe failed; see the log\n"
        start(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, path: str) -> tuple[str, str, bytes]:
        if path == "/metrics" and self._metrics is not None:
            return _OK, *self._metrics()
        if path not in ("/live", "/ready", "/health"):
            return _NOT_FOUND, "text/plain", _PATHS
        health = self._health()
        is_fine = {
            "/live": health.is_alive,
            "/ready": health.is_ready,
            "/health": not health.problems,
        }[path]
        document = json.dumps(health.as_json()) + "\n"
        return _OK if is_fine else _UNAVAILABLE, "application/json", document.encode()
