"""``assignor sample``: write groups of any size, in the format of problem files, from a seed.

A group is balanced: every client has its share of tasks and standbys, placed at random, all caught
up. Then clients join and leave. Names are as long as in production: 63 characters for topics, 30
for hosts. Equal options give equal lines.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from assignor.cli.toolkit.commands import Command
from assignor.cli.toolkit.exit_status import BadInput, EnvironmentFailed

PORT = 8080
REPLICAS = 3
SWAPS = 100  # attempts before a copy is placed without balance
LAG_MAX = 1_000  # below the default acceptable recovery lag: standby copies are caught up
END_OFFSETS_MAX = 50_000_000
TOPIC = "prod.eu-west.commerce.{kind}.orders-by-customer-and-region.{number:04}"
HOST = "streams-{number:05}.prod.example.net"
Placed = list[list[int]]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_HELP = """Write sample groups as a problem file: one group per line.

Each group is balanced, and its copies are caught up. Then clients without state join (--joined),
and others leave (--lost), whose tasks no client runs. A RANGE is a number, or LOW-HIGH: the first
group has the lowest number, the next one more, and after the highest it starts again.
"""
_EXAMPLES = """
PROGRAM sample --clients 4 --tasks 12 --standbys 1 --joined 1
PROGRAM sample --groups 40 --clients 3-10 --tasks 12-51 --out groups.jsonl
"""


class _Range(click.ParamType[range]):
    """A whole number, or two as LOW-HIGH."""

    name = "range"

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """Return the numbers of the range."""
        if isinstance(value, range):
            return value
        first, _, last = str(value).partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            self.fail(f"{value!r} is neither a number nor LOW-HIGH", param, ctx)
        low, high = int(first), int(last or first)
        if not self._low <= low <= high <= self._high:
            self.fail(f"{value} is not within {self._low} to {self._high}, low first", param, ctx)
        return range(low, high + 1)


def _range_option(name: str, kind: _Range, default: str, text: str) -> Decorator:
    return click.option(
        name, type=kind, default=default, metavar="RANGE", show_default=True, help=text
    )


def _number_option(name: str, kind: click.IntRange, default: int, text: str) -> Decorator:
    return click.option(name, type=kind, default=default, show_default=True, help=text)


@click.command(
    "sample",
    cls=Command,
    help=_HELP,
    short_help="Write sample groups of any size.",
    examples=_EXAMPLES,
    exits={2: "impossible numbers", 3: "the file cannot be written"},
)
@click.option("--groups", type=click.IntRange(1), default=1, show_default=True, help="Groups.")
@_range_option("--clients", _Range(1, 100_000), "3", "Clients of a group.")
@_range_option("--tasks", _Range(1, 1_000_000), "12", "Tasks of a group; all have state.")
@_number_option("--standbys", click.IntRange(0, 30), 0, "Standbys of each task.")
@_range_option("--joined", _Range(0, 10_000), "0", "Clients without state that have just joined.")
@_range_option("--lost", _Range(0, 10_000), "0", "Clients that have just left.")
@click.option("--endpoints", is_flag=True, help="Give each client an application.server.")
@_number_option("--racks", click.IntRange(0, 1_000), 0, "Racks of the cluster; 0 leaves them out.")
@_number_option("--subtopologies", click.IntRange(1, 9_999), 1, "Subtopologies, of equal size.")
@_number_option("--threads", click.IntRange(1, 1_000), 1, "Threads of each client.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="N",
    help="Random seed of the first group; then one more.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Output file; default: stdout.",
)
def sample(*, groups: int, out: Path | None, **given: Any) -> None:
    """Run the subcommand."""
    lines = (json.dumps(group, separators=(",", ":")) + "\n" for group in _groups(groups, given))
    try:
        if out is None:
            for text in lines:
                sys.stdout.write(text)
            return
        with out.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except ValueError as error:
        raise BadInput(str(error)) from None
    except BrokenPipeError:  # the reader of stdout has closed it
        raise
    except OSError as error:
        raise EnvironmentFailed(
            f"cannot write {out}: {error.strerror}; give another --out"
        ) from None


def _groups(count: int, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the groups that the options describe."""
    ranges = {name: given.pop(name) for name in ("clients", "tasks", "joined", "lost")}
    seed, width = given.pop("seed"), len(str(count - 1))
    for number in range(count):
        own = {name: found[number % len(found)] for name, found in ranges.items()}
        group = make_problem(seed=seed + number, **own, **given)
        yield group if count == 1 else group | {"name": f"group-{number:0{width}}"}


