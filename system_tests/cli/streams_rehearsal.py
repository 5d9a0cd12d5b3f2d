"""``rolling-bounce live --to streams``: rehearse the move to the streams protocol (KIP-1071)."""

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Final, NoReturn

import click

from encoding import shown
from probing import ReleaseError, find_release
from system_tests.cli.options import EXIT_BAD, EXIT_ENVIRONMENT, refuse
from system_tests.errors import EnvironmentFailureError
from system_tests.live import LiveOptions, changed_options
from system_tests.live.streams_move import MoveVerdict, StreamsMoveOptions, run_streams_move
from system_tests.plan import Use, plan_streams_move
from system_tests.real import broker_release

_USED: Final = frozenset(
    {"members", "partitions", "rate", "broker", "session_timeout_ms", "heartbeat_ms", "static"}
)


def rehearse_streams_move(old: str, options: LiveOptions, *, form: str) -> NoReturn:
    """Run the rehearsal, print its verdict, and end with its status."""
    unused = sorted(changed_options(options) - _USED)
    if unused:
        refuse(f"--to streams has no use for {_listed(unused)}; it takes {_listed(sorted(_USED))}")
    if options.broker is None:
        refuse("the broker assigns the tasks: start a real one with --broker kafka:4.4")
    static = options.switches.static
    uses = frozenset({Use.STATIC}) if static else frozenset()
    try:
        broker, release = broker_release(options.broker), find_release(old)
        obstacles = plan_streams_move(release, find_release(broker), uses).obstacles
    except ReleaseError as error:
        refuse(str(error))
    if obstacles:
        refuse(obstacles[0], EXIT_BAD)
    try:
        verdict = run_streams_move(
            StreamsMoveOptions(
                broker=broker,
                release=release.name,
                members=options.members,
                partitions=options.partitions,
                rate=options.rate,
                session_timeout_ms=options.session_timeout_ms,
                heartbeat_ms=options.heartbeat_ms,
                static=static,
            ),
            lambda line: click.echo(shown(line, limit=None), err=form == "json"),
        )
    except EnvironmentFailureError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    if form == "json":
        click.echo(json.dumps(asdict(verdict) | {"ok": verdict.ok}, indent=2))
    else:
        for line in verdict_lines(verdict):
            click.echo(shown(line, limit=None))
    sys.exit(0 if verdict.ok else EXIT_BAD)


def _listed(options: Iterable[str]) -> str:
    return ", ".join(f"--{name.replace('_', '-')}" for name in options)


def verdict_lines(verdict: MoveVerdict) -> list[str]:
    """Return the verdict as lines of text."""
    path = " -> ".join(phase.protocol for phase in verdict.phases)
    title = f"{verdict.release} on a broker of {verdict.broker}: {path}"
    return [
        *(
            f"  {'ok ' if check.ok else 'BAD'}   {check.name:9} {check.sentence}"
            for check in verdict.checks
        ),
        "",
        f"{'good' if verdict.ok else 'bad'}: {title}",
    ]
