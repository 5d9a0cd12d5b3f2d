"""``assignor explain``: why a task runs where it runs, and what would move it."""

import json
import sys
from collections.abc import Iterator
from typing import IO, Any

import click
from rich.text import Text

from assignor.cli.assign.command import chosen_strategy, given_settings
from assignor.cli.assign.lines import line_error, problem_lines
from assignor.cli.assign.output import output_on_stderr
from assignor.cli.assign.text import shortener, work_line
from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.exit_status import BadInput, say
from assignor.cli.toolkit.options import (
    config_option,
    format_option,
    name_option,
    problem_option,
    strategies_note,
    strategy_option,
)
from assignor.cli.toolkit.text import Sentence, TextTable, print_uncut, text_console
from assignor.errors import ConfigError
from assignor.explain import (
    Candidate,
    Change,
    Facts,
    active_reason,
    candidates,
    changes,
    copy_reason,
    dropped,
    dropped_reason,
    facts_of,
)
from assignor.placement import (
    LAG_RUNNING,
    LAG_UNKNOWN,
    NOBODY,
    BelowShare,
    below_share,
    run_with_trace,
    share_lines,
)
from assignor.problems import Problem, parse_problem, read_problem
from encoding import RebalanceError, TaskId

_SHOWN = 8
_HELP = f"""Explain why each task runs where it runs.

With --task: the candidates, the rule that decided, and which single changes would move the task.
The command finds these changes by running the strategy again with one change at a time. Without
--task: the number of tasks that each rule decided.

{strategies_note()}
"""
_EXAMPLES = """
PROGRAM explain --problem groups.jsonl --name join-1 --task 0_3
PROGRAM explain --problem groups.jsonl --name join-1
PROGRAM explain --problem - --task 0_3 --strategy sticky < group.json
PROGRAM explain --problem groups.jsonl --format json | jq .tasks[0]
"""


@click.command(
    "explain",
    cls=Command,
    help=_HELP,
    short_help="Explain why each task runs where it runs.",
    examples=_EXAMPLES,
    exits={2: "a group is invalid, or a task does not exist"},
)
@problem_option()
@click.option("--task", "task_name", metavar="TASK", help="One task, such as 0_3; default: all.")
@name_option
@strategy_option()
@config_option
@format_option()
def explain(
    *,
    problem: IO[bytes],
    task_name: str | None,
    name: str | None,
    strategy: str,
    settings: tuple[str, ...],
    form: str,
) -> None:
    """Entry point of the subcommand."""
    chosen, given = chosen_strategy(strategy), given_settings(settings)
    failed, seen = False, 0
    for number, line in enumerate(problem_lines(problem), start=1):
        try:
            data = parse_problem(line, number=number)
            if name is not None and data.get("name") != name:
                continue
            seen += 1
            read = read_problem(data, settings=given)
            task = None if task_name is None else task_index(read, task_name)
            with output_on_stderr():
                answer, trace = run_with_trace(read.state, chosen)
            facts = facts_of(
                read.state,
                answer,
                trace=trace,
                name=shortener(read.state) if form == "text" else None,
            )
            with output_on_stderr():
                tried = [] if task is None else changes(facts, task, chosen)
        except RebalanceError as error:
            failed = True
            say("assignor", line_error(number, error))
            continue
        _show(read, facts, name=strategy, task=task, tried=tried, form=form)
    if not seen and not failed:
        wanted = "the file has no group" + ("" if name is None else f" {name!r}")
        raise BadInput(f"{wanted}; `assignor inspect --save` writes one")
    sys.exit(2 if failed else 0)


def task_index(problem: Problem, name: str) -> int:
    """Return the index of a task in the problem.

    Raises:
        ConfigError: the problem has no such task; the message names the first and the last one.
    """
    tasks = problem.state.tasks
    try:
        return tasks.index(TaskId.parse(name))
    except ValueError:
        known = f"{tasks[0]} to {tasks[-1]}" if tasks else "none"
        raise ConfigError(
            f"{problem.name or 'the group'} has no task {name!r}; its tasks are {known}"
        ) from None


