"""Reports of a search: runbooks, a JSON document and lines of text."""

from collections.abc import Iterable, Sequence

from system_tests.explore.bounds import Bounds
from system_tests.explore.expansion import first_node, replay
from system_tests.explore.issues import ISSUES
from system_tests.explore.moves import CRASH, FORCE, OPERATOR, RESTART, STOP, Move
from system_tests.explore.presence import Placed, Presence
from system_tests.explore.search import Explored, Found
from system_tests.sim import Happening, Plan, not_modelled_of, trace_lines


def runbook(plan: Plan, moves: Iterable[Move]) -> list[str]:
    """Return the operator's actions, in order, that lead to a finding."""
    stage_of: dict[str, int] = {}
    lines: list[str] = []
    for move in moves:
        if move.kind not in OPERATOR:
            continue
        process = move.subject
        if move.kind == FORCE:
            lines.append(FORCE)
        elif move.kind == STOP:
            lines.append(f"stop {process}")
        elif move.kind == CRASH:
            lines.append(f"kill {process}")
        elif move.kind == RESTART:
            lines.append(f"start {process} again")
        else:
            stage = plan.stages[stage_of.get(process, 0)]
            stage_of[process] = stage_of.get(process, 0) + 1
            pin = f" with upgrade.from {stage.upgrade_from}" if stage.upgrade_from else ""
            lines.append(f"start {process} on {stage.release}{pin}")
    return lines or ["no action needed: the group breaks the rule without a bounce"]


def document(
    plan: Plan, bounds: Bounds, explored: Explored, placed: Sequence[Placed]
) -> dict[str, object]:
    """Return the result as JSON types with stable keys."""
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
        "not_modelled": list(not_modelled_of(plan.old, plan.new)),
        "findings": [
            {
                "rule": finding.found.finding.broken.rule,
                "issue": finding.found.issue,
                "presence": finding.presence.value,
                "certain": finding.is_certain,
                "sentence": finding.found.finding.broken.sentence,
                "runbook": runbook(plan, finding.found.moves),
            }
            for finding in placed
        ],
    }


def findings_of_issue(explored: Explored, issue: str | None) -> list[Found]:
    """Return the findings with this issue; all if `issue` is None."""
    return [found for found in explored.found if issue is None or found.issue == issue]


def lines_of(
    plan: Plan,
    bounds: Bounds,
    explored: Explored,
    placed: Sequence[Placed],
    *,
    issue: str | None,
) -> list[str]:
    """Return the result as text: each finding with its runbook and trace, then the verdict."""
    lines: list[str] = []
    for finding in placed:
        found = finding.found
        known = next((row for row in ISSUES if row.id == found.issue), None)
        name = f" ({known.id}: {known.why})" if known else " (matches no known Kafka issue)"
        broken = found.finding.broken
        lines += [f"{broken.rule}: {broken.sentence}{name}"]
        lines += [f"  {finding.presence}{_where(plan, finding)}"]
        lines += ["  runbook: " + "; ".join(runbook(plan, found.moves))]
        lines += [f"  {line}" for line in _trace(plan, bounds, found)] + [""]
    lines += [f"not modelled: {line}" for line in not_modelled_of(plan.old, plan.new)]
    extent = _extent(explored)
    lines.append(f"{explored.states} states, {explored.transitions} transitions: {extent}")
    if placed and placed[0].is_bad:
        verdict = f"bad, {placed[0].presence}"
    elif placed:
        verdict = f"good, every finding is {Presence.OLD}"
    elif issue:
        verdict = f"good: no {issue}" if explored.complete else f"no {issue} found so far"
    else:
        verdict = "good" if explored.complete else "nothing found so far"
    return [*lines, f"{verdict}: {plan.text}"]


def _extent(explored: Explored) -> str:
    """Return how much of the state space was searched."""
    if explored.stopped is None:
        limit = ", except states after a broken rule" if explored.found else ""
        return f"search complete{limit}"
    if explored.stopped.endswith(" is found"):
        return f"search stopped as requested: {explored.stopped}"
    return f"search incomplete: {explored.stopped}"


def _where(plan: Plan, placed: Placed) -> str:
    """Return which release shows the finding, and whether a search was incomplete."""
    match placed.presence:
        case Presence.NEW:
            where = f": {plan.new} alone breaks the rule, too"
        case Presence.OLD:
            where = f": {plan.old} alone breaks the rule, {plan.new} alone does not"
        case _:
            where = f": neither {plan.old} nor {plan.new} alone breaks the rule"
    return where if placed.is_certain else f"{where} (search incomplete)"


def _trace(plan: Plan, bounds: Bounds, found: Found) -> list[str]:
    """Return the trace of a finding, from a settled group on; the clock does not run."""
    first = first_node(plan, bounds)
    lanes = [thread.name for thread in first.world.threads]
    events: list[Happening] = []
    moves = (*found.moves, *found.cycle)
    for step in replay(first, plan, moves, reduced=bounds.reduced):
        events += step.trace
    return trace_lines(lanes, events, running=lanes)
