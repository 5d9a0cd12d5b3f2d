"""The table of ``plan --all``, and what is below it."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import click

from assignor.cli import TextTable, print_uncut
from encoding import shown
from system_tests.cli.fleet.group_plan import HEADS, GroupPlan

_SHOWN: Final = 5


def print_plans(made: list[GroupPlan], skipped: list[str], form: str) -> None:
    """Print one row for each plan, and each sentence about groups once.

    Args:
        made: the plans.
        skipped: groups without a plan that are not of Kafka Streams, as sentences.
        form: text or json.
    """
    if form == "json":
        for plan in made:
            click.echo(json.dumps(plan.document))
        return
    table = TextTable(box=None, pad_edge=False)
    for head in HEADS:
        table.add_column(head, overflow="fold")
    for plan in made:
        table.add_row(*plan.cells)
    print_uncut(table)
    red = sum(plan.is_red for plan in made)
    back = sum(plan.is_rollback and not plan.is_red for plan in made)
    rollbacks = f", of them {back} rollback{'s' * (back > 1)}" if back else ""
    groups = f"{len(made)} group{'s' * (len(made) != 1)}"
    click.echo(f"\n{groups}: {red} red, {len(made) - red} to go{rollbacks}")
    for title, lines in (
        ("no plan, or no go", _by_note(made, lambda plan: filter(None, (plan.problem,)))),
        ("unknown", _by_note(made, lambda plan: plan.unknowns)),
        ("not planned", skipped),
    ):
        if lines:
            click.echo(f"\n{title}:")
            for line in lines:
                click.echo(f"  - {shown(line, limit=None)}")


def _by_note(
    made: Sequence[GroupPlan], notes_of: Callable[[GroupPlan], Iterable[str]]
) -> list[str]:
    """Return each note once, with the groups that it is about."""
    notes: dict[str, list[str]] = {}
    for plan in made:
        for note in notes_of(plan):
            notes.setdefault(note, []).append(plan.name)
    return [f"{_few(names, len(made))}: {note}" for note, names in notes.items()]


def _few(names: list[str], count: int) -> str:
    """Return the names of some of `count` groups, shortened."""
    if len(names) == count > 1:
        return "all groups"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
