"""``rolling-bounce simulate``: bounce simulated groups, print a trace or a summary."""

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

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
    kraft_document,
    kraft_lines,
    read_kraft_options,
    run_kraft,
)
from system_tests.engine import Chunk, Failure, OptionError, run_fleet
from system_tests.levels import (
    LevelsOptions,
    levels_document,
    levels_lines,
    run_levels,
)
from system_tests.report import ReportError, check_report, story_of_simulation, write_report
from system_tests.sim import (
    FAULTS,
    BounceOptions,
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
@report_option
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
    try:
        status = _RUNS[given["world"]](given)
    except (ReleaseError, OptionError, FeatureError) as error:
        refuse(str(error))
    except ReportError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    sys.exit(status)


def _run_group(given: dict[str, Any]) -> int:
    foreign = [name for name in ("scenario", "controllers", "brokers") if given[name] is not None]
    if foreign:
        raise OptionError(f"--{foreign[0]} is for --world kraft; leave it out")
    options = read_options(given)
    if given["seeds"] is None:
        return _run_seed(options, given["form"] or "text", given["report"])
    fleet = run_fleet(run_bounce, options, range(given["seeds"]), workers=given["workers"])
    names = [name for name in (options.old, options.new) if name is not None]
    lacks = not_modelled_of(*names) if len(names) > 1 else ()
    return _run_many(fleet, given["seeds"], given["form"] or "json", "bounces", lacks)


def _run_kraft(given: dict[str, Any]) -> int:
    options = read_kraft_options(given, was_given=given_here())
    form = given["form"]
    if given["seeds"] is not None:
        seeds = range(given["seeds"])
        fleet = run_fleet(run_kraft, options, seeds, workers=given["workers"])
        return _run_many(fleet, given["seeds"], form or "json", "clusters")
    outcome = run_kraft(options)
    _show(form or "text", lambda: kraft_document(outcome), lambda: kraft_lines(outcome))
    return 0 if outcome.ok else EXIT_BAD


def _run_levels(given: dict[str, Any]) -> int:
    taken = {"seed", "seeds", "world", "workers", "form"}
    foreign = sorted(given_here() - taken)
    if foreign:
        raise OptionError(f"--{foreign[0].replace('_', '-')} is for another --world; leave it out")
    if given["seeds"] is not None:
        seeds = range(given["seeds"])
        fleet = run_fleet(run_levels, LevelsOptions(), seeds, workers=given["workers"])
        return _run_many(fleet, given["seeds"], given["form"] or "json", "groups")
    outcome = run_levels(LevelsOptions(seed=given["seed"] or 0))
    _show(given["form"] or "text", lambda: levels_document(outcome), lambda: levels_lines(outcome))
    return 0 if outcome.ok else EXIT_BAD


_RUNS = {"group": _run_group, "kraft": _run_kraft, "levels": _run_levels}


def _run_seed(options: BounceOptions, form: str, report: Path | None) -> int:
    if report is not None:
        check_report(report)
    outcome = run_bounce(options)
    _show(form, lambda: outcome_document(outcome), lambda: outcome_lines(outcome))
    if report is not None:
        write_report(report, story_of_simulation(outcome))
    return 0 if outcome.ok else EXIT_BAD


def _show(form: str, document: Callable[[], object], lines: Callable[[], list[str]]) -> None:
    click.echo(json.dumps(document(), indent=2) if form == "json" else "\n".join(lines()))


def _run_many(
    fleet: Iterable[Chunk], count: int, form: str, what: str, lacks: tuple[str, ...] = ()
) -> int:
    """Run seeds 0 to count - 1, with their progress; return the exit status.

    `lacks`: what the simulation does not model.
    """
    began = time.monotonic()
    failures: list[Failure] = []
    with counted(what, count) as add:
        for chunk in fleet:
            failures += chunk.failures
            add(chunk.seeds)
    failures.sort(key=lambda failure: failure.seed)
    seconds = time.monotonic() - began
    if form == "json":
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
