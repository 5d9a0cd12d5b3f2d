"""From what was found to a runbook, a document and lines of text."""

from collections.abc import Iterable, Sequence

from system_tests.explore.bounds import Bounds
from system_tests.explore.expansion import first_node, replay
from system_tests.explore.issues import ISSUES
from system_tests.explore.moves import CRASH, FORCE, OPERATOR, RESTART, STOP, Move
from system_tests.explore.presence import Placed, Presence
from system_tests.explore.search import Explored, Found
from system_tests.sim import Happening, Plan, trace_lines


def runbook(plan: Plan, moves: Iterable[Move]) -> list[str]:
    """What an operator would have to do, in order, for the group to get there."""
    stage_of: dict[str, int] = {}
    lines: list[str] = []
    for move in moves:
        if move.kind not in OPERATOR:
            continue
        who = move.who
        if move.kind == FORCE:
            lines.append(FORCE)
        elif move.kind == STOP:
            lines.append(f"stop {who}")
        elif move.kind == CRASH:
            lines.append(f"kill {who}")
        elif move.kind == RESTART:
            lines.append(f"start {who} again")
        else:
            stage = plan.stages[stage_of.get(who, 0)]
            stage_of[who] = stage_of.get(who, 0) + 1
            pin = f" with upgrade.from {stage.upgrade_from}" if stage.upgrade_from else ""
            lines.append(f"start {who} on {stage.release}{pin}")
    return lines or ["nothing: it happens in the group as it is"]


def document(
    plan: Plan, bounds: Bounds, explored: Explored, placed: Sequence[Placed]
) -> dict[str, object]:
    """The result as plain types with stable names."""
    return {
        "from": plan.old,
        "to": plan.new,
        "members": bounds.members,
        "threads": bounds.threads,
        "static": bounds.static,
        "crashes": bounds.crashes,
        "states": explored.states,
        "transitions": explored.transitions,
        "complete": explored.complete,
        "stopped": explored.stopped,
        "findings": [
            {
                "rule": one.found.finding.broken.rule,
                "issue": one.found.issue,
                "presence": one.presence.value,
                "certain": one.is_certain,
                "sentence": one.found.finding.broken.sentence,
                "runbook": runbook(plan, one.found.moves),
            }
            for one in placed
        ],
    }


def wanted(explored: Explored, issue: str | None) -> list[Found]:
    """The findings that were asked for: all, or those of one issue."""
    return [found for found in explored.found if issue is None or found.issue == issue]


def lines_of(
    plan: Plan,
    bounds: Bounds,
    explored: Explored,
    placed: Sequence[Placed],
    *,
    issue: str | None,
) -> list[str]:
    """The result as text: each finding with its runbook and trace, then the verdict."""
    lines: list[str] = []
    for one in placed:
        found = one.found
        known = next((row for row in ISSUES if row.id == found.issue), None)
        name = f" ({known.id}: {known.why})" if known else " (matches no known Kafka issue)"
        broken = found.finding.broken
        lines += [f"{broken.rule}: {broken.sentence}{name}"]
        lines += [f"  {one.presence}{_where(plan, one)}"]
        lines += ["  runbook: " + "; ".join(runbook(plan, found.moves))]
        lines += [f"  {line}" for line in _trace(plan, bounds, found)] + [""]
    extent = _extent(explored)
    lines.append(f"{explored.states} states, {explored.transitions} transitions: {extent}")
    if placed and placed[0].is_bad:
        verdict = f"bad, {placed[0].presence}"
    elif placed:
        verdict = f"good, as what was found is {Presence.OLD}"
    elif issue:
        verdict = f"good: no {issue}" if explored.complete else f"no {issue} so far"
    else:
        verdict = "good" if explored.complete else "nothing found so far"
    return [*lines, f"{verdict}: {plan.text}"]


def _extent(explored: Explored) -> str:
    """Say how much of what there is was looked at."""
    if explored.stopped is None:
        beyond = ", but for what follows a broken rule" if explored.found else ""
        return f"all there are{beyond}"
    if explored.stopped.endswith(" is found"):
        return f"stopped, as asked: {explored.stopped}"
    return f"NOT all there are: {explored.stopped}"


def _where(plan: Plan, placed: Placed) -> str:
    """Name the releases, and say where a search could not be finished."""
    match placed.presence:
        case Presence.NEW:
            where = f": {plan.new} alone does it, too"
        case Presence.OLD:
            where = f": {plan.old} alone does it, {plan.new} alone does not"
        case _:
            where = f": neither {plan.old} nor {plan.new} alone does it"
    return where if placed.is_certain else f"{where}, as far as it was searched"


def _trace(plan: Plan, bounds: Bounds, found: Found) -> list[str]:
    """What happens in the group, as the simulator tells it; the clock stands still."""
    first = first_node(plan, bounds)
    lanes = [thread.name for thread in first.world.threads]
    happened: list[Happening] = []
    moves = (*found.moves, *found.around)
    for step in replay(first, plan, moves, reduced=bounds.reduced):
        happened += step.trace
    return trace_lines(lanes, happened)
