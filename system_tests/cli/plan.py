"""``rolling-bounce plan``: print the steps of an upgrade, their costs and the rollback."""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from assignor import ConfigError, TopologyError
from assignor.cli import Command, format_option, imported_topology
from assignor.problems import ProblemError, quoted
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
    FATAL,
    PlannedTopology,
    PlanStep,
    StepCost,
    UpgradePlan,
    Use,
    make_plan,
    read_saved,
    read_saved_topology,
    step_costs,
    topology_lines,
    topology_plan,
)

_EXAMPLES = """
PROGRAM plan --from 2.3.1 --to 4.1  # over a bridge release
PROGRAM plan --from 2.3.1 --to 4.1 --uses fk-join,ktable,static,iq
PROGRAM plan --from 3.4.0 --to 3.5.1  # a setting that ends members
PROGRAM plan --from 3.9 --to native  # one bounce, can be rolled back
PROGRAM plan --problem group.json --from 3.9.1 --to 4.1  # a live group
PROGRAM plan --topology app:OLD app:NEW  # a change of the application
PROGRAM plan --topology group.json app:NEW  # from a live group
"""
_EXITS = {
    0: "a rolling upgrade is possible, or there is nothing to do",
    1: "all members have to be stopped, or the new topology needs a higher version",
}


@click.command(
    "plan",
    cls=Command,
    short_help="List the steps of an upgrade, their costs, and the rollback.",
    examples=_EXAMPLES,
    exits=_EXITS,
)
@group_options(members=MAX_MEMBERS, saved=True, optional=True)
@partitions_option()
@click.option(
    "--problem",
    "saved",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="One group, as JSON, as `assignor inspect --save` writes it.",
)
@click.option(
    "--uses",
    default="",
    metavar="LIST",
    help=f"Features that the application uses, a list of {','.join(Use)}; none by default.",
)
@click.option(
    "--topology",
    "topologies",
    nargs=2,
    metavar="OLD NEW",
    help="Two topologies, each as MODULE:NAME or as a file of `assignor inspect --save`: plan a "
    "change of the application instead.",
)
@click.option(
    "--application-id",
    help="With --topology: prefix of internal topics; by default the group of a file, else app.",
)
@format_option()
def plan(**given: Any) -> None:
    """List the steps of an upgrade or a rollback, their costs, and the rollback.

    RELEASE is x.y for its newest patch, x.y.z, or native. Costs are simulated, for a group of this
    size: use them to compare paths, not to predict durations.
    """
    if given["topologies"]:
        _plan_topologies(given)
    if given["new"] is None:
        refuse("give the release that the group is brought to: --to RELEASE, or --topology OLD NEW")
    words = [word.strip() for word in given["uses"].split(",") if word.strip()]
    unknown = sorted(set(words) - set(Use))
    if unknown:
        refuse(f"unknown value {unknown[0]!r} for --uses; choose from {', '.join(Use)}")
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


def _plan_topologies(given: dict[str, Any]) -> NoReturn:
    """Print the plan of a change of the topology, and end."""
    if given["new"] is not None or given["old"] is not None or given["saved"] is not None:
        refuse("--topology plans a change of the application; leave out --from, --to and --problem")
    try:
        made = topology_plan(*_topologies(given["topologies"], given["application_id"]))
    except (ConfigError, ProblemError, TopologyError) as error:
        refuse(str(error))
    if given["form"] == "json":
        click.echo(json.dumps(asdict(made), indent=2))
    else:
        for line in topology_lines(made):
            click.echo(shown(line, limit=None))
    sys.exit(EXIT_BAD if made.obstacles else 0)


def _topologies(names: tuple[str, str], application_id: str | None) -> Iterator[PlannedTopology]:
    """Yield both sides: importable topologies, or groups that `assignor inspect` saved."""
    saved = {name: read_saved_topology(Path(name)) for name in names if Path(name).is_file()}
    groups = sorted({group for group, _ in saved.values()} | {application_id or ""} - {""})
    if len(groups) > 1:
        refuse(
            f"internal topics have the prefix of one application, and these are {quoted(groups)};"
            " save both groups of the same application, and leave out --application-id"
        )
    for name in names:
        if name in saved:
            yield saved[name][1]
        else:
            topology = imported_topology(name)
            yield PlannedTopology(
                subtopologies=topology.subtopologies(groups[0] if groups else "app"),
                version=topology.version,
            )