def _show(
    problem: Problem,
    facts: Facts,
    *,
    name: str,
    task: int | None,
    tried: list[Change],
    form: str,
) -> None:
    if form == "json":
        chosen = range(len(facts.state.tasks)) if task is None else [task]
        tasks = [_task_json(facts, index) for index in chosen]
        if task is not None:
            tasks[0]["changes"] = [_change_json(facts, change) for change in tried]
        low = [_below_json(facts, below) for below in below_share(facts.state, facts.assignment)]
        answer = {"name": problem.name, "strategy": name, "tasks": tasks, "below_share": low}
        click.echo(json.dumps(answer, separators=(",", ":")))
    elif task is None:
        _print_summary(problem.name, facts, name)
    else:
        _print_task(problem.name, facts, name, task, tried)


def _below_json(facts: Facts, low: BelowShare) -> dict[str, Any]:
    """Return the object for a client that runs fewer stateful tasks than its share."""
    client, why = facts.client_id(low.client), low.shortage.value
    return {"client": client, "held": low.held, "share": low.share, "why": why}


def _task_json(facts: Facts, task: int) -> dict[str, Any]:
    reason, target = active_reason(facts, task), facts.target(task)
    copies: list[dict[str, Any]] = []
    for client in facts.copies.get(task, ()):
        why = copy_reason(facts, task, client)
        kind = "warm-up" if (task, client) in facts.warmups else "standby"
        copies.append(_copy_json(facts, client, kind, why.rule, why.why))
    for client in dropped(facts, task):
        why = dropped_reason(facts, task, client)
        copies.append(_copy_json(facts, client, "dropped", why.rule, why.why))
    return {
        "task": str(facts.state.tasks[task]),
        "stateful": bool(facts.state.stateful[task]),
        "active": facts.client_id(facts.active[task]),
        "before": facts.client_id(facts.owner(task)),
        "target": facts.client_id(target),
        "rule": reason.rule,
        "why": reason.why,
        "copies": copies,
        "candidates": [_candidate_json(facts, candidate) for candidate in candidates(facts, task)],
    }


def _copy_json(facts: Facts, client: int, kind: str, rule: str, why: str) -> dict[str, Any]:
    return {"client": facts.client_id(client), "kind": kind, "rule": rule, "why": why}


def _lag_json(lag: int | None) -> int | str | None:
    return "running" if lag == LAG_RUNNING else "unknown" if lag == LAG_UNKNOWN else lag


def _candidate_json(facts: Facts, candidate: Candidate) -> dict[str, Any]:
    return {
        "client": facts.client_id(candidate.client),
        "role": candidate.role,
        "was_owner": candidate.was_owner,
        "is_target": candidate.is_target,
        "lag": _lag_json(candidate.lag),
        "caught_up": candidate.is_caught_up,
        "stateful": candidate.stateful,
        "band": [candidate.low, candidate.high],
        "actives": candidate.actives,
        "threads": candidate.threads,
        **({} if facts.state.weights is None else {"work": round(candidate.work, 3)}),
        "rack": facts.state.racks[candidate.client],
        "tags": dict(facts.state.tags[candidate.client]),
        "cross_rack_sources": candidate.active_crossings,
        "cross_rack_changelogs": candidate.standby_crossings,
    }


def _change_json(facts: Facts, change: Change) -> dict[str, Any]:
    return {
        "if": change.condition,
        "active": facts.client_id(change.active),
        "warms_up": facts.client_id(change.warms_up),
    }


def _print_task(name: str, facts: Facts, strategy: str, task: int, tried: list[Change]) -> None:
    console, state = text_console(), facts.state
    kind = "stateful" if state.stateful[task] else "stateless"
    head = f"{name or 'group'}: task {state.tasks[task]} ({kind}), {strategy}"
    console.print(Sentence(head, style="bold"))
    reason, owner, now = active_reason(facts, task), facts.owner(task), facts.active[task]
    ran = "as before" if owner == now else f"previously on {_named(facts, owner)}"
    lines = [f"active on {facts.name(now)}, {ran}", *_reason_lines(reason.rule, reason.why)]
    for client in facts.copies.get(task, ()):
        why = copy_reason(facts, task, client)
        role = "warm-up" if (task, client) in facts.warmups else "standby"
        lines += [f"{role} on {facts.name(client)}", *_reason_lines(why.rule, why.why)]
    for client in dropped(facts, task):
        why = dropped_reason(facts, task, client)
        lines += [f"copy on {facts.name(client)} dropped", *_reason_lines(why.rule, why.why)]
    for line in lines:
        console.print(Sentence(line))
    console.print()
    table = _candidate_table(facts, task)
    print_uncut(table)
    rest = len(state.clients) - table.row_count
    if rest:
        clients = "1 more client has" if rest == 1 else f"{rest} more clients have"
        console.print(f"{clients} no state for this task", highlight=False)
    console.print()
    for line in _change_lines(facts, tried):
        console.print(Sentence(line))


