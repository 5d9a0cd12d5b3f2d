"""Rack-aware placement of standbys, one *layer* at a time.

A layer has one standby of each task; all other standbys are fixed meanwhile. A standby may move to
any client without a copy of the task, as long as the copies stay as far apart as they were: on as
many values of the tag keys if keys are configured (KIP-708), else on as many racks. Clients with
the same rack and tag values form a *cell*, and copies with the same traffic and the same allowed
cells form a class, so a layer is a small transport problem. With one standby per task there is one
layer, and its optimum is the optimum. With more, layers are optimised in turns until none improves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from assignor.placement.racks.classes import decode
from assignor.placement.racks.graph import FORBIDDEN, Transport, solve_transport
from assignor.placement.state import BoolArray, GroupState, IntArray

# With more cells than this, copies only move between racks, never between tag values.
_MANY_CELLS = 64
# Up to this many arcs, a layer is solved client by client if the solution by class is not optimal.
_EXACT_ARCS = 12_000
# With several standbys per task: ways to divide them into layers (cuts), the number of standbys
# above which only one cut is used, and most turns of each layer.
_CUTS = 4
_MANY_COPIES = 10_000
_MANY_TURNS = 6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copies:
    """The data that all layers share.

    Attributes:
        task: int [P], the task of each standby that may move; ascending.
        weight: int [P, R], cost of its changelog traffic in each rack.
        class_of: int [P], its class: equal for equal rows of `weight`.
        rack_of: int [C], the rack of each client.
        cell_of: int [C], the cell of each client.
        values: int [Q, V], values of each cell in which copies should differ.
        overlap: cost of a copy on a client without state.
        state_at: int [N], task x C + client of every copy with state, ascending.
        states: int [T], clients with state of each task, without the client of its active.
        can_hold: bool [C], whether the client takes part.
    """

    task: IntArray
    weight: IntArray
    class_of: IntArray
    rack_of: IntArray
    cell_of: IntArray
    values: IntArray
    overlap: int
    state_at: IntArray
    states: IntArray
    can_hold: BoolArray

    def holds_state(self, rows: IntArray, client: IntArray) -> BoolArray:
        """Bool [rows]: whether each client (int [rows]) has state of the row's task."""
        return np.isin(self.task[rows] * len(self.cell_of) + client, self.state_at)

    def cost(self, rows: IntArray, client: IntArray) -> int:
        """Cost of traffic and missing state with the rows on these clients, int [rows]."""
        traffic = int(self.weight[rows, self.rack_of[client]].sum())
        return traffic + self.overlap * int((~self.holds_state(rows, client)).sum())


def cells_of(
    state: GroupState, rack_of: IntArray, *, spread_racks: bool
) -> tuple[IntArray, IntArray]:
    """The cell of each client, int [C], and the values in which copies should differ, int [Q, V].

    The values are those of the tag keys; without keys the rack, if `spread_racks`.
    """
    keys = state.config.rack_aware_assignment_tags
    columns = [rack_of]
    for key in keys:
        values = [dict(tags).get(key) for tags in state.tags]
        number = {
            v: i for i, v in enumerate(sorted(set(values), key=lambda v: (v is None, v or "")))
        }
        columns.append(np.array([number[value] for value in values], dtype=np.int64))
    table, cell_of = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    kept = table[:, 1:] if keys else table[:, : 1 if spread_racks else 0]
    return cell_of.reshape(-1).astype(np.int64), kept.astype(np.int64)


