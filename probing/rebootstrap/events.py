"""What can happen to a client's connections and metadata, and what it is told to do.

Events in the past tense, commands with the rule that fired. Times are milliseconds on the caller's
clock. Nodes are named ``host:port``.
"""

from dataclasses import dataclass
from typing import Final

REBOOTSTRAP_REQUIRED: Final = 129
"""The top-level error of a Metadata response, version 13 and later, that demands it (KIP-1102)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataWanted:
    """The client needs metadata and tries to get it; only the first attempt starts the clock."""

    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataReceived:
    """A Metadata response: the nodes that it names, its top-level error (0 below version 13)."""

    now_ms: int
    nodes: tuple[str, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionStarted:
    """A connection to ``node`` is being made; ``dice`` (0.0 to 1.0) varies its time limit.

    A client with a time limit of its own hands it in as ``limit_ms``, from now on.
    """

    now_ms: int
    node: str
    dice: float = 0.5
    limit_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionReady:
    """The connection to ``node`` works."""

    now_ms: int
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLost:
    """The connection to ``node`` failed or was closed; ``dice`` varies the back-off.

    A client with a back-off of its own hands it in as ``back_off_ms``, from now on; 0 says that it
    may connect again at once.
    """

    now_ms: int
    node: str
    dice: float = 0.5
    back_off_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapResolved:
    """The bootstrap servers were looked up again: the addresses found, perhaps none."""

    now_ms: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockMoved:
    """Time passed; sent as often as the caller polls."""

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
    """Close the connection to ``node``: it was not made in time."""

    node: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseAll:
    """Close every connection; comes right before :class:`BootstrapAgain`."""

    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapAgain:
    """Resolve ``bootstrap.servers`` anew and start from there."""

    rule: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequired:
    """Tell the application that the server demands a rebootstrap which its settings forbid."""

    rule: str
    why: str


RebootstrapCommand = GiveUpConnection | CloseAll | BootstrapAgain | ReportRequired