def make_problem(
    *,
    clients: int,
    tasks: int,
    standbys: int = 0,
    endpoints: bool = False,
    racks: int = 0,
    subtopologies: int = 1,
    threads: int = 1,
    joined: int = 0,
    lost: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """Return a group as the object of a problem file.

    Args:
        clients: number of clients, among which the tasks are shared evenly.
        tasks: number of tasks; all have state.
        standbys: standbys of each task.
        endpoints: whether clients have an `application.server`.
        racks: number of racks; 0 leaves racks out.
        subtopologies: number of subtopologies, each with as many tasks as the others, or one more.
        threads: of each client.
        joined: clients that have no state yet.
        lost: clients that are gone, with their tasks and standbys.
        seed: of the random generator.

    Raises:
        ValueError: the numbers contradict each other.
    """
    if not 1 <= subtopologies <= tasks:
        raise ValueError(f"{subtopologies} subtopologies need at least as many tasks, not {tasks}")
    if standbys >= clients:
        raise ValueError(f"{standbys} standbys need {standbys + 1} clients; there are {clients}")
    if lost >= clients + joined:
        raise ValueError(f"{lost} clients are lost; there are only {clients + joined}")
    rng = random.Random(seed)  # noqa: S311 no secret
    sizes = [tasks // subtopologies + (s < tasks % subtopologies) for s in range(subtopologies)]
    names = [f"{s}_{p}" for s, size in enumerate(sizes) for p in range(size)]
    rack_names = [f"rack-{number}" for number in range(racks)]
    ends = {name: rng.randrange(END_OFFSETS_MAX) for name in names}
    topics, parts = dict[str, Any](), dict[str, Any]()
    for number, size in enumerate(sizes):
        pair = [TOPIC.format(kind=kind, number=number) for kind in ("source", "stores")]
        topics |= {topic: _topic(rng, size, rack_names) for topic in pair}
        parts[str(number)] = {"sources": pair[:1], "changelogs": pair[1:]}
    owners = _placed(rng, len(names), clients, 1 + standbys)
    members = [
        _client(n, rack_names, threads, endpoints=endpoints) for n in range(clients + joined)
    ]
    _give(rng, members, names, owners, ends)
    ids = [str(UUID(int=rng.getrandbits(128), version=4)) for _ in members]
    return {
        "name": f"steady-{tasks}x{clients}x{threads}-{standbys}",
        "config": {"num.standby.replicas": standbys},
        "topics": topics,
        "subtopologies": parts,
        "end_offset_sums": ends,
        "clients": dict(list(zip(ids, members, strict=True))[lost:]),
    }


def _give(
    rng: random.Random,
    members: Sequence[dict[str, Any]],
    names: Sequence[str],
    owners: Placed,
    ends: Mapping[str, int],
) -> None:
    """Give each client its tasks and standbys, with their lags."""
    for name, copies in zip(names, zip(*owners, strict=True), strict=True):
        members[copies[0]]["active"].append(name)
        members[copies[0]]["lags"][name] = "running"
        for owner in copies[1:]:
            members[owner]["standby"].append(name)
            members[owner]["lags"][name] = min(rng.randrange(LAG_MAX), ends[name])


def _topic(rng: random.Random, partitions: int, rack_names: Sequence[str]) -> dict[str, Any]:
    topic: dict[str, Any] = {"partitions": partitions}
    if rack_names:
        count = min(REPLICAS, len(rack_names))
        topic["racks"] = {str(p): sorted(rng.sample(rack_names, count)) for p in range(partitions)}
    return topic


def _client(
    number: int, rack_names: Sequence[str], threads: int, *, endpoints: bool
) -> dict[str, Any]:
    client: dict[str, Any] = {"threads": threads}
    if rack_names:
        client["rack"] = rack_names[number % len(rack_names)]
    if endpoints:
        client["endpoint"] = f"{HOST.format(number=number)}:{PORT}"
    client["consumers"] = [f"streams-{number:05}-StreamThread-{t + 1}" for t in range(threads)]
    return client | {"active": [], "standby": [], "lags": {}}


def _placed(rng: random.Random, tasks: int, clients: int, copies: int) -> Placed:
    """Columns of owners, one per copy: balanced, with all copies of a task on different clients."""
    columns: Placed = []
    for _ in range(copies):
        column = [task % clients for task in range(tasks)]
        rng.shuffle(column)
        for task in range(tasks):
            if _clash(columns, column, task):
                _move(rng, columns, column, task, clients)
        columns.append(column)
    return columns


def _move(rng: random.Random, columns: Placed, column: list[int], task: int, clients: int) -> None:
    """Swap the owners of two tasks so that neither task has two copies on one client."""
    for _ in range(SWAPS):
        other = rng.randrange(len(column))
        column[task], column[other] = column[other], column[task]
        if not _clash(columns, column, task) and not _clash(columns, column, other):
            return
        column[task], column[other] = column[other], column[task]
    taken = {before[task] for before in columns}
    column[task] = rng.choice([client for client in range(clients) if client not in taken])


def _clash(columns: Placed, column: list[int], task: int) -> bool:
    return any(before[task] == column[task] for before in columns)