def improve(copies: Copies, client: IntArray, others: Sequence[Sequence[int]]) -> IntArray:
    """Int [P]: clients for the standbys at the same or less cost; every client keeps its count.

    Args:
        copies: the standbys.
        client: int [P], the present client of each.
        others: for each, clients that hold the task and do not move: the active one first.
    """
    client = client.copy()
    mates: dict[int, list[int]] = {}
    for row, task in enumerate(copies.task.tolist()):
        mates.setdefault(task, []).append(row)
    layers = max(map(len, mates.values()), default=0)
    unchanged, turn = 0, 0
    # With several layers, one cut may find an improvement that another does not.
    cuts = 1 if layers == 1 or len(client) > _MANY_COPIES else _CUTS
    wanted = layers * cuts
    least = int(copies.weight.min(axis=1).sum())
    while unchanged < wanted and turn < _MANY_TURNS * wanted:
        if copies.cost(np.arange(len(client)), client) == least:
            break
        rows = _layer(copies, client, list(mates.values()), turn // layers % cuts, turn % layers)
        now = client.tolist()
        held = [
            [*others[row], *(now[mate] for mate in mates[int(copies.task[row])] if mate != row)]
            for row in rows.tolist()
        ]
        better = _improve_layer(copies, rows, client[rows], held)
        unchanged += 1
        if better is not None:
            client[rows] = better
            unchanged = 0 if layers > 1 else 1
        turn += 1
    return client


def _layer(
    copies: Copies, client: IntArray, mates: list[list[int]], cut: int, number: int
) -> IntArray:
    """Int [L], the rows of one layer: one standby of each task.

    Cuts differ, so that any two standbys are in one layer in some cut. Cut 0 sorts the standbys of
    each task by cost, so that expensive ones are in the same layer.
    """
    if cut == 0:
        cost = copies.weight[np.arange(len(client)), copies.rack_of[client]].tolist()
        ranked = [sorted(rows, key=lambda row: (-cost[row], row)) for rows in mates]
        return np.array([rows[number] for rows in ranked if number < len(rows)], dtype=np.int64)
    picked = []
    for place, rows in enumerate(mates):
        at = (number + (place >> (cut - 1))) % len(rows)
        if number < len(rows):
            picked.append(rows[at])
    return np.array(picked, dtype=np.int64)


def _improve_layer(
    copies: Copies, rows: IntArray, client: IntArray, held: list[list[int]]
) -> IntArray | None:
    """Int [rows]: cheaper clients for one layer; None if none were found.

    Args:
        copies: the standbys.
        rows: int [L], the standbys of the layer.
        client: int [L], their present clients.
        held: for each, other clients that hold its task.
    """
    if not len(rows):
        return None
    allowed = _allowed_cells(copies, client, held)
    has_state = copies.holds_state(rows, client)
    keys = np.stack([copies.class_of[rows], has_state, *_columns(allowed)], axis=1)
    names, first, kind = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1).astype(np.int64)
    cells = len(copies.values)
    rack_of_cell = np.zeros(cells, dtype=np.int64)
    rack_of_cell[copies.cell_of] = copies.rack_of
    cost = copies.weight[rows[first]][:, rack_of_cell]
    cost = np.where(allowed[first], cost, FORBIDDEN)
    cell = copies.cell_of[client]
    now = np.bincount(kind * cells + cell, minlength=len(names) * cells)
    now = now.reshape(-1, cells).astype(np.int64)
    problem = Transport(start=now, cost=cost, kept=now, move=copies.overlap * names[:, 1])
    wanted = solve_transport(problem)
    placed = _without_clashes(decode(kind, cell, client, now, wanted), client, held, copies.cell_of)
    before = copies.cost(rows, client)
    after = before if placed is None else copies.cost(rows, placed)
    # By class, a moved copy never has state at its destination, and a copy without state is free
    # to move.
    bound = problem.total(wanted) + copies.overlap * int((~has_state).sum())
    is_settled = after == bound and not (copies.overlap and _finds_state(copies, rows, client))
    if not is_settled and len(rows) * int(copies.can_hold.sum()) <= _EXACT_ARCS:
        exact = _solve_clients(copies, rows, client, held, allowed)
        cheapest = copies.cost(rows, exact)
        if cheapest < after:
            placed, after = exact, cheapest
    return placed if after < before else None


def _finds_state(copies: Copies, rows: IntArray, client: IntArray) -> bool:
    """Whether a task of these rows has state on another client than `client`."""
    return bool((copies.states[copies.task[rows]] > copies.holds_state(rows, client)).any())


def _columns(allowed: BoolArray) -> list[IntArray]:
    """The columns of a boolean table packed into integers, 32 columns each."""
    words = [allowed[:, start : start + 32] for start in range(0, allowed.shape[1], 32)]
    return [(word @ (1 << np.arange(word.shape[1], dtype=np.int64))) for word in words]


