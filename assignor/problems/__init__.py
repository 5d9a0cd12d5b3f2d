"""Problem files: groups before a rebalance, events that follow, rounds until a group settles."""

from assignor.problems.events import play_problem
from assignor.problems.files import (
    PROTOCOL_KEY,
    TOPOLOGY_VERSION_KEY,
    LagMemory,
    Problem,
    read_problem,
    result_of,
)
from assignor.problems.lines import line_text, parse_problem
from assignor.problems.measures import (
    Measures,
    balance_of,
    lacking_records,
    measures_of,
    misplaced_tasks,
    records_to_restore,
    total_of,
    worth_of,
)
from assignor.problems.rounds import Moves, Round, clients_after, moves_of, play, regroup, totals
from assignor.problems.schedule import Event, Schedule
from assignor.problems.values import (
    INSTANCES_KEY,
    ProblemError,
    checked_object,
    list_at,
    object_at,
    quoted,
    read_client,
    task_of,
    texts_at,
)

__all__ = [
    "INSTANCES_KEY",
    "PROTOCOL_KEY",
    "TOPOLOGY_VERSION_KEY",
    "Event",
    "LagMemory",
    "Measures",
    "Moves",
    "Problem",
    "ProblemError",
    "Round",
    "Schedule",
    "balance_of",
    "checked_object",
    "clients_after",
    "lacking_records",
    "line_text",
    "list_at",
    "measures_of",
    "misplaced_tasks",
    "moves_of",
    "object_at",
    "parse_problem",
    "play",
    "play_problem",
    "quoted",
    "read_client",
    "read_problem",
    "records_to_restore",
    "regroup",
    "result_of",
    "task_of",
    "texts_at",
    "total_of",
    "totals",
    "worth_of",
]
