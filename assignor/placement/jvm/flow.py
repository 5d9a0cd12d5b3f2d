"""Kafka's minimum-cost flow over tasks and clients (KIP-925): the same cycles, computed in columns.

Kafka finds *an* optimum by cancelling negative cycles. Which one depends on the order in which its
Bellman-Ford visits nodes and edges: source, tasks, clients, sink, each by number, in as many passes
as there are nodes. This module keeps that order. A pass over all edges of one kind is one array
operation. Edges of tasks that did not change in the last pass are skipped, since they cannot relax
anything. Sink and source arcs are saturated from the start and never carry an improvement.

With `balance_subtopology` a client has one node per subtopology, bounded by its share, and one more
node that bounds its total.
"""

from dataclasses import dataclass, field

import numpy as np

from assignor.placement.state import BoolArray, IntArray

_NOBODY = -1
_SOURCE, _TASK, _CLIENT, _TOTAL = range(4)
Node = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Shares:
    """Bounds of `balance_subtopology`; M tasks, S subtopologies, C clients.

    Attributes:
        block_of: int [M], the subtopology of each task as 0, 1, ...; ascending.
        limit: int [S, C], tasks of the subtopology that the client may hold.
        held: int [S, C], tasks of the subtopology that the client holds; changed.
    """

    block_of: IntArray
    limit: IntArray
    held: IntArray