def _allowed_cells(copies: Copies, client: IntArray, held: list[list[int]]) -> BoolArray:
    """Bool [rows, Q]: cells with a client that may hold the copy, with copies as far apart as now.

    Equal combinations of cells are computed once: there are few of them.
    """
    cells = len(copies.values)
    cell_of, can_hold = copies.cell_of.tolist(), copies.can_hold.tolist()
    sizes = np.bincount(copies.cell_of[copies.can_hold], minlength=cells)
    known: dict[tuple[int, tuple[int, ...], tuple[int, ...]], BoolArray] = {}
    rows = []
    for own, clients in zip(client.tolist(), held, strict=True):
        taken = tuple(sorted(cell_of[c] for c in clients if can_hold[c]))
        key = (cell_of[own], tuple(sorted(cell_of[c] for c in clients)), taken)
        if key not in known:
            known[key] = _allowed(copies.values, sizes, *key)
        rows.append(known[key])
    return np.array(rows, dtype=np.bool_).reshape(-1, cells)


def _allowed(
    values: IntArray, sizes: IntArray, own: int, others: tuple[int, ...], taken: tuple[int, ...]
) -> BoolArray:
    places = np.bincount(np.array(taken, dtype=np.int64), minlength=len(values))
    allowed: BoolArray = sizes > places
    gain = np.zeros(len(values), dtype=np.int64)
    for key in range(values.shape[1]):
        gain += ~np.isin(values[:, key], values[list(others), key])
    allowed &= gain >= gain[own]
    if len(values) > _MANY_CELLS:
        allowed &= (values == values[own]).all(axis=1)
    allowed[own] = True
    return allowed


def _without_clashes(
    placed: IntArray, client: IntArray, held: list[list[int]], cell_of: IntArray
) -> IntArray | None:
    """Clients in the same cells, but no client twice for a task; None if that is not found.

    A copy on a client that already holds its task is swapped with another one in the cell.
    """
    where = placed.tolist()
    clashing = [row for row, clients in enumerate(held) if where[row] in clients]
    if not clashing:
        return placed
    by_cell: dict[int, list[int]] = {}
    moved_first = sorted(range(len(where)), key=lambda row: (where[row] == int(client[row]), row))
    for row in moved_first:
        by_cell.setdefault(int(cell_of[where[row]]), []).append(row)
    for row in clashing:
        if where[row] not in held[row]:
            continue
        partner = next(
            (
                other
                for other in by_cell[int(cell_of[where[row]])]
                if where[other] not in held[row] and where[row] not in held[other]
            ),
            None,
        )
        if partner is None:
            return None
        where[row], where[partner] = where[partner], where[row]
    return np.array(where, dtype=np.int64)


def _solve_clients(
    copies: Copies, rows: IntArray, client: IntArray, held: list[list[int]], allowed: BoolArray
) -> IntArray:
    """Int [L]: the clients of one layer at the least cost; exact (network simplex)."""
    import networkx as nx  # noqa: PLC0415 a quarter of a second, for small groups only

    graph: Any = nx.DiGraph()
    width, known = len(copies.cell_of), frozenset(copies.state_at.tolist())
    quota = np.bincount(client, minlength=width).tolist()
    for number, count in enumerate(quota):
        if count:
            graph.add_node(("client", number), demand=count)
    for place, row in enumerate(rows.tolist()):
        graph.add_node(("copy", place), demand=-1)
        task = int(copies.task[row])
        for number, count in enumerate(quota):
            if not count or number in held[place] or not allowed[place, copies.cell_of[number]]:
                continue
            cost = int(copies.weight[row, copies.rack_of[number]])
            cost += 0 if task * width + number in known else copies.overlap
            graph.add_edge(("copy", place), ("client", number), weight=cost, capacity=1)
    _, flows = nx.network_simplex(graph)
    placed = client.copy()
    for place in range(len(rows)):
        placed[place] = next(end[1] for end, n in flows[("copy", place)].items() if n)
    return placed
