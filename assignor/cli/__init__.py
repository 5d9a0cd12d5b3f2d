"""The ``assignor`` command, and what all commands are made of.

One click group; subcommands are loaded only when they are called. `rolling-bounce` and
`spark-assign` are built of the same parts, so that they look, complete and end alike.
"""

from assignor.cli.completion import COMPLETION
from assignor.cli.ending import (
    EXIT_INTERRUPTED,
    EXIT_NO,
    EXIT_SURROUNDINGS,
    EXIT_USAGE,
    AnswerIsNo,
    BadInput,
    Interrupted,
    SurroundingsFailed,
    failure,
    say,
    warn,
)
from assignor.cli.lazy import CONTEXT, Command, Group, LazyGroup, Subcommand
from assignor.cli.main import main
from assignor.cli.options import (
    all_of,
    complete_path,
    config_option,
    format_option,
    name_option,
    problem_option,
    release_option,
    seeds_option,
    settings_of,
    strategies_note,
    strategy_option,
    timeout_option,
    workers_option,
)
from assignor.cli.text import print_uncut, text_console

__all__ = [
    "COMPLETION",
    "CONTEXT",
    "EXIT_INTERRUPTED",
    "EXIT_NO",
    "EXIT_SURROUNDINGS",
    "EXIT_USAGE",
    "AnswerIsNo",
    "BadInput",
    "Command",
    "Group",
    "Interrupted",
    "LazyGroup",
    "Subcommand",
    "SurroundingsFailed",
    "all_of",
    "complete_path",
    "config_option",
    "failure",
    "format_option",
    "main",
    "name_option",
    "print_uncut",
    "problem_option",
    "release_option",
    "say",
    "seeds_option",
    "settings_of",
    "strategies_note",
    "strategy_option",
    "text_console",
    "timeout_option",
    "warn",
    "workers_option",
]
