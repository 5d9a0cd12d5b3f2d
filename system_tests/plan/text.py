"""A plan as text and as plain values: steps, the way back, what to know before."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from system_tests.plan.changes import When
from system_tests.plan.cost import StepCost
from system_tests.plan.cost_text import cost_document
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.notes import FATAL
from system_tests.plan.rehearsal import not_rehearsed, rehearsal_of
from system_tests.plan.steps import PlanStep, UpgradePlan
from system_tests.plan.uses import FEATURES, Use


def changes_when(made: UpgradePlan, when: When) -> list[str]:
    """Return the changes of a path that are dealt with at one time, as lines."""
    return [str(change) for change in made.changes if change.when is when]


def plan_document(
    made: UpgradePlan, costs: Sequence[StepCost] | None, group: SimulatedGroup
) -> dict[str, object]:
    """Return one plan as plain values; the costs of its steps are null if None is given."""
    costed = costs if costs is not None else (None,) * len(made.steps)
    return {
        "from": made.old,
        "to": made.new,
        "uses": list(made.uses),
        "direction": made.direction.value,
        "rolling": made.rolling,
        "stops": list(made.stops),
        "steps": [
            asdict(step)
            | {"rehearsal": rehearsal_of(made, step, group), "cost": cost and cost_document(cost)}
            for step, cost in zip(made.steps, costed, strict=True)
        ],
        "group": asdict(group),
        "no_return": made.no_return,
        "obstacles": list(made.obstacles),
        "alternatives": list(made.alternatives),
        "warnings": list(made.warnings),
        "windows": list(made.windows),
        "bugs": list(made.bugs),
        "changes": [asdict(change) for change in made.changes],
        "not_rehearsed": list(not_rehearsed(made)),
        "not_checked": list(made.not_checked),
    }


def plan_lines(made: UpgradePlan, group: SimulatedGroup | None = None) -> Iterator[str]:
    """Yield one plan as lines of text, without the costs: `costs_lines` has those.

    Args:
        made: the plan.
        group: whose session timeout its rehearsals have; None: the default of each release.
    """
    yield headline(made)
    for assumption in assumptions(made):
        yield f"  assumed: {assumption}"
    for alternative in made.alternatives:
        yield f"  instead: take {alternative}, which allows a rolling bounce"
    for number, step in enumerate(made.steps, 1):
        yield ""
        yield f"step {number}: {step_text(step)}"
        yield from _titled("why:  ", step.why, again="why:  ")
        yield from _titled("do:   ", step.demands, again="do:   ")
        yield from _titled("try:  ", (rehearsal_of(made, step, group),))
        yield from _titled("back: ", (step.back.sentence, *step.back.costs))
        if number == made.no_return:
            yield f"  !! point of no return: from here on, {_no_return_meaning(step)}"
    if made.steps:
        yield ""
        yield _return_line(made)
    for title, lines in (
        (
            When.BEFORE,
            [
                *sorted(made.warnings, key=lambda warning: not warning.startswith(FATAL)),
                *changes_when(made, When.BEFORE),
            ],
        ),
        (When.STEP, changes_when(made, When.STEP)),
        (When.AFTER, changes_when(made, When.AFTER)),
        ("not rehearsed by rolling-bounce live", not_rehearsed(made)),
        ("not checked", made.not_checked if made.steps else ()),
        ("native members beside JVM members", made.windows),
        ("known issues of these releases (docs/findings.md: which of them occur)", made.bugs),
    ):
        if lines:
            yield ""
            yield f"{title}:"
            yield from (f"  - {line}" for line in lines)


def _titled(title: str, lines: Iterable[str], *, again: str = "      ") -> Iterator[str]:
    """Yield lines behind a title, or behind another one from the second line on."""
    for number, line in enumerate(lines):
        yield f"  {again if number else title}{line}"


def headline(made: UpgradePlan) -> str:
    """Return the first line of a plan."""
    if not made.steps:
        return f"{made.old} to {made.new}: nothing to do, every member already runs it"
    if not made.rolling:
        return f"{made.old} to {made.new}: no rolling upgrade, all members have to be stopped"
    bounces = f"{len(made.steps)} rolling bounce{'s' if len(made.steps) > 1 else ''}"
    over = f" over the bridge {', '.join(made.stops[1:-1])}" if made.stops[1:-1] else ""
    deadly = any(line.startswith(FATAL) for line in made.warnings)
    trap = f"; members can die during the upgrade, see {FATAL.strip()} below" if deadly else ""
    return f"{made.old} to {made.new}: {bounces}{over}{trap}"


def assumptions(made: UpgradePlan) -> tuple[str, ...]:
    """Return what a plan assumes of features that are not named, as sentences."""
    unnamed = [use for use in FEATURES if use not in made.uses and use is not Use.REGEX]
    if not unnamed or not made.steps:
        return ()
    named = ", ".join(f"{use} ({FEATURES[use]})" for use in unnamed)
    return (f"the application does not use {named}; name what it uses with --uses",)


def _no_return_meaning(step: PlanStep) -> str:
    """Return what going back means after the point of no return."""
    if not step.back.rolling:
        return "going back stops all members"
    if step.deletes_state:
        return "state is deleted and restored from the changelogs, also if you go back"
    if step.back.deletions:
        return "going back deletes and restores state"
    return "going back needs what is said above: the former release cannot read what is written"


def step_text(step: PlanStep) -> str:
    """Return what an operator does in a step."""
    deleting = "delete its state directories while it is stopped; " if step.deletes_state else ""
    wait = "wait after each until the group is Stable and its lag has fallen"
    wait += f", and at last until {step.until}" if step.until else ""
    if not step.rolling:
        setting = f" with {' and '.join(step.settings)}" if step.settings else ""
        deleting = " delete all state directories," if step.deletes_state else ""
        return (
            f"stop all members, wait for their sessions to end,{deleting} start all as"
            f" {step.release}{setting}"
        )
    if step.stage < 0 and step.settings and not step.upgrade_from:
        setting = " and ".join(step.settings)
        return f"bounce every member with {setting}; {wait}"
    setting = f"upgrade.from={step.upgrade_from}" if step.upgrade_from else "no upgrade.from"
    setting = ", ".join((setting, *step.settings))
    return f"bounce every member to {step.release}, {setting}; {deleting}{wait}"


def _return_line(made: UpgradePlan) -> str:
    if made.no_return is None and (made.warnings or made.bugs):
        return "point of no return: none on this path; read what is listed below before you start"
    if made.no_return is None:
        return "point of no return: none on this path"
    return f"point of no return: step {made.no_return}"
