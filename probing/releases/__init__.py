"""Kafka Streams releases, their protocol versions, and upgrade paths between them."""

from probing.releases.behaviour import LeaderModel, MemberModel
from probing.releases.lookup import (
    NEWEST_KAFKA,
    RELEASES,
    RebalanceProtocol,
    Release,
    ReleaseError,
    Standing,
    UpgradeFrom,
    find_release,
)
from probing.releases.rows import (
    FORMER_ANSWER,
    ISSUES,
    LAST_EAGER_SERIES,
    NOT_RUN,
    ONE_WAY_FORMATS,
    PIN_BY_LAST_SERIES,
    WITHOUT_EAGER,
    FormatRow,
    OneWayFormat,
    seen_with,
)
from probing.releases.upgrade_notes import (
    formats_between,
    former_answer_is_unreadable,
    one_way_formats_between,
    pin_that_keeps,
)
from probing.releases.upgrade_paths import (
    PATH_RULES,
    Bounce,
    BounceReason,
    Direction,
    UpgradePath,
    upgrade_from_value,
    upgrade_path,
)

__all__ = [
    "FORMER_ANSWER",
    "ISSUES",
    "LAST_EAGER_SERIES",
    "NEWEST_KAFKA",
    "NOT_RUN",
    "ONE_WAY_FORMATS",
    "PATH_RULES",
    "PIN_BY_LAST_SERIES",
    "RELEASES",
    "WITHOUT_EAGER",
    "Bounce",
    "BounceReason",
    "Direction",
    "FormatRow",
    "LeaderModel",
    "MemberModel",
    "OneWayFormat",
    "RebalanceProtocol",
    "Release",
    "ReleaseError",
    "Standing",
    "UpgradeFrom",
    "UpgradePath",
    "find_release",
    "formats_between",
    "former_answer_is_unreadable",
    "one_way_formats_between",
    "pin_that_keeps",
    "seen_with",
    "upgrade_from_value",
    "upgrade_path",
]
