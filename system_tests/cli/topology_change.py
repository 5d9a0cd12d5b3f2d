"""``rolling-bounce live --topology``: change an application by bouncing real processes."""

import json
import sys
from dataclasses import asdict
from typing import Final, NoReturn

import click

from probing import ReleaseError
from system_tests.cli.options import EXIT_BAD, EXIT_ENVIRONMENT, refuse
from system_tests.errors import EnvironmentFailureError
from system_tests.live import LiveOptions, changed_options
from system_tests.live.topologies import (
    TopologyOptions,
    TopologyVerdict,
    run_topology_change,
)
from system_tests.real import broker_release
from system_tests.topology_changes import ChangeKind

TOPOLOGY_CHANGES: Final = tuple(kind.value for kind in ChangeKind)
_USED: Final = frozenset(
    {"members", "partitions", "kill", "broker", "take_back", "session_timeout_ms"}
    | {"rebalance_protocol"}
)


def change_topology(kind: str, old: str, new: str, options: LiveOptions, *, form: str) -> NoReturn:
    """Run the change, print its verdict, and end with its status.

    Records are written at 40 per second and topic, so that each is counted while members change.
    """
    if (old, new) != ("native", "native"):
        refuse("--topology changes a group of native members; give --from native --to native")
    unused = sorted(changed_options(options) - _USED)
    if unused or options.kill not in {None, "leader"}:
        named = ", ".join(unused) or "kill (other than leader)"
        refuse(
            f"--topology has no use for {named}; it takes members, partitions, protocol, kill, "
            "broker, take-back, session-timeout-ms"
        )
    try:
        broker = None if options.broker is None else broker_release(options.broker)
    except ReleaseError as error:
        refuse(str(error))
    try:
        verdict = run_topology_change(
            TopologyOptions(
                kind=ChangeKind(kind),
                partitions=options.partitions,
                members=options.members,
                cooperative=options.switches.rebalance_protocol == "cooperative",
                kill=options.kill is not None,
                broker=broker,
                take_back=options.take_back,
                session_timeout_ms=options.session_timeout_ms,
            ),
            lambda line: click.echo(line, err=form == "json"),
        )
    except EnvironmentFailureError as error:
        refuse(str(error), EXIT_ENVIRONMENT)
    if form == "json":
        click.echo(json.dumps(asdict(verdict) | {"ok": verdict.ok}, indent=2))
    else:
        for line in _lines(verdict):
            click.echo(line)
    sys.exit(0 if verdict.ok else EXIT_BAD)


def _lines(verdict: TopologyVerdict) -> list[str]:
    counts = [
        f"  {store}: {verdict.found.get(store, 0)} records counted"
        + (f" of {expected}" if expected is not None else "")
        for store, expected in sorted(verdict.expected.items())
    ]
    return [
        f"{verdict.kind}: {', '.join(verdict.before)} -> {', '.join(verdict.after)}",
        *(f"  {topic}: {n} records written" for topic, n in sorted(verdict.written.items())),
        *counts,
        *(f"  killed: {verdict.killed}" for _ in range(bool(verdict.killed))),
        *([_way_back(verdict)] if verdict.taken_back else ()),
        *(f"  reported: {why}" for why in verdict.errors),
        *(f"  broken: {rule}" for rule in verdict.broken),
        "every record was counted once, by one form" if verdict.ok else "the change is not safe",
    ]


def _way_back(verdict: TopologyVerdict) -> str:
    if not verdict.lowered:
        return "  taken back: to the old program; nothing was remembered that had to be lowered"
    version, epoch = verdict.lowered["version"], verdict.lowered["epoch"]
    return f"  taken back: to the old program, with version {version} lowered in epoch {epoch}"
