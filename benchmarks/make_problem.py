"""Generate a problem of any size, in the public format, from a seed.

    python -m benchmarks.make_problem --clients 1000 --tasks 10000 --standbys 1 --endpoints

The group is balanced: every client has its share of tasks and standby copies, placed at random, all
caught up. Names are as long as in production: 63 characters for topics, 30 for hosts. Equal options
give equal lines.
"""

import json
import random
import sys
from pathlib import Path
from uuid import UUID

import click

PORT = 8080
REPLICAS = 3
SWAPS = 100  # attempts before a copy is placed without balance
LAG_MAX = 1_000  # below the default acceptable recovery lag: standby copies are caught up
END_OFFSETS_MAX = 50_000_000
TOPIC = "prod.eu-west.commerce.{kind}.orders-by-customer-and-region.{number:04}"
HOST = "streams-{number:05}.prod.example.net"


def make_problem(
    *,
    clients,
    tasks,
    standbys=0,
    endpoints=False,
    racks=0,
    subtopologies=1,
    threads=1,
    seed=0,
):
    """The problem as a dict; ValueError for impossible numbers."""
    if not 1 <= subtopologies <= tasks:
        raise ValueError(f"{subtopologies} subtopologies need at least as many tasks, not {tasks}")
    if standbys >= clients:
        raise ValueError(f"{standbys} standbys need {standbys + 1} clients; there are {clients}")
    rng = random.Random(seed)
    sizes = [tasks // subtopologies + (s < tasks % subtopologies) for s in range(subtopologies)]
    names = [f"{s}_{p}" for s, size in enumerate(sizes) for p in range(size)]
    rack_names = [f"rack-{number}" for number in range(racks)]
    ends = {name: rng.randrange(END_OFFSETS_MAX) for name in names}
    topics, parts = {}, {}
    for number, size in enumerate(sizes):
        source, changelog = (
            TOPIC.format(kind=kind, number=number) for kind in ("source", "stores")
        )
        topics[source] = topic_of(rng, size, rack_names)
        topics[changelog] = topic_of(rng, size, rack_names)
        parts[str(number)] = {"sources": [source], "changelogs": [changelog]}
    owners = place(rng, len(names), clients, 1 + standbys)
    members = [client_of(n, rack_names, endpoints, threads) for n in range(clients)]
    for name, copies in zip(names, zip(*owners, strict=True), strict=True):
        members[copies[0]]["active"].append(name)
        members[copies[0]]["lags"][name] = "running"
        for owner in copies[1:]:
            members[owner]["standby"].append(name)
            members[owner]["lags"][name] = min(rng.randrange(LAG_MAX), ends[name])
    return {
        "name": f"steady-{tasks}x{clients}x{threads}-{standbys}",
        "config": {"num.standby.replicas": standbys},
        "topics": topics,
        "subtopologies": parts,
        "end_offset_sums": ends,
        "clients": {str(UUID(int=rng.getrandbits(128), version=4)): m for m in members},
    }


def topic_of(rng, partitions, rack_names):
    topic = {"partitions": partitions}
    if rack_names:
        count = min(REPLICAS, len(rack_names))
        topic["racks"] = {str(p): sorted(rng.sample(rack_names, count)) for p in range(partitions)}
    return topic


def client_of(number, rack_names, endpoints, threads):
    client = {"threads": threads}
    if rack_names:
        client["rack"] = rack_names[number % len(rack_names)]
    if endpoints:
        client["endpoint"] = f"{HOST.format(number=number)}:{PORT}"
    client["consumers"] = [f"streams-{number:05}-StreamThread-{t + 1}" for t in range(threads)]
    return client | {"active": [], "standby": [], "lags": {}}


def place(rng, tasks, clients, copies):
    """Columns of owners, one per copy: balanced, with all copies of a task on different clients."""
    columns = []
    for _ in range(copies):
        column = [task % clients for task in range(tasks)]
        rng.shuffle(column)
        for task in range(tasks):
            if clash(columns, column, task):
                move(rng, columns, column, task, clients)
        columns.append(column)
    return columns


def move(rng, columns, column, task, clients):
    """Swap the owners of two tasks so that neither task has two copies on one client."""
    for _ in range(SWAPS):
        other = rng.randrange(len(column))
        column[task], column[other] = column[other], column[task]
        if not clash(columns, column, task) and not clash(columns, column, other):
            return
        column[task], column[other] = column[other], column[task]
    taken = {before[task] for before in columns}
    column[task] = rng.choice([client for client in range(clients) if client not in taken])


def clash(columns, column, task):
    return any(before[task] == column[task] for before in columns)


@click.command(help=__doc__.split("\n\n", maxsplit=1)[0])
@click.option("--clients", type=click.IntRange(1, 100_000), required=True)
@click.option("--tasks", type=click.IntRange(1, 1_000_000), required=True)
@click.option("--standbys", type=click.IntRange(0, 30), default=0, show_default=True)
@click.option("--endpoints", is_flag=True, help="Give each client an application.server.")
@click.option("--racks", type=click.IntRange(0, 1_000), default=0, help="Racks of the cluster.")
@click.option("--subtopologies", type=click.IntRange(1, 9_999), default=1, show_default=True)
@click.option("--threads", type=click.IntRange(1, 1_000), default=1, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout.")
def main(out, **numbers):
    try:
        line = json.dumps(make_problem(**numbers), separators=(",", ":")) + "\n"
    except ValueError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    if out is None:
        click.echo(line, nl=False)
        return
    try:
        out.write_text(line)
    except OSError as error:
        click.echo(f"error: cannot write {out}: {error.strerror}; give another --out", err=True)
        sys.exit(3)


if __name__ == "__main__":
    main()
