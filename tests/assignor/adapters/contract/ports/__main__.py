"""Check the port of every client, with installed releases and with others.

    python -m pip install --no-deps --target older aiokafka==0.12.0
    python -m tests.assignor.adapters.contract.ports --library older

Another release is taken from the folder of `--library`. Exit status 1: something does not hold.
"""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import click

from tests.assignor.adapters.contract.__main__ import release_in, release_of
from tests.assignor.adapters.contract.ports.checks import CLIENTS, broken


def broken_with(library, client):
    """Return what does not hold with the releases in a folder; None: the installed ones."""
    path = [] if library is None else [str(library.resolve())]
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name, "--client", client, "--plain"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([*path, *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


@click.command(help=__doc__)
@click.option("--client", "clients", multiple=True, type=click.Choice(CLIENTS), default=CLIENTS)
@click.option("--library", "libraries", multiple=True, type=click.Path(path_type=Path))
@click.option("--plain", is_flag=True, hidden=True)
def main(clients, libraries, *, plain):
    """Print the table."""
    if plain:
        logging.disable(logging.CRITICAL)
        click.echo(json.dumps(broken(*clients)))
        return
    click.echo("| client | release | does not hold |\n| --- | --- | --- |")
    has_failed = False
    for client in clients:
        for library in (None, *libraries):
            name = client.replace("-", "_")
            release = release_of(name) if library is None else release_in(library, name)
            if release is not None:
                found = broken_with(library, client)
                has_failed = has_failed or bool(found)
                click.echo(f"| {client} | {release} | {'; '.join(found) or '-'} |")
    sys.exit(has_failed)


if __name__ == "__main__":
    main()
