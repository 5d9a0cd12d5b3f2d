"""Rebootstrap of a client (KIP-899, KIP-1102) as a state machine: events in, commands out."""

from probing.rebootstrap.config import (
    RebootstrapConfig,
    RebootstrapConfigError,
    RecoveryStrategy,
    rebootstrap_config,
)
from probing.rebootstrap.events import (
    REBOOTSTRAP_REQUIRED,
    BootstrapAgain,
    BootstrapResolved,
    ClockMoved,
    CloseAll,
    ConnectionLost,
    ConnectionReady,
    ConnectionStarted,
    GiveUpConnection,
    MetadataReceived,
    MetadataWanted,
    RebootstrapEvent,
    ReportRequired,
)
from probing.rebootstrap.machine import (
    NEVER_MS,
    LinkState,
    RebootstrapState,
    next_wakeup_ms,
    rebootstrap_step,
    start_client,
)

__all__ = [
    "NEVER_MS",
    "REBOOTSTRAP_REQUIRED",
    "BootstrapAgain",
    "BootstrapResolved",
    "ClockMoved",
    "CloseAll",
    "ConnectionLost",
    "ConnectionReady",
    "ConnectionStarted",
    "GiveUpConnection",
    "LinkState",
    "MetadataReceived",
    "MetadataWanted",
    "RebootstrapConfig",
    "RebootstrapConfigError",
    "RebootstrapEvent",
    "RebootstrapState",
    "RecoveryStrategy",
    "ReportRequired",
    "next_wakeup_ms",
    "rebootstrap_config",
    "rebootstrap_step",
    "start_client",
]
