"""A simulated group of ours whose levels an operator moves (KIP-584, KIP-778)."""

from system_tests.levels.checkers import check_levels
from system_tests.levels.run import (
    LevelsOptions,
    LevelsOutcome,
    levels_document,
    levels_lines,
    run_levels,
    run_levels_seeds,
)
from system_tests.levels.seen import Seen, What
from system_tests.levels.world import LevelsWorld

__all__ = [
    "LevelsOptions",
    "LevelsOutcome",
    "LevelsWorld",
    "Seen",
    "What",
    "check_levels",
    "levels_document",
    "levels_lines",
    "run_levels",
    "run_levels_seeds",
]
