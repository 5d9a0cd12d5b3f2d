"""Compare scripted clients with real ones, script by script, for installed and for other releases.

    python -m pip install --no-deps --target older aiokafka==0.12.0
    python -m tests.assignor.adapters.contract --library older

A real client runs on the embedded broker. Another release is taken from the folder of `--library`,
in a process of its own. The scripted clients of kafka-python and aiokafka are made of the installed
release, so that a difference is one between the releases. Exit status 1: there are differences.
"""

import json
import logging
import os
import subprocess
import sys
from functools import partial
from importlib.metadata import Distribution, version
from pathlib import Path

import click

from tests.assignor.adapters.contract.traces import CLIENTS, real, scripted, scripts_of, trace_of

PACKAGES = {
    "kafka_python": "kafka-python",
    "aiokafka": "aiokafka",
    "confluent": "confluent-kafka",
}


def plain(trace):
    """Return a trace as JSON has it."""
    return json.loads(json.dumps(trace))


def compared(client, names):
    """Return name -> (scripted trace, real trace) of the scripts that differ."""
    found = {}
    for name in names:
        wanted = trace_of(name, client, scripted)
        got = trace_of(name, client, real, wanted)
        if got != wanted:
            found[name] = plain(wanted), plain(got)
    return found


def compared_with(library, client, names):
    """Return the same for the release in a folder."""
    release = tuple(map(int, release_in(library, client).split(".")))
    of_release = partial(scripted, release=release)
    wanted = {name: trace_of(name, client, of_release) for name in names}
    command = [sys.executable, "-m", __spec__.name, "--client", client, "--real-only"]
    path = os.pathsep.join([str(library.resolve()), *filter(None, sys.path)])
    done = subprocess.run(
        command,
        input=json.dumps(wanted),
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(done.stderr)
    got = json.loads(done.stdout.splitlines()[-1])
    return {
        name: (plain(wanted[name]), got[name]) for name in names if got[name] != plain(wanted[name])
    }


def release_in(library, client):
    """Return the release of a client in a folder, or None."""
    pattern = f"{PACKAGES.get(client, client).replace('-', '_')}-*.dist-info"
    return next((Distribution.at(path).version for path in Path(library).glob(pattern)), None)


def release_of(client):
    """Return the installed release of a client; that of an invented one is "-"."""
    return version(PACKAGES[client]) if client in PACKAGES else "-"


@click.command(help=__doc__)
@click.option("--client", "clients", multiple=True, type=click.Choice(CLIENTS), default=CLIENTS)
@click.option("--library", "libraries", multiple=True, type=click.Path(path_type=Path))
@click.option("--real-only", is_flag=True, hidden=True)
@click.argument("names", nargs=-1)
def main(clients, libraries, names, *, real_only):
    """Print the table."""
    logging.disable(logging.CRITICAL)
    if real_only:
        wanted = json.load(sys.stdin)
        [client] = clients
        click.echo(json.dumps({n: trace_of(n, client, real, wanted[n]) for n in wanted}))
        return
    rows, differences = [], {}
    for client in clients:
        wanted = [name for name in scripts_of(client) if not names or name in names]
        found = {release_of(client): compared(client, wanted)}
        for library in libraries:
            if (release := release_in(library, client)) is not None:
                found[release] = compared_with(library, client, wanted)
        for release, differing in found.items():
            rows.append((PACKAGES[client], release, len(wanted), len(differing)))
            differences |= {(client, release, name): pair for name, pair in differing.items()}
    click.echo("| client | release | scripts | differences |\n| --- | --- | --- | --- |")
    for row in rows:
        click.echo(f"| {' | '.join(map(str, row))} |")
    for (client, release, name), (wanted, got) in differences.items():
        click.echo(f"\n{client} {release}, {name}:")
        for expected, seen in zip(wanted, got, strict=True):
            if expected != seen:
                click.echo(f"  step {expected[0]}: scripted {expected[1:]}\n  real {seen[1:]}")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
