"""Make the tables of one huge group; equal arguments give equal rows.

95 % of the clients run equal numbers of tasks, with caught-up standbys on other clients; 5 % are
new and have no tasks. Client ids are as long as in production. With racks every partition has
three replicas in random racks.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OLD_SHARE = 0.95
REPLICAS = 3
SUBTOPOLOGIES = 5
FILES = 8


def make_tables(directory, *, tasks, clients, standbys=0, racks=0, seed=0):
    """Write `tasks/` and `clients/` as Parquet into a directory."""
    folder = Path(directory)
    for part in ("tasks", "clients"):
        (folder / part).mkdir(parents=True)
    rng = np.random.default_rng(seed)
    mixed = np.arange(clients, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    names = pa.array([f"{int(x):016x}-{n:07d}-client-0" for n, x in enumerate(mixed)])
    columns = {"client": names, "threads": pa.array(np.ones(clients, dtype=np.int32))}
    if racks:
        columns["rack"] = pa.array([f"rack-{n % racks}" for n in range(clients)])
    pq.write_table(pa.table(columns), folder / "clients" / "clients.parquet")
    lists = _rack_lists(racks)
    step = -(-tasks // FILES)
    for number, start in enumerate(range(0, tasks, step)):
        task = np.arange(start, min(tasks, start + step))
        table = _tasks(
            task, tasks, max(2, int(clients * OLD_SHARE)), names, standbys=standbys, rng=rng
        )
        if lists is not None:
            for name in ("partition_racks", "changelog_racks"):
                table = table.append_column(
                    name, lists.take(rng.integers(len(lists), size=len(task)))
                )
        pq.write_table(table, folder / "tasks" / f"tasks-{number:03}.parquet")


def _tasks(task, total, old, names, *, standbys, rng):
    size, width = -(-total // SUBTOPOLOGIES), 1 + standbys
    owner, lap = task % old, task // old
    holders = [owner, *((owner + 1 + (lap + k) % (old - 1)) % old for k in range(standbys))]
    lags = [np.full(len(task), -1)] + [rng.integers(0, 1_000, len(task)) for _ in range(standbys)]
    copies = pa.StructArray.from_arrays(
        [
            names.take(pa.array(np.stack(holders, axis=1).reshape(-1))),
            pa.array(np.stack(lags, axis=1).reshape(-1)),
        ],
        ["client", "lag"],
    )
    offsets = pa.array(np.arange(0, width * len(task) + 1, width, dtype=np.int32))
    return pa.table(
        {
            "subtopology": pa.array((task // size).astype(np.int32)),
            "partition": pa.array((task % size).astype(np.int32)),
            "stateful": pa.array(np.ones(len(task), dtype=np.bool_)),
            "owner": names.take(pa.array(owner)),
            "copies": pa.ListArray.from_arrays(offsets, copies),
            "end_offset_sum": pa.array(rng.integers(100_000, 10_000_000, len(task))),
        }
    )


def _rack_lists(racks):
    if not racks:
        return None
    names = [f"rack-{n}" for n in range(racks)]
    width = min(REPLICAS, racks)
    sets = [
        [sorted({names[(a + k * (1 + b)) % racks] for k in range(width)})]
        for a in range(racks)
        for b in range(racks - 1)
    ]
    return pa.array(sets)
