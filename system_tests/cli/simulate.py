"""``rolling-bounce simulate``: bounce simulated groups, print a trace or a summary."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import click

from assignor.cli import Command, format_option, seeds_option, workers_option
from probing import ReleaseError
from probing.features import FeatureError
from system_tests.cli.options import (
    EXIT_BAD,
    EXIT_ENVIRONMENT,
    MAX_SIMULATED,
    MAX_THREADS,
    draw_option,
    faults_option,
    force_option,
    given_here,
    group_options,
    offline_option,
    partitions_option,
    refuse,
    report_option,
    seed_option,
    topology_option,
)
from system_tests.cli.progress import counted
from system_tests.cluster import (
    KRAFT_FAULTS,
    SCENARIOS,
    KraftOptions,
    kraft_document,
    kraft_lines,
    read_kraft_options,
    run_kraft,
)
from system_tests.engine import Failure, OptionError, Outcome, run_fleet
from system_tests.levels import LevelsOptions, levels_document, levels_lines, run_levels
from system_tests.report import ReportError, check_report, story_of_simulation, write_report
from system_tests.sim import (
    FAULTS,
    BounceOptions,
    BounceOutcome,
    not_modelled_of,
    outcome_document,
    outcome_lines,
    read_options,
    run_bounce,
)
from system_tests.trace import LEGEND

_LISTED_FAILURES = 100

_NOTES = f"""
\b
The trace has a lane per thread:
{LEGEND}

