"""The rows of the last pass: one for every copy of every task, and their costs."""

import numpy as np
import pyarrow as pa

from assignor.placement import LAG_UNKNOWN, NOBODY
from assignor.problems import total_of
from spark_assign.huge.group import Group
from spark_assign.huge.worker.rows import Bools, Ints, Rows

# Costs of a batch of placements, in this order; the first row of a batch has them.
COSTS = (
    "tasks",
    "standbys",
    "warmups",
    "moved",
    "restores",
    "cold",
    "active_traffic",
    "standby_traffic",
    "handoffs",
    "takeovers",
    "stateless_moves",
    "restored_records",
    "unknown_restores",
    # Once the group has settled.
    "touched",
    "unowned",
    "missing_before",
    "missing_settled",
)
# Costs that `GroupGain` needs; they mean nothing to users.
OF_GAIN = COSTS[-4:]
_LIST = pa.list_(pa.int64())
PLACED = pa.schema(
    [
        ("subtopology", pa.int32()),
        ("partition", pa.int32()),
        ("client", pa.string()),
        ("role", pa.string()),
        ("costs", _LIST),
    ]
)
ROLES = pa.array(["active", "standby", "warmup"])


def answer(
    rows: Rows,
    group: Group,
    names: pa.Array,
    *,
    active: Ints,
    placed: Ints,
    warm: Ints,
    settled: tuple[Ints, Ints],
) -> pa.RecordBatch:
    """A batch in the schema `PLACED`, with its costs in the first row.

    Args:
        rows: the tasks.
        group: the group.
        names: ids of the clients.
        active: int [B], the client that runs each task.
        placed: int [B, N], standbys, NOBODY where there is none.
        warm: int [B, M], warm-ups, likewise.
        settled: `active` and `placed` once the group has settled.
    """
    size = len(active)
    if placed.shape[1] + warm.shape[1]:
        both = np.concatenate([active[:, None], placed, warm], axis=1)
        is_placed = both != NOBODY
        is_placed[:, 0] = True
        index, column = np.nonzero(is_placed)
        client = both[index, column]
        role = np.repeat([0, 1, 2], [1, placed.shape[1], warm.shape[1]])[column]
    else:
        index, client, role = np.arange(size), active, np.zeros(size, dtype=np.int64)
    costs = [*_costs(rows, group, index, client, role), *_gains(rows, group, *settled)]
    columns = [
        pa.array(rows.subtopology.astype(np.int32)[index]),
        pa.array(rows.partition.astype(np.int32)[index]),
        names.take(pa.array(client)),
        ROLES.take(pa.array(role)),
        pa.concat_arrays([pa.array([costs], _LIST), pa.nulls(len(index) - 1, _LIST)]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED)


def _costs(rows: Rows, group: Group, index: Ints, client: Ints, role: Ints) -> list[int]:
    """The numbers of `COSTS`, except those of `OF_GAIN`."""
    is_active = role == 0
    owner = rows.owner[index]
    moved = is_active & (owner != NOBODY) & (client != owner)
    restored, cold = _restores(rows, group, index, client, is_active)
    stateful = rows.stateful[index]
    handoffs = (moved & stateful).sum()
    takeovers = (is_active & stateful & (owner == NOBODY)).sum()
    records, unknown = _lacking(rows, index, client)
    traffic = np.zeros(2, dtype=np.int64)
    if group.has_rack_costs:
        rack, others = group.rack_of[client], ~is_active
        sources = group.sources.weight[rows.source_class[index], rack]
        logs = group.changelogs.weight[rows.changelog_class[index], rack]
        traffic[:] = sources[is_active].sum(), logs[others].sum()
    counts = [*np.bincount(role, minlength=len(ROLES)), moved.sum(), restored.sum(), cold.sum()]
    moves = (handoffs, takeovers, moved.sum() - handoffs, records, unknown)
    return [int(count) for count in (*counts, *traffic, *moves)]


def _gains(rows: Rows, group: Group, active: Ints, standbys: Ints) -> list[int]:
    """The numbers of `OF_GAIN`, as `measures_of` counts them."""
    stateful, owner = rows.stateful, rows.owner
    goals = np.concatenate([np.where(stateful, active, NOBODY)[:, None], standbys], axis=1)
    is_new = goals != NOBODY
    held = np.zeros(len(owner), dtype=np.int64)
    for column in range(rows.copy_client.shape[1]):
        client = rows.copy_client[:, column]
        is_new &= goals != client[:, None]
        held += (client != NOBODY) & (client != owner)
    is_unowned = owner == NOBODY
    touched = (~is_unowned & (active != owner)).sum() + is_new.sum()
    counts = (held, (standbys != NOBODY).sum(axis=1))
    missing = [np.maximum(group.standbys - count, 0)[stateful].sum() for count in counts]
    return [int(count) for count in (touched, is_unowned.sum(), *missing)]


def _lacking(rows: Rows, index: Ints, client: Ints) -> tuple[int, int]:
    """Records that the copies of stateful tasks lack, where known; copies of which it is not."""
    ends = rows.ends[index]
    lag = ends
    for column in range(rows.copy_client.shape[1]):
        reported = rows.copy_lag[:, column][index]
        same = rows.copy_client[:, column][index] == client
        lag = np.where(same, np.maximum(reported, 0), lag)
    # As `records_to_restore`: nothing is lacking where there is nothing to restore.
    lag = np.where((lag == LAG_UNKNOWN) & (ends == 0), 0, lag)[rows.stateful[index]]
    is_known = lag != LAG_UNKNOWN
    return total_of(lag[is_known]), int((~is_known).sum())


def _restores(
    rows: Rows, group: Group, index: Ints, client: Ints, is_active: Bools
) -> tuple[Bools, Bools]:
    """Bool, Bool: copies on clients without state; active tasks behind a caught-up copy."""
    hot, anywhere = group.is_caught_up(rows), group.starts_anywhere(rows)
    # As `moves_of`: the client that is caught up is another one.
    has_other = (rows.copy_client != NOBODY).sum(axis=1) < len(group.clients)
    has_hot = (anywhere & has_other) | hot.any(axis=1)
    found, is_hot = np.zeros(len(index), np.bool_), np.zeros(len(index), np.bool_)
    for column in range(rows.copy_client.shape[1]):
        same = rows.copy_client[:, column][index] == client
        found |= same
        is_hot |= same & hot[:, column][index]
    stateful = rows.stateful[index]
    is_hot |= anywhere[index] & ~found
    return stateful & ~found, stateful & is_active & ~is_hot & has_hot[index]
