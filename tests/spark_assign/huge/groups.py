"""Run the passes of the huge job without Spark, and make random groups for it."""

import random
import zlib
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from assignor import AssignmentConfig, ClientInput, TaskAssignment, group_state
from assignor.placement import LAG_UNKNOWN, NOBODY
from encoding import TaskId
from spark_assign.huge.driver.decide import decide
from spark_assign.huge.group import RACK_COSTS
from spark_assign.huge.tables import Member, made_of
from spark_assign.huge.worker.chunk import COUNTED, STORED, Known, Plans
from spark_assign.huge.worker.passes import counting, packing, placing
from spark_assign.huge.worker.rows import NULL_HASH, Reading, rows_of
from spark_assign.huge.worker.standbys import Pools


def hashed(value):
    """A stand-in for Spark's xxhash64: 64 bits of a text or a list, and 42 for null."""
    if value is None:
        return NULL_HASH
    text = repr(value).encode()
    return (zlib.crc32(text) << 31) ^ zlib.adler32(text)


def as_lists(racks, task):
    if racks is None:
        return None
    return [None if names is None else sorted(names) for names in racks[task]]


def reduced_batch(state, reading, tasks):
    """The columns that Spark passes to a worker."""
    copies = [list(zip(*held_by(state, task), strict=True)) for task in tasks]
    width = reading.width
    stateful = state.stateful[tasks].tolist()
    flags = [
        len(held) << 5 | is_stateful << 4
        for held, is_stateful in zip(copies, stateful, strict=True)
    ]
    columns = {
        "flags": pa.array(flags, pa.int32()),
        "subtopology": pa.array([state.tasks[t].subtopology for t in tasks], pa.int32()),
        "partition": pa.array([state.tasks[t].partition for t in tasks], pa.int32()),
        "owner": pa.array([hashed(name_of(state, int(state.owner[t]))) for t in tasks], pa.int64()),
        "end": pa.array(state.end_offset_sums[tasks].tolist(), pa.int64()),
    }
    for i in range(width):
        part = [held[i] if i < len(held) else (None, LAG_UNKNOWN, False) for held in copies]
        columns[f"copy{i}"] = pa.array([hashed(copy[0]) for copy in part], pa.int64())
        columns[f"lag{i}"] = pa.array([copy[1] for copy in part], pa.int64())
        columns[f"stalled{i}"] = pa.array([copy[2] for copy in part])
    more = [
        [{"client": c, "lag": lag, "stalled": stalled} for c, lag, stalled in held]
        if len(held) > width
        else None
        for held in copies
    ]
    kind = pa.struct([("client", pa.string()), ("lag", pa.int64()), ("stalled", pa.bool_())])
    columns["more"] = pa.array(more, pa.list_(kind))
    for name, racks in (
        ("source_racks", state.partition_racks),
        ("changelog_racks", state.changelog_racks),
    ):
        columns[name] = pa.array([hashed(as_lists(racks, t)) for t in tasks], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def held_by(state, task):
    part = slice(state.copy_start[task], state.copy_start[task + 1])
    names = [state.clients[c] for c in state.copy_client[part].tolist()]
    return names, state.copy_lag[part].tolist(), state.copy_stalled[part].tolist()


def name_of(state, client):
    return None if client == NOBODY else state.clients[client]


def no_check(_counted):
    """Accept all tasks; those of `random_group` are valid."""


def made_group(state, strategy):
    """The group of a state as the job makes it, its warnings, and what workers read."""
    clients = [
        Member(client=c, threads=int(n), rack=rack, tags=dict(tags), hash=hashed(c))
        for c, n, rack, tags in zip(
            state.clients, state.threads, state.racks, state.tags, strict=True
        )
    ]
    pairs = {
        repr(pair): pair
        for pair in (
            (as_lists(state.partition_racks, t), as_lists(state.changelog_racks, t))
            for t in range(len(state.tasks))
        )
    }
    lists = [
        Row(partition_racks=sources, changelog_racks=logs, source=hashed(sources), log=hashed(logs))
        for sources, logs in pairs.values()
    ]
    wanted = state.config.rack_aware_assignment_strategy != "none"
    traffic, overlap = RACK_COSTS[strategy]
    config = state.config.with_rack_costs(traffic=traffic, non_overlap=overlap)
    group, warnings = made_of(clients, lists if wanted else [], config, strategy)
    reading = Reading(
        width=1 + min(group.standbys, 2), with_stalled=True, with_racks=group.has_rack_costs
    )
    return group, warnings, reading


def group_and_rows(state, strategy):
    """The group of a state, and its tasks as the rows of a worker."""
    group, _, reading = made_group(state, strategy)
    batch = reduced_batch(state, reading, np.arange(len(state.tasks)))
    return group, rows_of(batch, reading, group.names, group.clients)


def run_group(state, strategy, *, chunks=2, batch=400):
    """The plan of the huge job as a task assignment, and its decisions."""
    group, warnings, reading = made_group(state, strategy)
    pools = Pools.of(group)
    parts = np.array_split(np.arange(len(state.tasks)), chunks)
    table = [
        [
            reduced_batch(state, reading, part[i : i + batch])
            for i in range(0, max(1, len(part)), batch)
        ]
        for part in parts
    ]

    def known(plans):
        return SimpleNamespace(value=Known(group=group, pools=pools, reading=reading, plans=plans))

    packed = [
        pa.Table.from_batches(packing(known(Plans()), lambda number=number: number)(iter(batches)))
        for number, batches in enumerate(table)
    ]

    def run(make, plans):
        chunks = [part.select(STORED).to_batches() for part in packed]
        return pa.Table.from_batches(b for part in chunks for b in make(known(plans))(iter(part)))

    def count(plans):
        if plans.actives is None and plans.taking is None:
            rows = pa.concat_tables(packed)
            return rows.filter(rows["data"].is_null()).select(COUNTED.names)
        return run(counting, plans)

    decided = decide(group, pools, count, no_check)
    placed = run(placing, decided.plans)
    return answer_of(state, placed, decided), SimpleNamespace(
        decided=decided, placed=placed, group=group, warnings=warnings
    )


def answer_of(state, placed, decided):
    tasks = {task: index for index, task in enumerate(state.tasks)}
    clients = {client: index for index, client in enumerate(state.clients)}
    active = np.full(len(state.tasks), NOBODY)
    pairs, warmups = [], []
    for row in placed.to_pylist():
        task = tasks[TaskId(row["subtopology"], row["partition"])]
        client = clients[row["client"]]
        if row["role"] == "active":
            assert active[task] == NOBODY, "active twice"
            active[task] = client
            continue
        pairs.append((task, client))
        if row["role"] == "warmup":
            warmups.append((task, client))
    return TaskAssignment(
        active=active,
        standbys=tuple(sorted(pairs)),
        warmups=tuple(sorted(warmups)),
        followup=decided.followup,
    )


def random_group(
    seed, *, racks=0, strategy="none", standbys=None, kind=None, clients=None, size=None
):
    """A small random group of a seed; `kind` is what happened to it before."""
    rng = random.Random(seed)  # noqa: S311 a seed for tests
    count = clients or rng.randint(1, 9)
    subtopologies = rng.randint(1, 3)
    size = size or rng.randint(1, 24)
    tasks = [TaskId(s, p) for s in range(subtopologies) for p in range(size)]
    copies = rng.randint(0, 2) if standbys is None else standbys
    stateful = {s for s in range(subtopologies) if rng.random() < 0.8}
    kind = kind or rng.choice(["fresh", "steady", "join", "leave", "mess"])
    actives = [set() for _ in range(count)]
    lags = [{} for _ in range(count)]
    live = max(1, count - rng.randint(1, 2)) if kind == "join" else count
    gone = rng.randrange(live) if kind == "leave" else -1
    for number, task in enumerate(tasks if kind != "fresh" else []):
        owner = (rng.randrange(live) if kind == "mess" else number) % live
        holders = [(owner + 1 + k + number // live) % live for k in range(copies)]
        if kind == "mess":
            holders = [rng.randrange(live) for _ in range(rng.randint(0, copies + 2))]
        if owner != gone and rng.random() < (0.8 if kind == "mess" else 1.0):
            actives[owner].add(task)
        if task.subtopology in stateful:
            if owner != gone:
                lags[owner][task] = -1 if task in actives[owner] else 20_000
            for holder in holders:
                if holder not in (owner, gone):
                    worst = [0, 10, 20_000, LAG_UNKNOWN] if kind == "mess" else [0, 10]
                    lags[holder][task] = rng.choice(worst)
    unequal = rng.random() < 0.4
    names = [f"rack-{n}" for n in range(racks)]
    places = [rng.sample(names, min(2, racks)) for _ in tasks]
    logs = [rng.sample(names, min(2, racks)) for _ in tasks]
    return group_state(
        tasks=tasks,
        stateful_tasks=[task for task in tasks if task.subtopology in stateful],
        clients=[
            ClientInput(
                process_id=f"client-{n}",
                threads=rng.choice([1, 2, 4]) if unequal else 1,
                active_tasks=frozenset(actives[n]),
                lags=lags[n],
                rack=names[n % racks] if racks else None,
            )
            for n in range(count)
            if n != gone or count == 1
        ],
        config=AssignmentConfig(
            num_standby_replicas=copies, rack_aware_assignment_strategy=strategy
        ),
        end_offset_sums={task: rng.choice([0, 50_000, 100_000]) for task in tasks},
        partition_racks={t: [frozenset(p)] for t, p in zip(tasks, places, strict=True)}
        if racks
        else None,
        changelog_racks={t: [frozenset(p)] for t, p in zip(tasks, logs, strict=True)}
        if racks
        else None,
    )
