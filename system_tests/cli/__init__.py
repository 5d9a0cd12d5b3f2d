"""The program `rolling-bounce`, one module a command."""

from system_tests.cli.options import (
    MAX_MEMBERS,
    MAX_THREADS,
    draw_option,
    faults_option,
    force_option,
    group_options,
    offline_option,
    partitions_option,
)

__all__ = [
    "MAX_MEMBERS",
    "MAX_THREADS",
    "draw_option",
    "faults_option",
    "force_option",
    "group_options",
    "offline_option",
    "partitions_option",
]
