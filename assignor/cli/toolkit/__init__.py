"""Parts that the commands of all three programs share: options, output, exit status, extras."""

from assignor.cli.toolkit.commands import CONTEXT, Command, Group, LazyGroup, Subcommand
from assignor.cli.toolkit.completion import COMPLETION
from assignor.cli.toolkit.connect import connect_options, connected, target_of
from assignor.cli.toolkit.exit_status import (
    EXIT_ENVIRONMENT,
    EXIT_NO,
    EXIT_USAGE,
    AnswerIsNo,
    BadInput,
    EnvironmentFailed,
    Interrupted,
    failure,
    say,
    warn,
)
from assignor.cli.toolkit.extras import absent_extra, missing_extra
from assignor.cli.toolkit.options import (
    all_of,
    complete_path,
    config_option,
    format_option,
    imported_topology,
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
from assignor.cli.toolkit.text import TextTable, line, print_uncut, text_console
from assignor.interrupts import EXIT_INTERRUPTED

__all__ = [
    "COMPLETION",
    "CONTEXT",
    "EXIT_ENVIRONMENT",
    "EXIT_INTERRUPTED",
    "EXIT_NO",
    "EXIT_USAGE",
    "AnswerIsNo",
    "BadInput",
    "Command",
    "EnvironmentFailed",
    "Group",
    "Interrupted",
    "LazyGroup",
    "Subcommand",
    "TextTable",
    "absent_extra",
    "all_of",
    "complete_path",
    "config_option",
    "connect_options",
    "connected",
    "failure",
    "format_option",
    "imported_topology",
    "line",
    "missing_extra",
    "name_option",
    "print_uncut",
    "problem_option",
    "release_option",
    "say",
    "seeds_option",
    "settings_of",
    "strategies_note",
    "strategy_option",
    "target_of",
    "text_console",
    "timeout_option",
    "warn",
    "workers_option",
]
