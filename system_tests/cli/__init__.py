"""The program `rolling-bounce`, one module a command."""

from system_tests.cli.options import (
    MAX_SIMULATED,
    MAX_THREADS,
    draw_option,
    faults_option,
    force_option,
    group_options,
    offline_option,
    partitions_option,
    topology_option,
)

__all__ = [
    "MAX_SIMULATED",
    "MAX_THREADS",
    "draw_option",
    "faults_option",
    "force_option",
    "group_options",
    "offline_option",
    "partitions_option",
    "topology_option",
]
