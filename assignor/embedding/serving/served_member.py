"""A member with what it serves over HTTP: probes, metrics and queries."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol, Self

from assignor.embedding.errors import MemberStopped
from assignor.embedding.queries import Partitioner, partition_for_key
from assignor.embedding.serving.health import Health, ObservedMember, health_of
from assignor.embedding.serving.probe_server import ProbeServer
from assignor.embedding.serving.query_server import Answer, QueryLimits, QueryServer, RoutesKeys
from assignor.embedding.state_stores import StateStore, TaskStores
from assignor.errors import ConfigError


class Member(ObservedMember, RoutesKeys, Protocol):
    """A `StreamsAssignor`, as far as what is served needs it."""

    @property
    def client_id(self) -> str:
        """The client id of its consumer."""
        ...

    @property
    def endpoint(self) -> str | None:
        """Where it answers queries."""
        ...


class ServedMember:
    """Health, probes, metrics and queries of a member; close it, or use it in `with`.

    A `StreamsApplication` is one. With another loop, make it around the loop, and close it before
    the consumer and the stores. It needs the extra `http` to serve something.

    Args:
        assignor: of the member's consumer, such as `consumer.assignor`.
        stores: the state of its tasks.
    """

    def __init__(self, assignor: Member, stores: TaskStores) -> None:
        self._member = assignor
        self.stores = stores
        self._servers, self._is_closed = ExitStack(), threading.Event()
        self._servers.callback(self._is_closed.set)

    def health(self) -> Health:
        """Return what this member does, and what has to be corrected; on any thread."""
        return health_of(self._member, self.stores)

    def ready(self) -> bool:
        """Return whether all tasks of this member run, and nothing has to be corrected."""
        return self.health().is_ready

    def serve_probes(self, endpoint: str, *, registry: Any = None) -> None:
        """Answer `GET /live`, `/ready` and `/health` until this is closed.

        With the extra `metrics`, `/metrics` has those of this member and all others of the
        registry. See `ProbeServer`.

        Args:
            endpoint: `host:port` that only your infrastructure reaches, as `0.0.0.0:8080`.
            registry: of prometheus_client; default: its own one.

        Raises:
            ConfigError: the endpoint is not `host:port`.
            ModuleNotFoundError: the extra `http` is not installed, or, with a registry, `metrics`.
            OSError: the endpoint cannot be listened on.
            MemberStopped: this is closed.
        """
        has_metrics = registry or find_spec("prometheus_client")
        with self._serving() as opened:
            metrics = self._metrics(registry, opened) if has_metrics else None
            opened.callback(ProbeServer(endpoint, self.health, metrics).close)

    @contextmanager
    def _serving(self) -> Iterator[ExitStack]:
        """Yield what is to be closed with this; nothing stays open if a step fails."""
        with ExitStack() as opened:
            self._check_open()
            yield opened
            self._servers.push(opened.pop_all())
        self._check_open()

    def _check_open(self) -> None:
        if self._is_closed.is_set():
            self._servers.close()
            raise MemberStopped("this member is closed and serves nothing; make another")

    def _metrics(self, registry: Any, opened: ExitStack) -> Callable[[], tuple[str, bytes]]:
        """Register the metrics of this member; return what all of the registry are."""
        from prometheus_client import REGISTRY  # noqa: PLC0415 an extra

        from assignor.embedding.serving.metrics import (  # noqa: PLC0415 an extra
            ApplicationCollector,
            exposition,
        )

        registry = registry or REGISTRY
        who = {"group": self.stores.application_id, "client_id": self._member.client_id}
        collector = ApplicationCollector(self.stores, self.health, **who)
        registry.register(collector)
        opened.callback(registry.unregister, collector)
        return partial(exposition, registry)

    def serve_queries(
        self,
        store: StateStore[Any, Any],
        answer: Answer,
        *,
        limits: QueryLimits | None = None,
        partitioner: Partitioner = partition_for_key,
    ) -> None:
        """Answer `GET /KEY` on the member's endpoint until this is closed.

        See `QueryServer`: any member answers, with the state of the one that has the key.

        Args:
            store: whose tasks have the keys.
            answer: called with the key, and with the stores of its task; returns the body.
            limits: of what queries may cost; default: `QueryLimits()`.
            partitioner: as of `hosts_for_key`: that of the producers of the store's input.

        Raises:
            ConfigError: the consumer was made without `endpoint=`.
            ModuleNotFoundError: the extra `http` is not installed.
            OSError: the endpoint cannot be listened on.
            MemberStopped: this is closed.
        """
        endpoint = self._member.endpoint
        if endpoint is None:
            raise ConfigError("queries need an address to listen on; set endpoint='host:port'")
        with self._serving() as opened:
            server = QueryServer(
                endpoint,
                self._member,
                self.stores,
                store,
                answer,
                limits=limits or QueryLimits(),
                partitioner=partitioner,
            )
            opened.callback(server.close)

    def close(self) -> None:
        """Serve nothing any more. Idempotent."""
        self._servers.close()

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
