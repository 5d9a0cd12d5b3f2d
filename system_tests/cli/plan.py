"""``rolling-bounce plan``: print the steps of an upgrade, their costs and the rollback."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click

from assignor import ConfigError, TopologyError
from assignor.cli import Command, format_option, imported_topology, say
from assignor.problems import ProblemError, quoted
from encoding import shown
from probing import ReleaseError, find_release
from system_tests.cli.fleet import print_fleet_plan
from system_tests.cli.move_to_streams import (
    move_options,
    print_streams_move,
    print_streams_upgrade,
    refuse_from_streams,
    refuse_move_options,
)
from system_tests.cli.options import EXIT_BAD, EXIT_ENVIRONMENT, refuse, refuse_options
from system_tests.cli.planned_group import (
    planned_group,
    planned_group_options,
    refuse_report_over_problem,
    saved_group_of,
)
from system_tests.cli.progress import counted
from system_tests.engine import OptionError
from system_tests.plan import (
    SIGNS,
    STREAMS,
    PlannedTopology,
    SavedGroup,
    SimulatedGroup,
    StepCost,
    UpgradePlan,
    Use,
    bounces_to_run,
    check_group,
    costs_lines,
    decision_of,
    estimated_s,
    find_target,
    make_plan,
    plan_document,
    plan_lines,
    read_saved_topology,
    read_uses,
    spoken,
    step_costs,
    topology_lines,
    topology_plan,
    verdict_line,
    with_sources,
)
from system_tests.plan.report import pictures_of, write_plan_report
from system_tests.report import ReportError, check_report

_EXAMPLES = """
PROGRAM plan --from 2.3.1 --to 4.4  # over a bridge release
PROGRAM plan --from 2.4.1 --to 4.4 --uses ktable,static,iq
PROGRAM plan --from 3.4.0 --to 3.5.1  # a setting that ends members
PROGRAM plan --from 3.9 --to native  # one bounce, can be rolled back
PROGRAM plan --from 3.9 --to 4.4 --uses eos-v2
PROGRAM plan --problem group.json --from 3.9.1 --to 4.4  # saved
PROGRAM plan --bootstrap-server HOST:9092 --group g --from 3.9 --to 4.4
PROGRAM plan --problem g.json --from 3.9 --to 4.4 --report plan.html
PROGRAM plan --from 4.4 --to streams --brokers 4.4  # KIP-1071
PROGRAM plan --from 4.2 --to 4.4 --streams-group --brokers 4.4
PROGRAM plan --all --problem groups.jsonl --to 4.4 --report pages
PROGRAM plan --topology app:OLD app:NEW  # a change of the application
PROGRAM plan --topology group.json app:NEW  # from a live group
"""
_WORTH_AN_ESTIMATE_S = 3.0
_NOTES = "\b\nFeatures that --uses takes:\n" + "\n".join(
    f"  {use:9} {sign}" for use, sign in SIGNS.items()
)
_EXITS = {
    0: "rolling bounces are possible, there is nothing to do, or the group can move to the streams "
    "protocol, for which all members are stopped",
    1: "releases cannot be mixed, so that all members have to be stopped, members can die on the "
    "way, a simulated bounce breaks a rule, the new topology needs a higher version, the group "
    "cannot move to the streams protocol, or the cluster has no group of this name; with --all: so "
    "it is for one of the groups",
    3: "the report cannot be written, or no broker answers",
}


@click.command(
    "plan",
    cls=Command,
    short_help="List the steps of an upgrade, their costs, and the rollback.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@planned_group_options
@click.option(
    "--uses",
    default="",
    metavar="LIST",
    help=f"Features that the application uses, a list of {','.join(Use)}; see below; none by"
    " default. A saved group tells by itself whether its members are static.",
)
@click.option(
    "--uses-of",
    nargs=2,
    multiple=True,
    metavar="GROUP FEATURES",
    help="With --all: what one group uses, instead of --uses; repeat it for each such group.",
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
    metavar="ID",
    help="With --topology: prefix of internal topics; by default the group of a file, else app.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Simulated bounces of each step; by default 40, fewer for more than 12 threads.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Plan every group of --problem FILE, as `assignor inspect --all --save` writes it, of a "
    "directory of such files, or of a cluster: one table, and with --report DIRECTORY a page each, "
    "named by its group. --from is then the release of groups whose metadata does not tell it.",
)
@click.option(
    "--no-costs",
    is_flag=True,
    help="Simulate nothing: the plan without costs, and a report without pictures.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write one page for the decision and for on-call engineers, as HTML.",
)
@move_options
@format_option()
def plan(**given: Any) -> None:
    """List the steps of an upgrade or a rollback, their costs, and the rollback.

    RELEASE is x.y for its newest patch, x.y.z, or native. The group is one of the given size, a
    saved one or a live one. Its bounces are simulated many times: costs are medians, with ranges
    from 5 % to 95 %. Use them to compare paths, not to predict durations. --to streams plans the
    move to the streams protocol (KIP-1071).
    """
    if given["topologies"]:
        _plan_topologies(given)
    refuse_from_streams(given)
    if given["new"] is None:
        refuse("give the release that the group is brought to: --to RELEASE, or --topology OLD NEW")
    uses = _checked_uses(given)
    if given["everything"]:
        _plan_fleet(given, uses)
    refuse_options("give --all, too, or leave out", ("uses_of",))
    _refuse_directories(given)
    refuse_report_over_problem(given)
    saved = saved_group_of(given)
    if given["new"].lower() == STREAMS:
        print_streams_move(given, saved, uses)
    if given["streams_group"] or (saved is not None and saved.is_streams_group):
        print_streams_upgrade(given, saved, uses)
    refuse_move_options(given)
    if given["no_costs"] and given["seeds"] is not None:
        refuse("--no-costs simulates nothing, so --seeds has no use; leave one of them out")
    refuse_options("only a plan with --topology uses", ("application_id",))
    try:
        is_good = _print_plan(given, saved, uses)
    except (ReleaseError, ProblemError, OptionError) as error:
        refuse(str(error))
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    sys.exit(0 if is_good else EXIT_BAD)


def _checked_uses(given: dict[str, Any]) -> frozenset[Use]:
    """Check the release to plan for; return the features of --uses, and read --uses-of."""
    try:
        if given["new"].lower() != STREAMS:
            find_target(given["new"])
        given["uses_of"] = [(group, read_uses(names)) for group, names in given["uses_of"]]
        return read_uses(given["uses"])
    except ValueError as error:  # a ReleaseError is one
        for announced in getattr(error, "__notes__", ()):
            say("announced", announced)
        refuse(str(error))


def _plan_fleet(given: dict[str, Any], uses: frozenset[Use]) -> NoReturn:
    try:
        print_fleet_plan(given, uses)
    except (ReleaseError, ProblemError, OptionError) as error:
        refuse(str(error))
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)


def _refuse_directories(given: dict[str, Any]) -> None:
    for option, path in (("--report", given["report"]), ("--problem", given["saved"])):
        if path is not None and path.is_dir():
            refuse(f"{option} {path} is a directory; give a file, or plan all groups with --all")


def _print_plan(given: dict[str, Any], saved: SavedGroup | None, uses: frozenset[Use]) -> bool:
    """Print the plan, its costs when they are simulated, and write the report.

    Returns whether rolling bounces do it, and no simulated one speaks against it.
    """
    report, is_text = given["report"], given["form"] == "text"
    if report is not None:
        check_report(report)
    old, group = planned_group(given, saved, uses)
    if group.static_members:
        uses |= {Use.STATIC}
    made = make_plan(
        old,
        find_release(given["new"]),
        uses,
        threads=group.threads,
        subtopologies=group.subtopologies,
        brokers=find_release(given["brokers"]) if given["brokers"] else None,
    )
    check_group(made, group)
    if is_text:
        _print_lines(with_sources(plan_lines(made, group)))
    costs = None if given["no_costs"] else _costs(made, group, given["seeds"] or group.seeds)
    if is_text and costs:
        _print_lines(("", *costs_lines(made.steps, costs, group, made.uses)))
    elif not is_text:
        click.echo(json.dumps(plan_document(made, costs, group), indent=2))
    if report is not None:
        with counted("pictures of the report drawn", len(pictures_of(made)) if costs else 0) as add:
            write_plan_report(report, made, costs, group, add)
    decision = decision_of(made, group, costs or ())
    if is_text and decision.words != decision_of(made, group).words:
        _print_lines(("", verdict_line(decision)))
    return not decision.is_red


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(shown(line, limit=None))
    sys.stdout.flush()


def _costs(made: UpgradePlan, group: SimulatedGroup, seeds: int) -> tuple[StepCost, ...]:
    """Simulate every step, with an estimate of the time before and the progress on stderr."""
    seconds = estimated_s(made, group, seeds) if made.steps else 0
    if seconds >= _WORTH_AN_ESTIMATE_S:
        say(
            "rolling-bounce",
            f"the costs take roughly {spoken(round(1000 * seconds), 1)} s on an idle machine:"
            f" {seeds} simulated bounces of each path with {group.members} members; --seeds,"
            " --sample or --no-costs shorten it, Ctrl-C stops it",
        )
    with counted("bounces of the whole group simulated", bounces_to_run(made, seeds)) as add:
        return step_costs(made, group, seeds=seeds, progress=add)


def _plan_topologies(given: dict[str, Any]) -> NoReturn:
    """Print the plan of a change of the topology, and end."""
    refuse_options(
        "--topology plans a change of the application; leave out",
        but=("topologies", "application_id", "form"),
    )
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
