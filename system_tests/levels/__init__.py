"""A simulated group of native members whose finalized levels change (KIP-584, KIP-778)."""

from system_tests.levels.events import EventKind
from system_tests.levels.run import (
    LevelsOptions,
    levels_document,
    levels_lines,
    run_levels,
)
from system_tests.levels.world import LevelsWorld

__all__ = [
    "EventKind",
    "LevelsOptions",
    "LevelsWorld",
    "levels_document",
    "levels_lines",
    "run_levels",
]
