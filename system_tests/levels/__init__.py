"""A simulated group of native members whose finalized levels change (KIP-584, KIP-778)."""

from system_tests.levels.brokers import LevelSource
from system_tests.levels.checkers import LEVEL_RULES
from system_tests.levels.operate import BACK, LevelOperator
from system_tests.levels.run import LevelsOptions, levels_document, levels_lines, run_levels

__all__ = [
    "BACK",
    "LEVEL_RULES",
    "LevelOperator",
    "LevelSource",
    "LevelsOptions",
    "levels_document",
    "levels_lines",
    "run_levels",
]