def _start(given: dict[str, Any]) -> tuple[Release, int, int]:
    """Return release, members and partitions of the group: as given, else as saved."""
    if given["saved"] is None:
        if given["old"] is None:
            refuse("give the release that the group runs: --from RELEASE, or --problem FILE")
        return find_release(given["old"]), given["members"], given["partitions"]
    saved = read_saved(given["saved"])
    old = find_release(saved.release(find_release(given["old"]) if given["old"] else None))
    source = click.get_current_context().get_parameter_source
    # Costs are simulated; a larger group is simulated with the largest possible numbers.
    found = {"members": min(saved.processes, MAX_MEMBERS)}
    found["partitions"] = min(saved.partitions, MAX_PARTITIONS)
    for name in found:
        if source(name) is ParameterSource.COMMANDLINE:
            found[name] = given[name]
    return old, found["members"], found["partitions"]


def plan_document(made: UpgradePlan, costs: tuple[StepCost, ...]) -> dict[str, object]:
    """Return one plan as plain values."""
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
        "changes": [asdict(change) for change in made.changes],
        "not_checked": list(made.not_checked),
    }


def plan_lines(made: UpgradePlan, costs: tuple[StepCost, ...]) -> list[str]:
    """Return one plan as lines of text."""
    return list(_lines(made, costs))


def _lines(made: UpgradePlan, costs: tuple[StepCost, ...]) -> Iterator[str]:
    yield _headline(made)
    for alternative in made.alternatives:
        yield f"  instead: take {alternative}, which allows a rolling bounce"
    for number, (step, cost) in enumerate(zip(made.steps, costs, strict=True), 1):
        yield ""
        yield f"step {number}: {_what(step)}"
        for why in step.why:
            yield f"  why:  {why}"
        yield (
            f"  cost: {cost.rebalances} rebalances ({cost.membership} for members that stop and"
            f" start, {cost.version} for the version, {cost.followup} to move partitions); pauses"
            f" of {cost.pause_ms / 1000:.1f} s over all partitions, the longest"
            f" {cost.longest_pause_ms / 1000:.1f} s"
        )
        yield f"  back: {step.back.sentence}"
        for price in step.back.costs:
            yield f"        {price}"
        if number == made.no_return:
            yield "  !! point of no return: after this step, rolling back has these costs"
    if made.steps:
        yield ""
        yield _return_line(made)
    for title, lines in (
        (
            "Before you start",
            [
                *sorted(made.warnings, key=lambda warning: not warning.startswith(FATAL)),
                *map(str, made.changes),
            ],
        ),
        ("not checked", made.not_checked if made.steps else ()),
        ("native members beside JVM members", made.windows),
        ("known issues of these releases (docs/findings.md: which of them occur)", made.bugs),
    ):
        if lines:
            yield ""
            yield f"{title}:"
            yield from (f"  - {line}" for line in lines)


def _headline(made: UpgradePlan) -> str:
    if not made.steps:
        return f"{made.old} to {made.new}: nothing to do, every member already runs it"
    if not made.rolling:
        return f"{made.old} to {made.new}: no rolling upgrade, all members have to be stopped"
    bounces = f"{len(made.steps)} rolling bounce{'s' if len(made.steps) > 1 else ''}"
    over = f" over the bridge {', '.join(made.stops[1:-1])}" if made.stops[1:-1] else ""
    deadly = any(line.startswith(FATAL) for line in made.warnings)
    trap = f"; members can die during the upgrade, see {FATAL.strip()} below" if deadly else ""
    return f"{made.old} to {made.new}: {bounces}{over}{trap}"


def _price(step: PlanStep) -> str:
    if not step.back.rolling:
        return "stopping all members"
    is_state = any("changelogs" in cost for cost in step.back.costs)
    return "rebuilding state" if is_state else "emptying repartition topics first"


def _what(step: PlanStep) -> str:
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
