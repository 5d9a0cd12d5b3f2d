"""Probes of a member over HTTP: `/live`, `/ready`, `/health` and, with `metrics`, `/metrics`."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from assignor.embedding.serving.health import Health
from assignor.embedding.serving.limited_http import (
    FAILED,
    OK,
    UNAVAILABLE,
    LimitedServer,
    Response,
    listening_address,
)

_TEXT: Final = MappingProxyType({"Content-Type": "text/plain"})
_NO_PATH: Final = Response(
    "404 Not Found", b"there are /live, /ready, /health and /metrics\n", _TEXT
)
_SEE_LOG: Final = Response(FAILED, b"the probe failed; see the log\n", _TEXT)
_PROBES: Final = ("/live", "/ready", "/health")
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
            failure=_SEE_LOG,
            waits=lambda path: not path.startswith(_PROBES),  # a collector of the registry may hang
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

    def _respond(self, environ: Mapping[str, Any]) -> Response:
        path = environ["PATH_INFO"]
        if path == "/metrics" and self._metrics is not None:
            kind, text = self._metrics()
            return Response(OK, text, {"Content-Type": kind})
        if path not in _PROBES:
            return _NO_PATH
        health = self._health()
        is_fine = {
            "/live": health.is_alive,
            "/ready": health.is_ready,
            "/health": not health.problems,
        }[path]
        document = json.dumps(health.as_json()) + "\n"
        headers = {"Content-Type": "application/json"}
        return Response(OK if is_fine else UNAVAILABLE, document.encode(), headers)
