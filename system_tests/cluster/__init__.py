"""A simulated Kafka cluster with a metadata log, and checkers of KIP-584 and KIP-778."""

from system_tests.cluster.narrate import kraft_document, kraft_lines
from system_tests.cluster.plan import KRAFT_FAULTS, SCENARIOS, KraftOptions, read_kraft_options
from system_tests.cluster.rules.checkers import KRAFT_RULES, check_kraft
from system_tests.cluster.run import run_kraft

__all__ = [
    "KRAFT_FAULTS",
    "KRAFT_RULES",
    "SCENARIOS",
    "KraftOptions",
    "check_kraft",
    "kraft_document",
    "kraft_lines",
    "read_kraft_options",
    "run_kraft",
]
