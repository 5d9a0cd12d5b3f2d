"""What the last pass writes: a row for every copy of every task, and what it costs."""

import numpy as np
import pyarrow as pa

from assignor import NOBODY
from spark_assign.collapse_group import Group
from spark_assign.collapse_rows import Bools, Ints, Rows

PLACED = pa.schema(
    [
        ("subtopology", pa.int32()),
        ("partition", pa.int32()),
        ("client", pa.string()),
        ("role", pa.string()),
        ("moved", pa.bool_()),
        ("traffic", pa.int32()),
        ("restored", pa.bool_()),
        ("cold", pa.bool_()),
    ]
)
ROLES = pa.array(["active", "standby", "warmup"])


def answer(
    rows: Rows, group: Group, names: pa.Array, *, active: Ints, placed: Ints, warm: Ints
) -> pa.RecordBatch:
    """A batch in the schema `PLACED`; what each copy costs is told on the way.

    Args:
        rows: the tasks.
        group: the group.
        names: ids of the clients.
        active: int [B], who runs each task.
        placed: int [B, N], standbys, NOBODY where there is none.
        warm: int [B, M], warm-ups, likewise.
    """
    size = len(active)
    line, column = np.nonzero(placed != NOBODY)
    warm_line, warm_column = np.nonzero(warm != NOBODY)
    index = np.concatenate([np.arange(size), line, warm_line])
    client = np.concatenate([active, placed[line, column], warm[warm_line, warm_column]])
    role = np.repeat([0, 1, 2], [size, len(line), len(warm_line)])
    order = np.argsort(index * 3 + role, kind="stable")
    index, client, role = index[order], client[order], role[order]
    is_active = role == 0
    moved = is_active & (rows.owner[index] != NOBODY) & (client != rows.owner[index])
    restored, cold = _restores(rows, group, index, client, is_active)
    traffic = np.zeros(len(index), dtype=np.int32)
    if group.has_rack_costs:
        sources = group.sources.weight[group.sources.find(rows.source_class)[index]]
        logs = group.changelogs.weight[group.changelogs.find(rows.changelog_class)[index]]
        both = np.where(is_active[:, None], sources, logs)
        traffic = both[np.arange(len(index)), group.rack_of[client]].astype(np.int32)
    columns = [
        pa.array(rows.subtopology[index].astype(np.int32)),
        pa.array(rows.partition[index].astype(np.int32)),
        names.take(pa.array(client)),
        ROLES.take(pa.array(role)),
        pa.array(moved),
        pa.array(traffic),
        pa.array(restored),
        pa.array(cold),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED)


def _restores(
    rows: Rows, group: Group, index: Ints, client: Ints, is_active: Bools
) -> tuple[Bools, Bools]:
    """Whether a copy is placed where no state was, and an active one where it is behind others."""
    hot, anywhere = group.is_caught_up(rows), group.starts_anywhere(rows)
    has_hot = anywhere | hot.any(axis=1)
    found, is_hot = np.zeros(len(index), np.bool_), np.zeros(len(index), np.bool_)
    for column in range(rows.copy_client.shape[1]):
        same = rows.copy_client[:, column][index] == client
        found |= same
        is_hot |= same & hot[:, column][index]
    stateful = rows.stateful[index]
    is_hot |= anywhere[index] & ~found
    return stateful & ~found, stateful & is_active & ~is_hot & has_hot[index]
