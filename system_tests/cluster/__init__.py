"""Simulated brokers and controllers with a metadata log: KIP-584 and KIP-778 under checkers."""

from system_tests.cluster.fleet import run_kraft_seeds
from system_tests.cluster.narrate import kraft_document, kraft_lines, kraft_replay
from system_tests.cluster.nodes.clients import Crew
from system_tests.cluster.plan import (
    KRAFT_FAULTS,
    SCENARIOS,
    KraftOptions,
    KraftPlan,
    read_kraft_options,
)
from system_tests.cluster.rules.checkers import KRAFT_RULES, KraftRule, check_kraft
from system_tests.cluster.run import KraftOutcome, run_kraft

__all__ = [
    "KRAFT_FAULTS",
    "KRAFT_RULES",
    "SCENARIOS",
    "Crew",
    "KraftOptions",
    "KraftOutcome",
    "KraftPlan",
    "KraftRule",
    "check_kraft",
    "kraft_document",
    "kraft_lines",
    "kraft_replay",
    "read_kraft_options",
    "run_kraft",
    "run_kraft_seeds",
]
