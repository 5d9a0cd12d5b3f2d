"""Feature levels of a group: an operator's updates, what members support, the watching thread."""

from assignor.levels.member_support import members_support, supported_by_all
from assignor.levels.updates import (
    Described,
    Told,
    disabling,
    level_text,
    lossy_text,
    lower_all,
    named_updates,
    raise_all,
)
from assignor.levels.watcher import DEFAULT_EVERY_S, FolderLevels, LevelSource, LevelWatch

__all__ = [
    "DEFAULT_EVERY_S",
    "Described",
    "FolderLevels",
    "LevelSource",
    "LevelWatch",
    "Told",
    "disabling",
    "level_text",
    "lossy_text",
    "lower_all",
    "members_support",
    "named_updates",
    "raise_all",
    "supported_by_all",
]