@dataclass(slots=True, kw_only=True)
class Flow:
    """A feasible placement that `solve` improves to the optimum.

    Attributes:
        cost: int [M, C], cost of each task on each client.
        holder: int [M], the client of each task; changed.
        shares: bounds of subtopologies, or None for `min_traffic`.
    """

    cost: IntArray
    holder: IntArray
    shares: Shares | None = None
    _distances: "_Distances" = field(init=False, repr=False)

    def solve(self) -> None:
        """Cancel negative cycles until there are none."""
        while (cycle := self._negative_cycle()) is not None:
            self._cancel(cycle)

    def _blocks(self) -> int:
        return 1 if self.shares is None else len(self.shares.limit)

    def _negative_cycle(self) -> list[Node] | None:
        """The nodes of the cycle that Kafka would find, each followed by its parent; or None."""
        tasks, clients = self.cost.shape
        blocks = self._blocks()
        d = self._distances = _Distances.zero(tasks, blocks, clients)
        totals = 0 if self.shares is None else clients
        # Like Kafka, count two extra nodes: the sink, and the start that reaches all others.
        passes = tasks + blocks * clients + totals + 3
        changed = np.arange(tasks)
        for _ in range(passes - 1):
            moved = self._relax_tasks(changed)
            changed, went_on = self._relax_clients()
            if not (moved or went_on or len(changed)):
                return None
        end = self._first_relaxed(changed)
        if end is None:
            return None
        seen: set[Node] = set()
        while end not in seen:
            seen.add(end)
            end = d.parent(end)
        cycle = [end]
        while (node := d.parent(cycle[-1])) != end:
            cycle.append(node)
        return cycle

    def _nodes(self, tasks: IntArray) -> IntArray:
        """Int [len(tasks)]: the first client node of each task's subtopology."""
        if self.shares is None:
            return np.zeros(len(tasks), dtype=np.int64)
        nodes: IntArray = self.shares.block_of[tasks] * self.cost.shape[1]
        return nodes

    def _offers(self, tasks: IntArray) -> IntArray:
        """Int [len(tasks), C]: distance of each client through each task that it does not hold."""
        offers = self._distances.task[tasks, None] + self.cost[tasks]
        offers[np.arange(len(tasks)), self.holder[tasks]] = np.iinfo(np.int64).max
        return offers

    def _relax_tasks(self, tasks: IntArray) -> bool:
        """Relax the edges from tasks to the source and to clients; whether a client got nearer."""
        if not len(tasks):
            return False
        d, clients = self._distances, self.cost.shape[1]
        first = int(np.argmin(d.task[tasks]))
        if d.task[tasks[first]] < d.source:
            d.source, d.source_parent = int(d.task[tasks[first]]), int(tasks[first])
        moved = False
        offers, start = self._offers(tasks), self._nodes(tasks)
        for base in np.unique(start).tolist():
            own = np.flatnonzero(start == base)
            best = np.argmin(offers[own], axis=0)
            value = offers[own][best, np.arange(clients)]
            better = np.flatnonzero(value < d.client[base : base + clients])
            d.client[base + better] = value[better]
            d.client_parent[base + better] = tasks[own[best[better]]]
            moved |= bool(len(better))
        return moved

    def _relax_clients(self) -> tuple[IntArray, bool]:
        """Relax the edges from clients to their tasks and totals.

        Returns:
            The tasks that got nearer, and whether a total did.
        """
        d, tasks = self._distances, np.arange(len(self.holder))
        node = self._nodes(tasks) + self.holder
        value = d.client[node] - self.cost[tasks, self.holder]
        changed = np.flatnonzero(value < d.task)
        d.task[changed] = value[changed]
        d.task_parent[changed] = node[changed]
        went_on = False
        if self.shares is not None:
            went_on = self._relax_totals(self.shares)
        return changed, went_on

    def _relax_totals(self, shares: Shares) -> bool:
        d, clients = self._distances, self.cost.shape[1]
        table = d.client.reshape(-1, clients)
        offers = np.where(shares.held < shares.limit, table, np.iinfo(np.int64).max)
        best = np.argmin(offers, axis=0)
        value = offers[best, np.arange(clients)]
        better = np.flatnonzero(value < d.total)
        d.total[better] = value[better]
        d.total_parent[better] = best[better] * clients + better
        back: BoolArray = (shares.held > 0) & (d.total[None, :] < table)
        block, client = np.nonzero(back)
        table[block, client] = d.total[client]
        d.client_parent[block * clients + client] = -2 - client
        return bool(len(better) or len(block))

    def _first_relaxed(self, changed: IntArray) -> Node | None:
        """The first node that one more pass would bring nearer, its parent now set; or None."""
        d, clients = self._distances, self.cost.shape[1]
        for task in changed.tolist():
            if d.task[task] < d.source:
                d.source_parent = task
                return (_SOURCE, 0)
            row = self._offers(np.array([task]))[0]
            base = int(self._nodes(np.array([task]))[0])
            nearer = np.flatnonzero(row < d.client[base : base + clients])
            if len(nearer):
                node = base + int(nearer[0])
                d.client_parent[node] = task
                return (_CLIENT, node)
        return None if self.shares is None else self._first_beyond_tasks(self.shares)

    def _first_beyond_tasks(self, shares: Shares) -> Node | None:
        """The result of `_first_relaxed` for the edges of clients, then of totals."""
        d, clients = self._distances, self.cost.shape[1]
        tasks = np.arange(len(self.holder))
        node = self._nodes(tasks) + self.holder
        nearer = d.client[node] - self.cost[tasks, self.holder] < d.task
        table = d.client.reshape(-1, clients)
        onward = (shares.held < shares.limit) & (table < d.total[None, :])
        first = [*node[nearer].tolist(), *np.flatnonzero(onward.reshape(-1)).tolist()]
        if first:
            at = min(first)
            own = np.flatnonzero(nearer & (node == at))
            if len(own):
                d.task_parent[own[0]] = at
                return (_TASK, int(own[0]))
            d.total_parent[at % clients] = at
            return (_TOTAL, at % clients)
        block, client = np.nonzero((shares.held > 0) & (d.total[None, :] < table))
        if not len(client):
            return None
        which = int(np.lexsort((block, client))[0])
        at = int(block[which]) * clients + int(client[which])
        d.client_parent[at] = -2 - int(client[which])
        return (_CLIENT, at)

    def _cancel(self, cycle: list[Node]) -> None:
        """Push one unit of flow round the cycle: its tasks move to other clients."""
        clients = self.cost.shape[1]
        edges = [
            (parent, child) for child, parent in zip(cycle, cycle[1:] + cycle[:1], strict=True)
        ]
        moves = []
        for (kind, start), (other, end) in edges:
            if (kind, other) == (_TASK, _CLIENT):
                moves.append((start, end))
        before = self._nodes(np.arange(len(self.holder))) + self.holder
        for task, node in moves:
            if self.shares is not None:
                block = node // clients
                self.shares.held[block, int(before[task]) % clients] -= 1
                self.shares.held[block, node % clients] += 1
            self.holder[task] = node % clients


@dataclass(slots=True, kw_only=True)
class _Distances:
    """Distances and parents of the nodes in one search.

    A client's parent below -1 is the total node of client -2 - parent.
    """

    source: int = 0
    source_parent: int = _NOBODY
    task: IntArray
    task_parent: IntArray
    client: IntArray
    client_parent: IntArray
    total: IntArray
    total_parent: IntArray

    @classmethod
    def zero(cls, tasks: int, blocks: int, clients: int) -> "_Distances":
        def column(size: int, value: int) -> IntArray:
            return np.full(size, value, dtype=np.int64)

        return cls(
            task=column(tasks, 0),
            task_parent=column(tasks, _NOBODY),
            client=column(blocks * clients, 0),
            client_parent=column(blocks * clients, _NOBODY),
            total=column(clients, 0),
            total_parent=column(clients, _NOBODY),
        )

    def parent(self, node: Node) -> Node:
        kind, number = node
        if kind == _SOURCE:
            return (_TASK, self.source_parent)
        if kind == _TASK:
            return (_CLIENT, int(self.task_parent[number]))
        if kind == _TOTAL:
            return (_CLIENT, int(self.total_parent[number]))
        parent = int(self.client_parent[number])
        return (_TOTAL, -2 - parent) if parent < _NOBODY else (_TASK, parent)
