"""A simulated group of native members whose finalized levels change (KIP-584, KIP-778)."""

from system_tests.levels.checkers import check_levels
from system_tests.levels.events import Event, EventKind
from system_tests.levels.run import (
    LevelsOptions,
    LevelsOutcome,
    levels_document,
    levels_lines,
    run_levels,
    run_levels_seeds,
)
from system_tests.levels.world import LevelsWorld

__all__ = [
    "Event",
    "EventKind",
    "LevelsOptions",
    "LevelsOutcome",
    "LevelsWorld",
    "check_levels",
    "levels_document",
    "levels_lines",
    "run_levels",
    "run_levels_seeds",
]
