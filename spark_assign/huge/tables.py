"""Read a huge group without its tasks: clients, settings, classes of racks."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from assignor import AssignmentConfig, ClientInput
from assignor.placement.racks import rack_warnings
from assignor.placement.standbys import too_few_clients
from spark_assign.huge.group import NO_CLASSES, Classes, Group, spread_of
from spark_assign.huge.worker.actives import LEVELS
from spark_assign.huge.worker.rows import NULL_HASH, Ints, Names
from spark_assign.tables import BadTable

# Cells of a counter; so many fit in the memory of any worker.
_CELLS = 1 << 23
_MOST_BUCKETS = 64
# Distinct lists of racks.
_MOST_LISTS = 100_000
_MOST_THREADS = 10**6


class Member(NamedTuple):
    """A row of the clients; attributes of Spark's own rows are slow to read 100,000 times.

    Attributes:
        client, threads, rack, tags: as in `schemas.CLIENT`.
        hash: of the client id, as workers get it.
    """

    client: str | None
    threads: int | None
    rack: str | None
    tags: Mapping[str, str] | None
    hash: int


def group_of(
    tasks: DataFrame, clients: DataFrame, config: AssignmentConfig, strategy: str
) -> tuple[Group, tuple[str, ...]]:
    """The group, and warnings about settings that cannot be met.

    Args:
        tasks: in the schema `schemas.TASK`; read only if racks have costs.
        clients: in the schema `schemas.CLIENT`.
        config: settings, rack costs filled in.
        strategy: by name.

    Raises:
        BadTable: there are no clients, a client has two rows or no id, threads are out of range, or
            there are too many lists of racks.
    """
    rows = clients.select("client", "threads", "rack", "tags", sql.xxhash64("client").alias("hash"))
    wanted = config.rack_aware_assignment_strategy
    lists = _lists(tasks) if wanted != "none" else []
    client, threads, rack, tags, hashes = (part.to_pylist() for part in rows.toArrow().columns)
    maps = (None if pairs is None else dict(pairs) for pairs in tags)
    members = list(map(Member, client, threads, rack, maps, hashes))
    return made_of(members, lists, config, strategy)


def made_of(
    rows: Sequence[Member], lists: Sequence[Row], config: AssignmentConfig, strategy: str
) -> tuple[Group, tuple[str, ...]]:
    """`group_of` from rows: clients with the hashes of their ids, and distinct pairs of rack lists.

    Raises:
        BadTable: as `group_of`.
    """
    members = sorted(rows, key=lambda row: row.client or "")
    _check(members)
    inputs = _inputs(members)
    threads = np.array([client_input.threads for client_input in inputs], dtype=np.int64)
    racks = _rack_costs(inputs, lists, config.rack_aware_assignment_strategy)
    number = {name: index for index, name in enumerate(racks.names)}
    costs = len(racks.names) > 1
    kinds = len(racks.sources.weight) if costs else 1
    most = _CELLS // (LEVELS * 2 * len(inputs) * kinds)
    group = Group(
        clients=tuple(client_input.process_id for client_input in inputs),
        names=Names.of([row.hash for row in members]),
        capacity=threads if threads.any() else np.ones_like(threads),
        rack_of=np.array(
            [number[client_input.rack] if costs else 0 for client_input in inputs], dtype=np.int64
        ),
        lacks_rack=np.array([costs and name is None for name in racks.names], dtype=np.bool_),
        config=config,
        strategy=strategy,
        spread=(spread := spread_of(inputs, config, has_changelog_racks=racks.has_changelogs)),
        cells=np.array(spread.cells, dtype=np.int64),
        buckets=max(1, min(_MOST_BUCKETS, most)),
        sources=racks.sources,
        changelogs=racks.changelogs,
    )
    return group, (*_too_few_standbys(config, threads), *racks.warnings)


class _RackCosts(NamedTuple):
    """Racks of a group that have costs, classes of tasks by these costs, and warnings.

    Attributes:
        names: the racks, and None last if clients have none; [None] without costs.
        sources, changelogs: classes of tasks by the racks of their partitions.
        has_changelogs: whether racks of any changelog partition are known.
        warnings: about racks that are not known.
    """

    names: Sequence[str | None] = (None,)
    sources: Classes = NO_CLASSES
    changelogs: Classes = NO_CLASSES
    has_changelogs: bool = False
    warnings: tuple[str, ...] = ()


def _rack_costs(inputs: Sequence[ClientInput], lists: Sequence[Row], strategy: str) -> _RackCosts:
    if strategy == "none":
        return _RackCosts()
    racks = sorted({client.rack for client in inputs if client.rack is not None})
    lacking = [client.process_id for client in inputs if client.rack is None]
    has_sources = any(any(row.partition_racks or ()) for row in lists)
    warnings = rack_warnings(strategy, lacking, len(inputs), kind="source", is_known=has_sources)
    if not racks:
        return _RackCosts(warnings=warnings)
    has_changelogs = any(any(row.changelog_racks or ()) for row in lists)
    if not has_sources or len(racks) == 1:
        return _RackCosts(has_changelogs=has_changelogs, warnings=warnings)
    names = [*racks, *([None] if lacking else [])]
    return _RackCosts(
        names=names,
        sources=_classes(lists, "partition_racks", "source", names),
        changelogs=_classes(lists, "changelog_racks", "log", names),
        has_changelogs=has_changelogs,
        warnings=warnings,
    )


def _inputs(members: Sequence[Member]) -> list[ClientInput]:
    return [
        ClientInput(
            process_id=row.client or "",
            threads=1 if row.threads is None else row.threads,
            rack=row.rack or None,
            tags=tuple(sorted((row.tags or {}).items())),
        )
        for row in members
    ]


def _check(members: Sequence[Member]) -> None:
    if not members:
        raise BadTable("the clients: the table is empty; a group without clients has no plan")
    seen: dict[int, str] = {NULL_HASH: ""}
    before = None
    for row in members:
        if row.client is None or not row.client:
            raise BadTable("the clients: column client is null in a row; give every client its id")
        if row.client == before:
            raise BadTable(f"the clients: {row.client} has two rows; merge them")
        if row.threads is not None and not 0 <= row.threads <= _MOST_THREADS:
            raise BadTable(
                f"the clients: {row.client} has threads {row.threads}; give 0 to {_MOST_THREADS}"
            )
        if row.hash in seen:
            raise BadTable(
                f"the clients: {row.client} and {seen[row.hash] or 'null'} have the same hash, "
                "which is very rare; rename one of them"
            )
        before, seen[row.hash] = row.client, row.client


def _too_few_standbys(config: AssignmentConfig, threads: Ints) -> tuple[str, ...]:
    usable = int((threads > 0).sum()) or len(threads)
    configured = config.num_standby_replicas
    return tuple(too_few_clients(configured, min(configured, usable - 1), usable))


def _lists(tasks: DataFrame) -> list[Row]:
    """The distinct pairs of rack lists, with their hashes."""
    pairs = tasks.groupBy("partition_racks", "changelog_racks").count()
    lists = (
        pairs.select(
            "partition_racks",
            "changelog_racks",
            sql.xxhash64("partition_racks").alias("source"),
            sql.xxhash64("changelog_racks").alias("log"),
        )
        .limit(_MOST_LISTS + 1)
        .collect()
    )
    if len(lists) > _MOST_LISTS:
        raise BadTable(
            f"the tasks: more than {_MOST_LISTS} different lists of racks; name racks, not "
            "brokers, and each once, in one order"
        )
    return lists


def _classes(
    lists: Sequence[Row], column: str, hashed: str, racks: Sequence[str | None]
) -> Classes:
    """Classes of rack lists by their costs; the first class costs nothing."""
    by_hash: dict[int, list[list[str] | None]] = {}
    for row in lists:
        if row[column] is not None and by_hash.setdefault(row[hashed], row[column]) != row[column]:
            raise BadTable(
                f"the tasks: two lists in {column} have the same hash, which is very rare; "
                "write one of them in another order"
            )
    ordered = sorted(by_hash.items(), key=lambda item: str(item[1]))
    rows = [[0] * len(racks)]
    for _, parts in ordered:
        known = [frozenset(names) for names in parts if names]
        rows.append(
            [0 if rack is None else sum(rack not in names for names in known) for rack in racks]
        )
    weight, merged = np.unique(np.array(rows, dtype=np.int64), axis=0, return_inverse=True)
    return Classes(
        names=Names.of([number for number, _ in ordered]),
        class_of=merged.reshape(-1)[1:].astype(np.int64) if ordered else np.zeros(1, np.int64),
        weight=weight,
    )
