"""A plan as text and as plain values: steps, costs with their causes, what to know before."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Final, NamedTuple

from system_tests.plan.changes import When
from system_tests.plan.cost import StepCost
from system_tests.plan.group import SimulatedGroup
from system_tests.plan.notes import FATAL
from system_tests.plan.rehearsal import not_rehearsed, rehearsal_of
from system_tests.plan.steps import PlanStep, UpgradePlan
from system_tests.plan.uses import Use
from system_tests.sim.world import behaviour_of

LEFT_OUT: Final = (
    "left out: the time that a process takes to stop, while it still sends heartbeats, and that a"
    " new one takes from its assignment until its tasks run: some seconds on a JVM"
)
"""What the ranges of pauses do not contain, as a sentence without a full stop."""
_WORTH_NAMING: Final = 0.01
_FEATURES: Final = {
    Use.FK_JOIN: "foreign-key joins",
    Use.KTABLE: "aggregations of KTables",
    Use.STATIC: "static members",
    Use.IQ: "interactive queries",
    Use.EOS: "exactly-once",
}
_FIELDS: Final = ("rebalances", "pause_ms", "longest_pause_ms", "restored")
_WAITS: Final = ("session_ms", "restore_ms", "rebalance_ms")


class Cause(NamedTuple):
    """What pauses of a step wait for: its share of them, in words, and what shortens it."""

    share: float
    what: str
    setting: str


def causes_of(step: PlanStep, cost: StepCost, group: SimulatedGroup) -> list[Cause]:
    """Return what the pauses of a step wait for, the largest share first; shares from 1 % on."""
    behaviour = behaviour_of(step.old, None)
    session_s = (group.session_timeout_ms or behaviour.session_timeout_ms) / 1000
    if group.is_static:
        stopped = f"a stopped static member keeps its tasks until it is back, {session_s:g} s long"
        setting = "restart members faster"
    else:
        stopped = f"members stop without leaving the group; their sessions last {session_s:g} s"
        setting = (
            "set a shorter consumer.session.timeout.ms, or group.instance.id and restart within it"
        )
    found = (
        Cause(cost.share("session_ms"), stopped, setting),
        Cause(
            cost.share("restore_ms"),
            f"state is restored, {group.restore:,} records a second",
            f"raise num.standby.replicas above {group.standbys}",
        ),
        Cause(
            cost.share("rebalance_ms"),
            "rebalances, which a member learns of with its next heartbeat",
            "set a shorter consumer.heartbeat.interval.ms",
        ),
    )
    return sorted((c for c in found if c.share >= _WORTH_NAMING), key=lambda c: -c.share)


def cost_lines(step: PlanStep, cost: StepCost, group: SimulatedGroup) -> Iterator[str]:
    """Yield the cost of a step: counts, pauses with their ranges, causes."""
    yield (
        f"{count_text(cost, 'rebalances')} rebalances ({cost.usual('membership')} for members that"
        f" stop and start, {cost.usual('version')} for the version, {cost.usual('followup')} to"
        " move partitions)"
    )
    yield (
        f"the longest pause of a partition {seconds_text(cost, 'longest_pause_ms')};"
        f" of all partitions together {seconds_text(cost, 'pause_ms')}"
    )
    yield restored_text(cost, group)
    for cause in causes_of(step, cost, group):
        yield f"{100 * cause.share:.0f} % of the pauses: {cause.what}; {cause.setting}"


def restored_text(cost: StepCost, group: SimulatedGroup) -> str:
    """Return how many records a step restores, why, and how long partitions wait for it."""
    return (
        f"{count_text(cost, 'restored')} records restored, by members that get a task of another"
        f" one or bring their own copy up to date: at {group.restore:,} a second,"
        f" {_spoken(cost.usual('restore_ms'))} s of the pauses"
    )


def seconds_text(cost: StepCost, name: str) -> str:
    """Return a time of a step with its range, in seconds."""
    low, high = (_spoken(ms) for ms in cost.spread(name))
    usual = _spoken(cost.usual(name))
    return f"{usual} s" if low == high == usual else f"{usual} s ({low} to {high})"


def count_text(cost: StepCost, name: str) -> str:
    """Return a number of a step with its range."""
    low, high = cost.spread(name)
    usual = cost.usual(name)
    return f"{usual:,}" if low == high == usual else f"{usual:,} ({low:,} to {high:,})"


def _spoken(ms: int) -> str:
    """Return seconds with two significant digits: the rest is noise of the simulation.

    >>> [_spoken(ms) for ms in (0, 212, 5_149, 47_117, 274_684, 6_005_770)]
    ['0', '0.21', '5.1', '47', '270', '6,000']
    """
    seconds = float(f"{ms / 1000:.2g}")
    return f"{seconds:,.0f}" if seconds >= 10 or not seconds else f"{seconds:g}"  # noqa: PLR2004 digits


def simulated_text(cost: StepCost) -> str:
    """Return how many bounces a cost is from, and what its ranges are."""
    if len(cost.runs) == 1:
        return "1 bounce, so without ranges (--seeds)"
    return f"{len(cost.runs)} bounces; in brackets: 5 % to 95 % of them; compare paths with them"


def changes_when(made: UpgradePlan, when: When) -> list[str]:
    """Return the changes of a path that are dealt with at one time, as lines."""
    return [str(change) for change in made.changes if change.when is when]


def cost_document(cost: StepCost) -> dict[str, object]:
    """Return the cost of a step as plain values; times in ms."""
    return {
        **{name: cost.usual(name) for name in ("membership", "version", "followup", *_FIELDS)},
        "ranges": {name: list(cost.spread(name)) for name in _FIELDS},
        "waits_ms": {name: cost.usual(name) for name in _WAITS},
        "seeds": len(cost.runs),
    }


def plan_document(
    made: UpgradePlan, costs: Sequence[StepCost], group: SimulatedGroup
) -> dict[str, object]:
    """Return one plan as plain values."""
    return {
        "from": made.old,
        "to": made.new,
        "uses": list(made.uses),
        "direction": made.direction.value,
        "rolling": made.rolling,
        "stops": list(made.stops),
        "steps": [
            asdict(step) | {"rehearsal": rehearsal_of(made, step), "cost": cost_document(cost)}
            for step, cost in zip(made.steps, costs, strict=True)
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


def plan_lines(
    made: UpgradePlan, costs: Sequence[StepCost], group: SimulatedGroup
) -> Iterator[str]:
    """Yield one plan as lines of text."""
    yield headline(made)
    for assumption in assumptions(made):
        yield f"  assumed: {assumption}"
    for alternative in made.alternatives:
        yield f"  instead: take {alternative}, which allows a rolling bounce"
    for number, (step, cost) in enumerate(zip(made.steps, costs, strict=True), 1):
        yield ""
        yield f"step {number}: {step_text(step)}"
        yield from _titled("why:  ", step.why, again="why:  ")
        yield from _titled("cost: ", cost_lines(step, cost, group))
        yield from _titled("try:  ", (rehearsal_of(made, step),))
        yield from _titled("back: ", (step.back.sentence, *step.back.costs))
        if number == made.no_return:
            yield f"  !! point of no return: from here on, {_no_return_meaning(step)}"
    if made.steps:
        yield ""
        yield _return_line(made)
        yield ""
        assumed = "" if group.is_real else "an assumed group (--problem or --group gives yours): "
        yield f"costs: simulated with {assumed}{group}; {simulated_text(costs[0])}"
        yield f"       {LEFT_OUT}"
        for note in group.notes:
            yield f"       {note}"
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
    """Return what a plan assumes of an application of which no feature is named, as sentences."""
    if made.uses or not made.steps:
        return ()
    named = ", ".join(f"{use} ({what})" for use, what in _FEATURES.items())
    return (f"the application uses none of {named}; name those that it uses with --uses",)


def _no_return_meaning(step: PlanStep) -> str:
    """Return what going back means after the point of no return."""
    if not step.back.rolling:
        return "going back stops all members"
    if any("delete the state directories" in cost for cost in step.back.costs):
        return "going back deletes and restores state"
    return "going back needs what is said above: the former release cannot read what is written"


def step_text(step: PlanStep) -> str:
    """Return what an operator does in a step."""
    if not step.rolling:
        setting = f" with {' and '.join(step.settings)}" if step.settings else ""
        return (
            "stop all members, wait for their sessions to end, start all as"
            f" {step.release}{setting}"
        )
    if step.settings and step.old == step.release:
        setting = " and ".join(step.settings)
        return f"bounce every member with {setting}; wait after each until it is stable"
    setting = f"upgrade.from={step.upgrade_from}" if step.upgrade_from else "no upgrade.from"
    setting = ", ".join((setting, *step.settings))
    return f"bounce every member to {step.release}, {setting}; wait after each until it is stable"


def _return_line(made: UpgradePlan) -> str:
    if made.no_return is None and (made.warnings or made.bugs):
        return "point of no return: none on this path; read what is listed below before you start"
    if made.no_return is None:
        return "point of no return: none on this path"
    return f"point of no return: step {made.no_return}"
