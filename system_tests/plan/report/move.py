"""The page of a move to the streams protocol (KIP-1071), as the page of an upgrade."""

from html import escape
from pathlib import Path

from encoding import shown
from system_tests.plan.changes import When
from system_tests.plan.decision import Decision
from system_tests.plan.report.html import (
    SIGNATURES,
    Condition,
    conditions_html,
    facts_html,
    list_html,
    page_html,
    table_html,
    text_html,
    write_html,
)
from system_tests.plan.streams import MoveStep, StreamsMove
from system_tests.plan.text import WAY_BACK_IS

_HEADS = (
    ("", 2),
    ("what is done", 18),
    ("it is done when", 18),
    ("what it costs", 22),
    ("when to stop", 18),
    ("how to go back", 22),
)


def move_decision(move: StreamsMove) -> Decision:
    """Return the badge of a plan of a streams group."""
    if move.obstacles:
        return Decision("no go", "stop")
    is_known = move.restored is not None and not move.restored.unknown and not move.assumed
    met = "go, if the points below are met"
    if move.is_rollback:
        return Decision(f"a rollback: {met}", "check")
    return Decision(met, "go" if is_known else "check")


def move_page(move: StreamsMove, *, group: str = "") -> str:
    """Return the page as HTML; deterministic.

    Args:
        move: the plan.
        group: id of the group, or empty.
    """
    group = shown(group, limit=None)
    title = move.title + (f", group {group}" if group else "")
    if move.obstacles:
        body = f"<p>Refused:</p>\n{list_html(move.obstacles)}\n"
        return page_html(title, move_decision(move), body)
    facts = [
        ("group", group or "not given (--problem FILE)"),
        ("brokers", f"{move.brokers}, {move.assignor} assignor"),
        ("downtime", move.downtime),
        ("point of no return", move.no_return),
        ("the way back", WAY_BACK_IS),
    ]
    rows = (_row(number, step) for number, step in enumerate(move.steps, 1))
    parts = [
        facts_html(facts),
        f"<h2>Steps</h2>\n{table_html(_HEADS, rows)}",
        f"<h2>What going back restores</h2>\n{list_html(move.back_restores)}"
        if move.back_restores
        else "",
        f'<p class="small"><b>Rehearse:</b> <code>{escape(move.rehearsal)}</code></p>'
        if move.rehearsal
        else "",
        SIGNATURES,
        *(
            f"<h2>{when}</h2>\n{conditions_html(conditions, '!')}"
            for when in When
            if (conditions := _conditions(move, when)) or when is When.BEFORE
        ),
        f"<h2>What stays</h2>\n{list_html(move.kept)}",
        f"<h2>What does not stay</h2>\n{list_html(move.lost)}" if move.lost else "",
        f"<h2>Not checked</h2>\n{list_html(move.not_checked)}",
    ]
    return page_html(title, move_decision(move), "\n".join(parts) + "\n")


def write_move_report(path: Path, move: StreamsMove, *, group: str = "") -> None:
    """Write `move_page` to a file.

    Raises:
        ReportError: the file cannot be written.
    """
    write_html(path, move_page(move, group=group))


def _row(number: int, step: MoveStep) -> tuple[str, ...]:
    texts = (step.what, step.seen, step.cost, step.stop)
    return (str(number), *map(text_html, texts), list_html(step.back))


def _conditions(move: StreamsMove, when: When) -> list[Condition]:
    assumed = move.assumed if when is When.BEFORE else ()
    return [
        *(Condition("assumed", "", what, action, "KIP-1071") for what, action in assumed),
        *(
            Condition(change.subject, change.label, change.what, change.action, change.source)
            for change in move.changes
            if change.when is when
        ),
    ]
