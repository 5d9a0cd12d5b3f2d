"""Paths from one release to another by rolling bounces, and what to know on the way."""

from probing.upgrades.formats import (
    FORMER_ANSWER,
    NOT_RUN,
    FormatRow,
    OneWayFormat,
    seen_with,
)
from probing.upgrades.notes import (
    formats_between,
    former_answer_is_unreadable,
    one_way_formats_between,
    pin_that_keeps,
    setting_notes,
)
from probing.upgrades.paths import (
    PATH_RULES,
    Bounce,
    BounceReason,
    Direction,
    UpgradePath,
    upgrade_path,
)

__all__ = [
    "FORMER_ANSWER",
    "NOT_RUN",
    "PATH_RULES",
    "Bounce",
    "BounceReason",
    "Direction",
    "FormatRow",
    "OneWayFormat",
    "UpgradePath",
    "formats_between",
    "former_answer_is_unreadable",
    "one_way_formats_between",
    "pin_that_keeps",
    "seen_with",
    "setting_notes",
    "upgrade_path",
]
