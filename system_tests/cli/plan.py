"""``rolling-bounce plan``: from, to and uses in; steps, costs and the way back out."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from assignor.cli import Command, format_option
from assignor.problems import ProblemError
from encoding import shown
from probing import Release, ReleaseError, find_release
from system_tests.cli.options import (
    EXIT_BAD,
    MAX_MEMBERS,
    MAX_PARTITIONS,
    group_options,
    partitions_option,
    refuse,
)
from system_tests.plan import (
    DEADLY,
    PlanStep,
    StepCost,
    UpgradePlan,
    Use,
    make_plan,
    read_saved,
    step_costs,
)

_EXAMPLES = """
PROGRAM plan --from 2.3.1 --to 4.1  # over a bridge release
PROGRAM plan --from 2.3.1 --to 4.1 --uses fk-join,ktable,static,iq
PROGRAM plan --from 3.4.0 --to 3.5.1  # the setting that kills
PROGRAM plan --from 3.9 --to native  # one bounce, the way back open
PROGRAM plan --problem group.json --from 3.9.1 --to 4.1  # a live group
"""
_EXITS = {0: "it rolls, or there is nothing to do", 1: "all members have to be stopped"}


@click.command(
    "plan",
    cls=Command,
    short_help="Say step by step how to upgrade, what it costs, and the way back.",
    examples=_EXAMPLES,
    exits=_EXITS,
)
@group_options(members=MAX_MEMBERS, saved=True)
@partitions_option()
@click.option(
    "--problem",
    "saved",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="One group, as JSON; what `assignor inspect --save` wrote of members and releases.",
)
@click.option(
    "--uses",
    default="",
    metavar="LIST",
    help=f"What the application uses, out of {','.join(Use)}; default: nothing of it.",
)
@format_option()
def plan(**given: Any) -> None:
    """Say step by step how to upgrade or roll back, what it costs, and how to return.

    RELEASE is x.y for its newest patch, x.y.z, or native. Costs are the simulator's, for a group
    of this size: they compare ways, they do not forecast seconds.
    """
    words = [word.strip() for word in given["uses"].split(",") if word.strip()]
    unknown = sorted(set(words) - set(Use))
    if unknown:
        refuse(f"no such use: {unknown[0]}; there are {', '.join(Use)}")
    try:
        old, members, partitions = _start(given)
        new = find_release(given["new"])
    except (ReleaseError, ProblemError) as error:
        refuse(str(error))
    made = make_plan(old, new, frozenset(map(Use, words)))
    costs = step_costs(made, members=members, partitions=partitions)
    if given["form"] == "json":
        click.echo(json.dumps(plan_document(made, costs), indent=2))
    else:
        for line in plan_lines(made, costs):
            click.echo(shown(line, limit=None))
    sys.exit(0 if made.rolling else EXIT_BAD)


def _start(given: dict[str, Any]) -> tuple[Release, int, int]:
    """What the group runs, its members and its partitions: as given, else as saved."""
    if given["saved"] is None:
        if given["old"] is None:
            refuse("say what the group runs: --from RELEASE, or --problem FILE")
        return find_release(given["old"]), given["members"], given["partitions"]
    saved = read_saved(given["saved"])
    old = find_release(saved.release(find_release(given["old"]) if given["old"] else None))
    source = click.get_current_context().get_parameter_source
    # Costs are simulated: of a huge group the largest that is simulated stands for it.
    found = {"members": min(saved.processes, MAX_MEMBERS)}
    found["partitions"] = min(saved.partitions, MAX_PARTITIONS)
    for name in found:
        if source(name) is ParameterSource.COMMANDLINE:
            found[name] = given[name]
    return old, found["members"], found["partitions"]


def plan_document(made: UpgradePlan, costs: tuple[StepCost, ...]) -> dict[str, object]:
    """One plan as plain types with stable names."""
    return {
        "from": made.old,
        "to": made.new,
        "uses": list(made.uses),
        "direction": made.direction.value,
        "rolling": made.rolling,
        "stops": list(made.stops),
        "steps": [
            asdict(step) | {"cost": asdict(cost) | {"rebalances": cost.rebalances}}
            for step, cost in zip(made.steps, costs, strict=True)
        ],
        "no_return": made.no_return,
        "obstacles": list(made.obstacles),
        "alternatives": list(made.alternatives),
        "warnings": list(made.warnings),
        "windows": list(made.windows),
        "bugs": list(made.bugs),
    }


def plan_lines(made: UpgradePlan, costs: tuple[StepCost, ...]) -> list[str]:
    """Tell a plan."""
    return list(_lines(made, costs))


def _lines(made: UpgradePlan, costs: tuple[StepCost, ...]) -> Iterator[str]:
    yield _headline(made)
    for alternative in made.alternatives:
        yield f"  instead: take {alternative}, which rolls"
    for number, (step, cost) in enumerate(zip(made.steps, costs, strict=True), 1):
        yield ""
        yield f"step {number}: {_what(step)}"
        for why in step.why:
            yield f"  why:  {why}"
        yield (
            f"  cost: {cost.rebalances} rebalances ({cost.membership} for members that leave and"
            f" come, {cost.version} for the version, {cost.followup} to move partitions); pauses"
            f" of {cost.pause_ms / 1000:.1f} s over all partitions, the longest"
            f" {cost.longest_pause_ms / 1000:.1f} s"
        )
        yield f"  back: {step.back.sentence}"
        for price in step.back.costs:
            yield f"        {price}"
        if number == made.no_return:
            yield "  !! point of no return: from here on the way back has that price"
    if made.steps:
        yield ""
        yield _return_line(made)
    for title, lines in (
        ("know before", sorted(made.warnings, key=lambda one: not one.startswith(DEADLY))),
        ("native members beside JVM members", made.windows),
        ("known bugs of these releases (docs/findings.md: which of them bounces meet)", made.bugs),
    ):
        if lines:
            yield ""
            yield f"{title}:"
            yield from (f"  - {line}" for line in lines)


def _headline(made: UpgradePlan) -> str:
    if not made.steps:
        return f"{made.old} to {made.new}: nothing to do, every member already runs it"
    if not made.rolling:
        return f"{made.old} to {made.new}: it does not roll, all members have to be stopped"
    bounces = f"{len(made.steps)} rolling bounce{'s' if len(made.steps) > 1 else ''}"
    over = f" over the bridge {', '.join(made.stops[1:-1])}" if made.stops[1:-1] else ""
    deadly = any(line.startswith(DEADLY) for line in made.warnings)
    trap = f"; members can die on the way, see {DEADLY.strip()} below" if deadly else ""
    return f"{made.old} to {made.new}: {bounces}{over}{trap}"


def _what(step: PlanStep) -> str:
    if not step.rolling:
        return f"stop all members, wait for their sessions to end, start all as {step.release}"
    setting = f"upgrade.from={step.upgrade_from}" if step.upgrade_from else "no upgrade.from"
    return f"bounce every member to {step.release}, {setting}; wait until each has settled"


def _return_line(made: UpgradePlan) -> str:
    if made.no_return is None:
        return "point of no return: none, the way back stays open"
    return f"point of no return: step {made.no_return}"
