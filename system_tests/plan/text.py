"""A plan as text and as plain values: steps, the way back, what to know before."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Final

from encoding.primitives import shell_word
from probing import Direction, find_release
from system_tests.plan.changes import When, changes_when
from system_tests.plan.cost import StepCost
from system_tests.plan.cost_text import cost_document, cost_of_return
from system_tests.plan.decision import (
    decision_of,
    no_return_meaning,
    no_return_text,
    verdict_line,
    ways_out,
)
from system_tests.plan.exactly_once import (
    guarantee_of,
    has_both,
    is_guarantee,
    versions_between,
)
from system_tests.plan.group import UNNAMED, SimulatedGroup
from system_tests.plan.model import PlanStep
from system_tests.plan.rehearsal import not_rehearsed, rehearsal_notes, rehearsal_of
from system_tests.plan.reset import reset_lines
from system_tests.plan.steps import UpgradePlan
from system_tests.plan.uses import FEATURES, VERSIONS, Use, version_of
from system_tests.sim.world import behaviour_of

WAY_BACK_IS: Final = (
    "each back undoes its own step; to return to the start, undo the steps one after the other, the"
    " last one that was begun first"
)
"""What `back` of a step means, for every plan with steps."""
_LAST_MARKERS: Final = (
    (
        "with exactly-once, CURRENT-OFFSET stays below LOG-END-OFFSET where only transaction"
        " markers follow: once it has not moved for longer than transaction.timeout.ms, the"
        " partition is consumed if this says Processed a total of 0 messages:"
    ),
    (
        "kafka-console-consumer.sh --bootstrap-server HOST:PORT --topic TOPIC --partition NUMBER"
        " --offset CURRENT-OFFSET --isolation-level read_committed --timeout-ms 10000"
    ),
)
_BY_GUIDE: Final = (
    " [Streams guide, offline upgrade: up to 4.1 from 0.10.0 on, to 4.2 and later from 0.11.0 on]"
)
_RESTARTED: Final = "bounce each member that this step has restarted,"


def plan_document(
    made: UpgradePlan, costs: Sequence[StepCost] | None, group: SimulatedGroup
) -> dict[str, object]:
    """Return one plan as plain values; the costs of its steps are null if None is given."""
    costed = costs if costs is not None else (None,) * len(made.steps)
    back = cost_of_return(costs or ())
    decision = decision_of(made, group, costs or ())
    return {
        "from": made.old,
        "to": made.new,
        "verdict": decision.words,
        "is_red": decision.is_red,
        "reasons": list(decision.reasons),
        "traps": dict(made.traps),
        "back_traps": dict(made.back_traps),
        "way_out": "; ".join(ways_out(made, group)),
        "instead": made.instead and _step_document(made.instead, group),
        "uses": list(made.uses),
        "direction": made.direction.value,
        "rolling": made.rolling,
        "stops": list(made.stops),
        "steps": [
            _step_document(step, group)
            | {
                "rehearsal": str(rehearsal_of(made, step, group)),
                "cost": cost and cost_document(cost),
            }
            for step, cost in zip(made.steps, costed, strict=True)
        ],
        "group": asdict(group),
        "back_cost": back and cost_document(back),
        "no_return": made.no_return,
        "restores_from": made.restores_from,
        "obstacles": list(made.obstacles),
        "warnings": list(made.warnings),
        "windows": list(made.windows),
        "bugs": list(made.bugs),
        "changes": [asdict(change) for change in made.changes],
        "brokers": made.brokers and made.brokers.release.name,
        "not_rehearsed": list(not_rehearsed(made)),
        "not_checked": list(made.not_checked),
    }


def _step_document(step: PlanStep, group: SimulatedGroup) -> dict[str, object]:
    """Return a step as plain values, with its way back as steps of the same form."""
    found = asdict(replace(step, back=None)) | {
        "settings": _own_settings(step),
        "until": _until(step, group),
        "demands": demands_of(step, group),
    }
    back = step.back
    if back is None:
        del found["back"]
        return found
    steps = [_step_document(again, group) for again in back.steps]
    return found | {"back": {"rolling": back.rolling, "free": back.free, "steps": steps}}


def plan_lines(made: UpgradePlan, group: SimulatedGroup | None = None) -> Iterator[str]:
    """Yield one plan as lines of text, without the costs: `costs_lines` has those.

    Args:
        made: the plan.
        group: that the commands name, and whose session timeout rehearsals have; None: no group.
    """
    group = group or UNNAMED
    yield from _head(made, group)
    for number, step in enumerate(made.steps, 1):
        yield ""
        yield f"step {number}: {step_text(step, group)}"
        yield from _titled("why:  ", step.why, again="why:  ")
        yield from _titled("do:   ", demands_of(step, group), again="do:   ")
        yield f"  try:  {rehearsal_of(made, step, group).line}"
        yield from _titled("back: ", back_lines(step, group))
        if number == made.no_return:
            yield f"  !! point of no return: {no_return_meaning(step)}"
    if made.steps:
        yield ""
        yield f"point of no return: {no_return_text(made)}"
        if made.steps[1:]:
            yield f"the way back: {WAY_BACK_IS}"
        yield from (f"state directory: {line}" for line in state_directory(made, group))
    for title, lines in (
        (
            When.BEFORE,
            [
                *made.warnings,
                *changes_when(made.changes, When.BEFORE),
            ],
        ),
        (When.STEP, changes_when(made.changes, When.STEP)),
        (When.AFTER, changes_when(made.changes, When.AFTER)),
        ("about the commands after try", rehearsal_notes(made, group)),
        ("not rehearsed by rolling-bounce live", not_rehearsed(made)),
        ("not checked", made.not_checked if made.steps else ()),
        ("native members beside JVM members", made.windows),
        ("known issues of these releases (docs/findings.md: which of them occur)", made.bugs),
    ):
        if lines:
            yield ""
            yield f"{title}:"
            yield from (f"  - {line}" for line in lines)


def _head(made: UpgradePlan, group: SimulatedGroup) -> Iterator[str]:
    """Yield what stands before the steps: the verdict, ways out, what is assumed."""
    yield headline(made)
    yield verdict_line(decision_of(made, group))
    yield from (f"  {title}: {text}" for title, text in other_ways(made, group))
    if made.brokers is not None:
        yield f"  brokers {made.brokers.release.name}: {made.brokers}"
    for assumption in assumptions(made):
        yield f"  assumed: {assumption}"
    if group.begun:
        yield f"  !! {group.begun}"
    if group.has_more_state:
        yield f"  !! {group.notes[0]}"


def _titled(title: str, lines: Iterable[str], *, again: str = "      ") -> Iterator[str]:
    """Yield lines behind a title, or behind another one from the second line on."""
    for number, line in enumerate(lines):
        yield f"  {again if number else title}{line}"


def headline(made: UpgradePlan) -> str:
    """Return the first line of a plan."""
    if not made.steps:
        return f"{made.old} to {made.new}: nothing to do, every member already runs it"
    if not made.rolling:
        return f"{made.old} to {made.new}: no rolling bounces, all members have to be stopped"
    bounces = f"{len(made.steps)} rolling bounce{'s' if len(made.steps) > 1 else ''}"
    over = f" over the bridge {', '.join(made.stops[1:-1])}" if made.stops[1:-1] else ""
    return f"{made.old} to {made.new}: {bounces}{over}"


def other_ways(made: UpgradePlan, group: SimulatedGroup = UNNAMED) -> Iterator[tuple[str, str]]:
    """Yield what avoids a no go, and the way without a bridge, each with its title."""
    yield from (("way out", text) for text in ways_out(made, group))
    step = made.instead
    if step is None:
        return
    bridges = ", ".join(made.stops[1:-1])
    is_by_guide = made.direction is Direction.UPGRADE and not find_release(made.new).is_native
    texts = (
        step_text(step, group),
        *(demands_of(step, group) if step.drains or step.resets else ()),
        "all partitions stop meanwhile, and again if you go back",
        f"{bridges} is not needed{_BY_GUIDE * is_by_guide}",
    )
    yield "or without a bridge", "; ".join(texts)


def state_directory(made: UpgradePlan, group: SimulatedGroup) -> tuple[str, ...]:
    """Return which directory a plan deletes in a step or a way back, if it deletes one."""
    backs = (back for step in made.steps if step.back is not None for back in step.back.steps)
    if not any(step.deletes_state for step in (*made.steps, *backs)):
        return ()
    where = f"{group.id} (the application.id) below state.dir of each member"
    return (f"{where}; a store without a changelog (withLoggingDisabled) is lost with it",)


def assumptions(made: UpgradePlan) -> tuple[str, ...]:
    """Return what a plan assumes of features that are not named, as sentences."""
    hidden = {Use.REGEX, *VERSIONS}
    unnamed = [use for use in FEATURES if use not in made.uses and use not in hidden]
    if not made.steps:
        return ()
    named = ", ".join(f"{use} ({FEATURES[use]})" for use in unnamed)
    features = f"the application does not use {named}; name what it uses with --uses"
    return (*((features,) if unnamed else ()), *_assumed_guarantee(made))


def _assumed_guarantee(made: UpgradePlan) -> Iterator[str]:
    """Yield which processing.guarantee is assumed, if the first release has a choice."""
    old = find_release(made.old)
    if Use.EOS not in made.uses or version_of(made.uses) is not None or not has_both(old):
        return
    versions = versions_between(old, find_release(made.new))
    if versions is not None:
        now, other = (guarantee_of(old, version) for version in (versions[0], 3 - versions[0]))
        use = next(use for use, version in VERSIONS.items() if version != versions[0])
        yield f"members run {now}; if they run {other.partition('=')[2]}, plan with --uses {use}"


def step_text(step: PlanStep, group: SimulatedGroup = UNNAMED) -> str:
    """Return what an operator does in a step."""
    wait = (
        ""
        if not step.rolling
        else "; wait after each until the group is Stable and its lag has fallen"
    )
    return f"{_action(step)}{wait}{_last_wait(step, group)}"


def demands_of(step: PlanStep, group: SimulatedGroup = UNNAMED) -> tuple[str, ...]:
    """Return what else a step takes, as sentences and commands."""
    has_markers = step.transactional and (step.consumes or step.drains)
    return (
        *step.demands,
        *(reset_lines(group) if step.resets else ()),
        *(_LAST_MARKERS if has_markers else ()),
    )


def _last_wait(step: PlanStep, group: SimulatedGroup) -> str:
    until = _until(step, group)
    return f"; after the last one, wait until {until}" if until else ""


def _until(step: PlanStep, group: SimulatedGroup) -> str:
    """Return what has to be true before the next step, as a clause; often empty."""
    if not step.consumes:
        return ""
    topics = ", ".join(map(shell_word, group.repartition_topics))
    named = f" ({topics})" if topics else ""
    return (
        f"each repartition topic{named} has been consumed at least up to the LOG-END-OFFSET that"
        " it had when the last member was restarted: CURRENT-OFFSET of kafka-consumer-groups.sh"
        f" --bootstrap-server HOST:PORT --describe --group {group.id}"
    )


def _action(step: PlanStep, whom: str = "bounce every member") -> str:
    """Return what is done to the members in a step, without the wait after each."""
    if not step.rolling:
        settings = _own_settings(step)
        setting = f" with {' and '.join(settings)}" if settings else ""
        reset = " reset the application," if step.resets else ""
        deleting = f" delete all state directories,{reset}" if step.deletes_state else ""
        drain = (
            "stop what writes the input topics; when the group has no lag in any topic, "
            if step.drains
            else ""
        )
        input_too = ", and then what writes the input topics" if step.drains else ""
        return (
            f"{drain}stop all members, wait until the group is Empty,{deleting} start all as"
            f" {step.release}{setting}{input_too}"
        )
    named = ", ".join(settings_of(step))
    if step.stage < 0 and step.settings and not step.upgrade_from:
        return f"{whom} with {named}"
    while_down = []
    if step.deletes_state:
        while_down.append("; delete its state directories while it is stopped")
    if step.expires:
        session_s = behaviour_of(step.old, None).session_timeout_ms / 1000
        while_down.append(
            f"; start each member only after its session has expired (session.timeout.ms,"
            f" {session_s:g} s in {step.old} unless it is set) and inspect no longer lists it"
        )
    return f"{whom} to {step.release}, {named}{''.join(while_down)}"


def settings_of(step: PlanStep) -> tuple[str, ...]:
    """Return every setting that members of a step are started with, also those in force before."""
    pin = f"upgrade.from={step.upgrade_from}" if step.upgrade_from else "no upgrade.from"
    own = _own_settings(step)
    return own if step.stage < 0 and own and not step.upgrade_from else (pin, *own)


def _own_settings(step: PlanStep) -> tuple[str, ...]:
    """Return the settings of a step beside `upgrade.from`."""
    own = step.settings
    if any(map(is_guarantee, own)) or step.version is None:
        return own
    return (*own, guarantee_of(find_release(step.release), step.version))


def back_lines(step: PlanStep, group: SimulatedGroup = UNNAMED) -> tuple[str, ...]:
    """Return how a step is undone: how many bounces, then each of them in order.

    It concerns the members that the step has restarted. The wait after each member is that of every
    step, and is not repeated.
    """
    back = step.back
    if back is None:
        return ()
    lines = [f"{_action(again, _RESTARTED)}{_last_wait(again, group)}" for again in back.steps]
    demands = [demands_of(again, group) for again in back.steps]
    if len(lines) == 1:
        return (*lines, *demands[0])
    numbered = (f"({number}) {line}" for number, line in enumerate(lines, 1))
    found = [f"{len(lines)} rolling bounces, with the same wait after each member:"]
    for line, more in zip(numbered, demands, strict=True):
        found += [line, *more]
    return tuple(found)