def _reason_lines(rule: str, why: str) -> Iterator[str]:
    yield f"    {rule}:"
    yield f"    {why}"


def _named(facts: Facts, client: int) -> str:
    return "no client" if client == NOBODY else facts.name(client)


def _change_lines(facts: Facts, tried: list[Change]) -> Iterator[str]:
    yield (
        "changes that would move it (each tried alone):"
        if tried
        else "no single change of lags, capacity or settings that was tried would move it"
    )
    for change in tried:
        if change.warms_up != NOBODY:
            yield f"    a warm-up starts on {facts.name(change.warms_up)}, if {change.condition}"
        else:
            yield f"    runs on {facts.name(change.active)}, if {change.condition}"


def _candidate_table(facts: Facts, task: int) -> TextTable:
    state, table = facts.state, TextTable(box=None, pad_edge=False)
    stateful = bool(state.stateful[task])
    has_racks = state.config.rack_aware_assignment_strategy != "none" and any(state.racks)
    tags = state.config.rack_aware_assignment_tags
    table.add_column("candidate", no_wrap=True)
    is_weighted = state.weights is not None
    work_columns = ("work", "work per thread") if is_weighted else ()
    for column in ("lag", "stateful" if stateful else "tasks", *["band"] * stateful, *work_columns):
        table.add_column(column, justify="right")
    for column in ("cross-rack", *["changelogs"] * stateful) if has_racks else ():
        table.add_column(column, justify="right")
    for column in (*tags, "role"):
        table.add_column(column)
    for candidate in candidates(facts, task):
        own = dict(state.tags[candidate.client])
        is_copy = candidate.role != "active"
        roles = [candidate.role, "ran it" if candidate.was_owner and is_copy else ""]
        roles.append("target" if candidate.is_target and is_copy else "")
        low, high, work = candidate.low, candidate.high, candidate.work
        band = str(low) if low == high else f"{low}-{high}"
        loads = [str(candidate.stateful), band] if stateful else [str(candidate.actives)]
        loads += [f"{work:.1f}", f"{work / max(1, candidate.threads):.1f}"] * is_weighted
        racks = [str(candidate.active_crossings), *[str(candidate.standby_crossings)] * stateful]
        table.add_row(
            facts.name(candidate.client),
            facts.lag_text(task, candidate.client) if stateful else "-",
            *loads,
            *(racks if has_racks else ()),
            *[own.get(key, "-") for key in tags],
            ", ".join(filter(None, roles)),
        )
    return table


def _print_summary(name: str, facts: Facts, strategy: str) -> None:
    console, state = text_console(), facts.state
    head = f"{name or 'group'}: {len(state.tasks)} tasks, {len(state.clients)} clients, {strategy}"
    console.print(Sentence(head, style="bold"))
    if state.weights is not None:
        console.print(Sentence(work_line(state, facts.assignment.active)))
    groups: dict[tuple[int, str, str], list[int]] = {}
    for task in range(len(state.tasks)):
        rule = active_reason(facts, task).rule
        groups.setdefault((0, "active", rule), []).append(task)
    for task, client in sorted(facts.assignment.standbys):
        is_warmup = (task, client) in facts.warmups
        key = (2, "warm-up") if is_warmup else (1, "standby")
        rule = copy_reason(facts, task, client).rule
        groups.setdefault((*key, rule), []).append(task)
    table = TextTable(box=None, pad_edge=False, show_header=False)
    for column in ("kind", "count", "rule", "tasks"):
        table.add_column(column, justify="right" if column == "count" else "left")
    ranked = sorted(groups.items(), key=lambda g: (g[0][0], -len(g[1]), g[0]))
    for (_, kind, rule), tasks in ranked:
        named = " ".join(str(state.tasks[task]) for task in tasks[:_SHOWN])
        more = " ..." if len(tasks) > _SHOWN else ""
        table.add_row(kind, str(len(tasks)), rule, named + more)
    print_uncut(table)
    for line in share_lines(state, facts.assignment):
        console.print(Sentence(line))
    for warning in (*state.warnings, *facts.assignment.warnings):
        console.print(Sentence(f"warning: {warning}", style="yellow"))
    console.print(Text("explain one task: --task TASK", style="dim"))
    console.print()
