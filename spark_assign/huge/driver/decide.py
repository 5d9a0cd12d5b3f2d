"""The sequence of decisions for a huge group: active tasks, standbys, warm-ups.

Each decision needs the counts of a pass. If the standbys do not depend on which tasks move, the
counts of the first pass are enough for active tasks and standbys. The caller runs the passes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from spark_assign.huge.driver.actives import ActivePlan, ChunkCounts, solve_actives
from spark_assign.huge.driver.copies import CopyPlan, predicted, solve_copies
from spark_assign.huge.driver.gain import GroupGain
from spark_assign.huge.group import Group
from spark_assign.huge.worker.actives import LOOSE, Taking
from spark_assign.huge.worker.chunk import Plans
from spark_assign.huge.worker.dealing import unpacked
from spark_assign.huge.worker.rows import Ints
from spark_assign.huge.worker.settle import KINDS, share_grants
from spark_assign.huge.worker.standbys import Pools

# With so many clients a task hardly ever moves to a client with its standby.
_MANY_CLIENTS = 1_000
# Kinds from here on are stalled warm-ups; no rebalance waits for them.
_STALLED = 32
# Runs a pass that counts what the plans do not decide yet.
Count = Callable[[Plans], pa.Table]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counted:
    """The result of a counting pass, chunks in the order of their first tasks.

    `running` is int [2, C]: the stateful tasks that each client runs, and all.
    """

    actives: tuple[ChunkCounts, ...]
    copies: tuple[ChunkCounts, ...]
    held: Ints
    warming: Ints
    running: Ints
    asked: Mapping[int, Ints]
    tasks: Ints
    marks: Mapping[int, int]
    wrong: int
    unsure: int


def counted(table: pa.Table, clients: int) -> Counted:
    """Read the result of a pass.

    Args:
        table: a row per chunk, in the schema `worker.chunk.COUNTED`.
        clients: C.
    """
    rows = sorted(table.to_pylist(), key=lambda row: (row["first"], row["chunk"]))
    actives, copies, asked = [], [], {}
    held, warming = np.zeros(clients, dtype=np.int64), np.zeros(clients, dtype=np.int64)
    running = np.zeros(2 * clients, dtype=np.int64)
    for row in rows:
        chunk = row["chunk"]
        keys, counts, free = (unpacked(row[name]) for name in ("cells", "counts", "free"))
        actives.append(ChunkCounts(chunk=chunk, keys=keys, counts=counts, free=free))
        names = ("copies", "copy_counts", "lacking")
        keys, counts, free = (unpacked(row[name]) for name in names)
        copies.append(ChunkCounts(chunk=chunk, keys=keys, counts=counts, free=free))
        held += unpacked(row["held"])
        warming += unpacked(row["warming"])
        running += unpacked(row["running"])
        asked[chunk] = unpacked(row["asked"])
    tasks = [unpacked(row["tasks"]).reshape(-1, 4) for row in rows]
    return Counted(
        actives=tuple(actives),
        copies=tuple(copies),
        held=held,
        warming=warming,
        running=running.reshape(2, clients),
        asked=asked,
        tasks=np.concatenate(tasks) if tasks else np.zeros((0, 4), dtype=np.int64),
        marks={row["chunk"]: row["mark"] for row in rows},
        wrong=sum(row["wrong"] for row in rows),
        unsure=sum(row["unsure"] for row in rows),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decided:
    """All decisions.

    Attributes:
        plans: for the last pass.
        actives, copies: the decisions in `plans`; no copies if no standbys are configured.
        tasks: number of tasks.
        followup: whether a probing rebalance is wanted while copies warm up.
        gain: how even the tasks are before and once settled.
    """

    plans: Plans
    actives: ActivePlan
    copies: CopyPlan | None
    tasks: int
    followup: bool
    gain: GroupGain


def decide(group: Group, pools: Pools, count: Count, check: Callable[[Counted], None]) -> Decided:
    """Decide where all tasks and copies go.

    Args:
        group: the group.
        pools: its pools of copies.
        count: runs a pass.
        check: validates the first counts; raises if a task is invalid.
    """
    clients = len(group.clients)
    first = counted(count(Plans()), clients)
    check(first)
    actives = solve_actives(group, first.actives)
    taking = _taking(first, actives)
    if taking is not None:
        first = counted(count(Plans(taking=taking)), clients)
        actives = solve_actives(group, first.actives)
    load = actives.stateful + actives.stateless
    plans = Plans(actives=actives.dealing, load=load, taking=taking, marks=first.marks)
    copies: CopyPlan | None = None
    if group.standbys:
        copies = _copies(group, pools, count, first=first, actives=actives, plans=plans)
        plans = replace(plans, copies=copies.layers)
    followup = False
    if group.strategy == "high_availability":
        plans, followup = _grants(group, count, plans)
    total = int(sum(chunk.counts.sum() + chunk.free.sum() for chunk in first.actives))
    gain = GroupGain.of(
        group.capacity, first.running, total, stateful=actives.stateful, stateless=actives.stateless
    )
    return Decided(
        plans=plans, actives=actives, copies=copies, tasks=total, followup=followup, gain=gain
    )


def _taking(first: Counted, actives: ActivePlan) -> Taking | None:
    """Which clients take over tasks that warm up on them; None if no client must give up tasks."""
    excess = np.maximum(actives.homes - actives.stateful, 0)
    has_space = actives.stateful > actives.homes
    if not (np.minimum(first.warming, excess).any() and has_space.any()):
        return None
    return Taking(has_space=has_space, share=excess / np.maximum(first.warming, 1))


def _copies(
    group: Group,
    pools: Pools,
    count: Count,
    *,
    first: Counted,
    actives: ActivePlan,
    plans: Plans,
) -> CopyPlan:
    clients, load = len(group.clients), actives.stateful + actives.stateless
    is_known = (
        actives.is_sure
        and not group.spread.is_needed
        and not first.unsure
        and (not actives.moved or clients >= _MANY_CLIENTS)
    )
    if is_known:
        loose = _loose(group, first.actives, actives)
        chunks, held = predicted(pools, clients, first.copies, loose, first.held)
        return solve_copies(group, pools, chunks, held, load)
    again = counted(count(replace(plans, load=None)), clients)
    return solve_copies(group, pools, again.copies, again.held, load)


def _grants(group: Group, count: Count, plans: Plans) -> tuple[Plans, bool]:
    """Add the warm-ups within the budget; and whether a rebalance must wait for copies."""
    ready = plans if plans.copies is not None else replace(plans, copies=())
    asked = counted(count(ready), len(group.clients)).asked
    kinds = {chunk: counts[:KINDS] for chunk, counts in asked.items()}
    grants = share_grants(kinds, group.config.max_warmup_replicas)
    waits = any(counts[:_STALLED].any() for counts in grants.values())
    waits = waits or any(counts[KINDS] for counts in asked.values())
    return replace(ready, grants=grants), waits


def _loose(group: Group, chunks: tuple[ChunkCounts, ...], actives: ActivePlan) -> dict[int, Ints]:
    """Chunk -> int [moves]: the clients that tasks leave which lack one standby."""
    clients, pools = len(group.clients), 2 * group.pools
    result = {}
    for chunk in chunks:
        leaving = actives.dealing.leaving[chunk.chunk]
        place = np.searchsorted(chunk.keys, leaving.cells)
        gone = chunk.counts[place] - leaving.mark
        is_loose = leaving.cells // (clients * pools) == LOOSE
        result[chunk.chunk] = np.repeat(leaving.cells % clients, gone * is_loose)
    return result
