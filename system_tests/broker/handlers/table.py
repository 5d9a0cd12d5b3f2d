"""The table of handlers: API name -> coroutine that answers it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from system_tests.broker.cluster import Cluster


class DropConnectionError(Exception):
    """The protocol requires to close the connection instead of answering."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request with its connection and broker."""

    cluster: Cluster
    node_id: int
    version: int
    client_id: str
    client_host: str
    request: Any


Handler = Callable[[Call], Awaitable[Any]]


def merge(*tables: Mapping[str, Handler]) -> dict[str, Handler]:
    """Merge tables into one.

    Raises:
        ValueError: two tables answer the same API.
    """
    merged: dict[str, Handler] = {}
    for table in tables:
        doubled = sorted(merged.keys() & table.keys())
        if doubled:
            raise ValueError(f"{doubled} are handled twice; keep one handler for each API")
        merged.update(table)
    return merged
