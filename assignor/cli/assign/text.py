"""The text format of ``assignor assign``: clients, load bars, moves, copies, warnings."""

from collections.abc import Callable, Sequence

import numpy as np
from rich.table import Table
from rich.text import Text

from assignor.cli.toolkit.text import bar, print_uncut, text_console
from assignor.inspection import short_id
from assignor.placement import (
    GroupState,
    IntArray,
    TaskAssignment,
    busiest,
    stalled_text,
    work_of,
)
from assignor.problems import Measures, Problem, Round, moves_of, totals
from encoding import shown

_BAR = 12
_SHOWN = 8
_TITLES = {"handoffs": "hand-offs", "takeovers": "take-overs", "warmups_max": "warm-ups max"}


def print_answer(
    problem: Problem,
    assignment: TaskAssignment,
    *,
    strategy: str,
    millis: float,
    measures: Measures | None = None,
) -> None:
    """Print a table of each client's tasks, then moves, the follow-up rebalance and warnings."""
    state, console = problem.state, text_console()
    copies = f"{len(assignment.standbys) - len(assignment.warmups)} standbys"
    head = (
        f"{shown(problem.name) or 'group'}: {len(state.tasks)} tasks ({int(state.stateful.sum())} "
        f"stateful), {copies}, {len(state.clients)} clients, {int(state.threads.sum())} threads; "
        f"{strategy}, {millis:.1f} ms"
    )
    console.print(Text(head, style="bold"))
    print_uncut(_table(state, assignment))
    moves = moves_of(state, assignment)
    console.print(
        f"hand-offs {moves.handoffs}, take-overs {moves.takeovers}, stateless moves "
        f"{moves.stateless_moves}, restores {moves.restores}, cold starts {moves.cold}, "
        f"warm-ups {moves.warmups} of {state.config.max_warmup_replicas}",
        highlight=False,
    )
    if measures is not None:
        console.print(Text(worth_line(measures)))
    if state.weights is not None:
        console.print(Text(work_line(state, assignment.active)))
    console.print(f"follow-up rebalance: {_followup(state, assignment)}", highlight=False)
    for warning in dict.fromkeys((*state.warnings, *assignment.warnings)):
        console.print(Text(f"warning: {shown(warning, limit=None)}", style="yellow"))
    console.print()


def worth_line(measures: Measures) -> str:
    """Return a sentence about records to restore, balance, gain and worth."""
    unknown = measures.unknown_restores
    more = f" and an unknown number for {unknown} copies" if unknown else ""
    return (
        f"records to restore {measures.restored_records:,}{more}; balance "
        f"{measures.balance_before:.2f} -> {measures.balance_after:.2f} -> "
        f"{measures.balance_settled:.2f}; gained {measures.gained}, touched {measures.touched}, "
        f"worth {measures.worth:.2f}"
    )


def _followup(state: GroupState, assignment: TaskAssignment) -> str:
    if assignment.followup:
        return (
            f"in {state.config.probing_rebalance_interval_ms // 1000} s, to move tasks to "
            "caught-up copies"
        )
    stalled = stalled_text(state, assignment)
    if assignment.look_again:
        later = "none requested now; the leader checks again later"
        return f"{later}: {stalled}" if stalled else later
    return f"none, but {stalled}" if stalled else "none, settled"


def _table(state: GroupState, assignment: TaskAssignment) -> Table:
    table = Table(box=None, pad_edge=False)
    clients = len(state.clients)
    has_racks, has_tags = any(state.racks), any(state.tags)
    for name in ("client", *["rack"] * has_racks, *["tags"] * has_tags):
        table.add_column(name, overflow="ellipsis", no_wrap=True)
    is_weighted = state.weights is not None
    work_columns = ("work", "work per thread") if is_weighted else ()
    for name in ("threads", "active", "standby", "warm-up", *work_columns):
        table.add_column(name, justify="right")
    for name in ("load per thread", "gained", "lost"):
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    active = np.bincount(assignment.active, minlength=clients)
    warmups = set(assignment.warmups)
    standby = [0] * clients
    warm = [0] * clients
    for pair in assignment.standbys:
        (warm if pair in warmups else standby)[pair[1]] += 1
    capacity = np.maximum(state.capacity(), 1)
    load = (active + np.array(standby) + np.array(warm)) / capacity
    top = max(float(load.max()), 1e-9)
    work = work_of(state, assignment.active)
    moved = np.flatnonzero(assignment.active != state.owner)
    for number, process_id in enumerate(state.clients):
        gained = [state.tasks[t] for t in moved if assignment.active[t] == number]
        lost = [state.tasks[t] for t in moved if state.owner[t] == number]
        load_bar = bar(float(load[number]) / top, _BAR)
        table.add_row(
            shown(short_id(process_id, state.clients)),
            *[shown(state.racks[number] or "")] * has_racks,
            *[shown(",".join(f"{k}={v}" for k, v in state.tags[number]))] * has_tags,
            *map(str, (state.threads[number], active[number], standby[number], warm[number])),
            *[f"{work[number]:.1f}", f"{work[number] / capacity[number]:.1f}"] * is_weighted,
            f"{load_bar:<{_BAR}} {load[number]:.1f}",
            _listed(gained, "+"),
            _listed(lost, "-"),
        )
    return table


def work_line(state: GroupState, active: IntArray) -> str:
    """Return a sentence about how the work of active tasks is distributed, for weighted tasks."""
    client, most = busiest(state, active)
    total = float(work_of(state, active).sum())
    average = total / int(state.capacity().sum())
    name = shown(short_id(state.clients[client], state.clients))
    return (
        f"work {total:.1f}; {most:.1f} per thread on the busiest client, {name}, "
        f"{average:.1f} on average"
    )


def shortener(state: GroupState) -> Callable[[str], str]:
    """Return a function from a client id to its shortest unique prefix in this group."""
    known = {process_id: short_id(process_id, state.clients) for process_id in state.clients}
    return known.__getitem__


def _listed(tasks: Sequence[object], sign: str) -> str:
    names = " ".join(f"{sign}{task}" for task in tasks[:_SHOWN])
    more = len(tasks) - _SHOWN
    return f"{names} ({len(tasks)} in total)" if more > 0 else names


def print_rounds(
    name: str, phases: Sequence[tuple[str, list[Round]]], *, is_settled: bool, strategy: str
) -> None:
    """Print a table of the start and each event: rounds and moves until the group settles."""
    console = text_console()
    verdict = "settled" if is_settled else "never settled"
    console.print(Text(f"{shown(name) or 'group'} with {strategy}: {verdict}", style="bold"))
    table = Table(box=None, pad_edge=False)
    columns = ("rounds", "handoffs", "takeovers", "stateless_moves", "restores", "cold")
    for column in ("event", *columns, "warmups_max", "peak_load"):
        title = _TITLES.get(column, column.replace("_", " "))
        table.add_column(title, justify="left" if column == "event" else "right")
    for event, rounds in phases:
        row = totals(rounds)
        table.add_row(event, *[str(row[c]) for c in (*columns, "warmups_max", "peak_load")])
    print_uncut(table)
