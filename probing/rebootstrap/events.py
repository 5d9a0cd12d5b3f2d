"""Events about a client's connections and metadata, and the commands that it gets in return.

Commands carry the rule that decided. Times are milliseconds on the caller's clock. Nodes are named
``host:port``.
"""

from dataclasses import dataclass
from typing import Final

REBOOTSTRAP_REQUIRED: Final = 129
"""Top-level error of a Metadata response (version 13 and later) that demands it (KIP-1102)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataWanted:
    """The client tries to get metadata; the first attempt starts the time limit."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataReceived:
    """A Metadata response with its nodes and its top-level error (0 below version 13)."""

    now_ms: int
    nodes: tuple[str, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStarted:
    """The client started to connect to ``node``; ``jitter`` (0.0 to 1.0) varies the time limit.

    A client with its own time limit gives it as ``limit_ms``, counted from ``now_ms``.
    """

    now_ms: int
    node: str
    jitter: float = 0.5
    limit_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReady:
    """The connection to ``node`` was established."""

    now_ms: int
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLost:
    """The connection to ``node`` failed or was closed; ``jitter`` varies the back-off.

    A client with its own back-off gives it as ``back_off_ms``, counted from ``now_ms``; 0: it may
    reconnect at once.
    """

    now_ms: int
    node: str
    jitter: float = 0.5
    back_off_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapResolved:
    """The bootstrap servers were resolved again: the addresses found, possibly none."""

    now_ms: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockMoved:
    """Time passed; the caller sends this at every poll."""

    now_ms: int


RebootstrapEvent = (
    MetadataWanted
    | MetadataReceived
    | ConnectionStarted
    | ConnectionReady
    | ConnectionLost
    | BootstrapResolved
    | ClockMoved
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUpConnection:
    """Close the connection to ``node``: it was not established in time."""

    node: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseAll:
    """Close every connection; always followed by :class:`BootstrapAgain`."""

    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapAgain:
    """Resolve ``bootstrap.servers`` again and connect to the result."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequired:
    """Report to the application that the server demands a rebootstrap that its settings forbid."""

    rule: str
    why: str


RebootstrapCommand = GiveUpConnection | CloseAll | BootstrapAgain | ReportRequired
