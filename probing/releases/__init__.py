"""Kafka Streams releases and their protocol versions."""

from probing.releases.behaviour import LeaderModel, MemberModel
from probing.releases.lookup import (
    NEWEST_KAFKA,
    RELEASES,
    RebalanceProtocol,
    Release,
    ReleaseError,
    Standing,
    parse_order,
)
from probing.releases.names import find_release
from probing.releases.rows import (
    BRIDGE_SERIES,
    FIRST_PATCH_WITHOUT_EAGER,
    ISSUES,
    LAST_EAGER_SERIES,
    PATCHES_BY_SERIES,
    PIN_BY_LAST_SERIES,
    READ,
    RELEASE_TABLES,
    TRUNK,
    WITHOUT_EAGER,
)

__all__ = [
    "BRIDGE_SERIES",
    "FIRST_PATCH_WITHOUT_EAGER",
    "ISSUES",
    "LAST_EAGER_SERIES",
    "NEWEST_KAFKA",
    "PATCHES_BY_SERIES",
    "PIN_BY_LAST_SERIES",
    "READ",
    "RELEASES",
    "RELEASE_TABLES",
    "TRUNK",
    "WITHOUT_EAGER",
    "LeaderModel",
    "MemberModel",
    "RebalanceProtocol",
    "Release",
    "ReleaseError",
    "Standing",
    "find_release",
    "parse_order",
]