The same seed with the same options gives the same bytes, on every machine.
"""
_EXAMPLES = """
PROGRAM simulate --seed 7  # one bounce of a drawn pair, its trace
PROGRAM simulate --seeds 10000  # ten thousand of them, a summary
PROGRAM simulate --seed 7 --from 3.1 --to native --members 5
PROGRAM simulate --seed 7 --report bounce.html  # the same as a picture
PROGRAM simulate --seeds 500 --faults all  # losses, crashes
PROGRAM simulate --seeds 500 --draw all  # copies, routing, static
PROGRAM simulate --seeds 500 --draw topology  # changed applications
PROGRAM simulate --seed 7 --topology rename --faults crash
PROGRAM simulate --seeds 50 --from 2.0.1 --to 2.3.0 --force  # broken
PROGRAM simulate --world levels --seeds 500  # levels of a group
PROGRAM simulate --world kraft --seed 7  # brokers and controllers
PROGRAM simulate --world kraft --seeds 5000 --scenario downgrade
"""
_EXITS = {
    0: "no rule was broken",
    1: "a rule was broken",
    2: "an impossible path",
    3: "the report cannot be written",
}


@click.command(
    "simulate",
    cls=Command,
    short_help="Simulate thousands of rolling bounces and report broken rules.",
    epilog=_NOTES,
    examples=_EXAMPLES,
    exits=_EXITS,
)
@seed_option(least=0, more="; run this one and print its trace")
@seeds_option()
@group_options(drawn=True, members=MAX_SIMULATED, threads=MAX_THREADS)
@partitions_option()
@faults_option(
    f"none, all (with --static: all except coordinator), or a list of {','.join(FAULTS)};"
    f" with --world kraft {','.join(KRAFT_FAULTS)}, drawn by default."
)
@draw_option
@topology_option
@offline_option
@force_option
@click.option(
    "--world",
    type=click.Choice(["group", "levels", "kraft"]),
    default="group",
    show_default=True,
    help="What is simulated: a group that is bounced; a native group whose levels change; or"
    " brokers and controllers, with RELEASE a Kafka series.",
)
@click.option(
    "--scenario", type=click.Choice(SCENARIOS), help="With --world kraft; drawn by default."
)
@click.option(
    "--controllers",
    type=click.IntRange(1, 5),
    help="With --world kraft: 1, 3 or 5; drawn by default.",
)
@click.option("--brokers", type=click.IntRange(1, 9), help="With --world kraft; drawn by default.")
@workers_option
@format_option(default=None, help_suffix="; by default text for --seed, json for --seeds")
@report_option()
def simulate(**given: Any) -> None:
    """Bounce a simulated group, thousands of times, and report every broken rule.

    Real leaders and members exchange real bytes over a simulated network and a real group
    coordinator; one seed is one rolling bounce. RELEASE is x.y for its newest patch, x.y.z,
    native, next or incompatible; 2.0.0-text to 2.3.1-text follow the text of KIP-268.
    """
    if given["seed"] is not None and given["seeds"] is not None:
        refuse("--seed runs one seed and --seeds many; give one of them")
    if given["report"] is not None and given["seeds"] is not None:
        refuse("--report draws one bounce; give --seed instead of --seeds")
    world = _WORLDS[given["world"]]
    try:
        status = (_run_seed if given["seeds"] is None else _run_many)(world, given)
    except (ReleaseError, OptionError, FeatureError) as error:
        refuse(str(error))
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    sys.exit(status)


class _World(NamedTuple):
    """What is simulated: what many of it are called, how its options are read, run and shown."""

    many: str
    read: Callable[[dict[str, Any]], Any]
    run: Callable[[Any], Outcome]
    lines: Callable[[Any], list[str]]
    document: Callable[[Any], dict[str, object]]


def _read_group(given: dict[str, Any]) -> BounceOptions:
    foreign = [name for name in ("scenario", "controllers", "brokers") if given[name] is not None]
    if foreign:
        raise OptionError(f"--{foreign[0]} is for --world kraft; leave it out")
    return read_options(given)


def _read_levels(given: dict[str, Any]) -> LevelsOptions:
    foreign = sorted(given_here() - {"seed", "seeds", "world", "workers", "form"})
    if foreign:
        raise OptionError(f"--{foreign[0].replace('_', '-')} is for another --world; leave it out")
    return LevelsOptions(seed=given["seed"] or 0)


def _read_kraft(given: dict[str, Any]) -> KraftOptions:
    return read_kraft_options(given, was_given=given_here())


_WORLDS: Final = {
    "group": _World("bounces", _read_group, run_bounce, outcome_lines, outcome_document),
    "kraft": _World("clusters", _read_kraft, run_kraft, kraft_lines, kraft_document),
    "levels": _World("groups", _read_levels, run_levels, levels_lines, levels_document),
}


def _run_seed(world: _World, given: dict[str, Any]) -> int:
    options, report = world.read(given), given["report"]
    if report is not None:
        check_report(report)
    outcome = world.run(options)
    if given["form"] == "json":
        click.echo(json.dumps(world.document(outcome), indent=2))
    else:
        click.echo("\n".join(world.lines(outcome)))
    if report is not None and isinstance(outcome, BounceOutcome):
        write_report(report, story_of_simulation(outcome))
    return 0 if outcome.ok else EXIT_BAD


def _run_many(world: _World, given: dict[str, Any]) -> int:
    """Run seeds 0 to count - 1, with their progress; return the exit status."""
    options, count, what = world.read(given), given["seeds"], world.many
    fleet = run_fleet(world.run, options, range(count), workers=given["workers"])
    has_both = isinstance(options, BounceOptions) and options.old and options.new
    lacks = not_modelled_of(options.old, options.new) if has_both else ()
    began = time.monotonic()
    failures: list[Failure] = []
    with counted(what, count) as add:
        for chunk in fleet:
            failures += chunk.failures
            add(chunk.seeds)
    failures.sort(key=lambda failure: failure.seed)
    seconds = time.monotonic() - began
    if given["form"] != "text":
        summary = _summary(count, seconds, failures) | {"not_modelled": list(lacks)}
        click.echo(json.dumps(summary, indent=2))
    else:
        many = f"{count} {what.removesuffix('s') if count == 1 else what}"
        sentence = f"{many} in {seconds:.1f} s ({count / max(seconds, 0.001):.0f} a second)"
        click.echo(f"{sentence}, {len(failures)} of them broke a rule")
        for failure in failures[:_LISTED_FAILURES]:
            path = f"{failure.old} to {failure.new}"
            click.echo(f"  seed {failure.seed}, {path}: {failure.rule}: {failure.sentence}")
        if failures:
            click.echo(f"trace of the first: {failures[0].replay}")
        for line in lacks:
            click.echo(f"not modelled: {line}")
    return EXIT_BAD if failures else 0


def _summary(count: int, seconds: float, failures: list[Failure]) -> dict[str, object]:
    return {
        "seeds": count,
        "failed": len(failures),
        "seconds": round(seconds, 3),
        "failures": [
            {
                "seed": failure.seed,
                "from": failure.old,
                "to": failure.new,
                "rule": failure.rule,
                "sentence": failure.sentence,
                "known": list(failure.known),
                "replay": failure.replay,
            }
            for failure in failures[:_LISTED_FAILURES]
        ],
    }
