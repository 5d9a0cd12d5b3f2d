"""Feature levels of a group: operators' updates, members' support, and the polling thread."""

from assignor.levels.member_support import (
    generation_support,
    members_support,
    supported_by_all,
    written_versions,
)
from assignor.levels.old_levels import Need, Survey, needs_below
from assignor.levels.updates import (
    Described,
    LevelResult,
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
    "LevelResult",
    "LevelSource",
    "LevelWatch",
    "Need",
    "Survey",
    "disabling",
    "generation_support",
    "level_text",
    "lossy_text",
    "lower_all",
    "members_support",
    "named_updates",
    "needs_below",
    "raise_all",
    "supported_by_all",
    "written_versions",
]
