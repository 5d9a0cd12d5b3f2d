"""Kafka's starting flow for `balance_subtopology`: shortest augmenting paths, breadth first.

The tasks of a subtopology may use at most its share of a client, and the given placement may exceed
that. So Kafka discards it and starts without any.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from assignor.placement.jvm.flow import Shares
from assignor.placement.state import IntArray

_TASK, _CLIENT, _TOTAL = range(3)
Node = tuple[int, int]


def first_flow(block_of: IntArray, quota: IntArray) -> tuple[IntArray, Shares]:
    """The feasible placement with which Kafka starts.

    Args:
        block_of: int [M], subtopology of each task as 0, 1, ...; ascending.
        quota: int [C], tasks of each client; sum M.

    Returns:
        int [M], the client of each task; and the shares, with `held` set.
    """
    blocks, clients = int(block_of[-1]) + 1, len(quota)
    sizes = np.bincount(block_of, minlength=blocks)
    # In floating point and in Java's order of operations: otherwise the ceiling may differ.
    share = quota[None, :] * 1.0 / len(block_of) * sizes[:, None]
    limit = np.ceil(share).astype(np.int64)
    shares = Shares(block_of=block_of, limit=limit, held=np.zeros_like(limit))
    filling = _Filling(
        waiting=[
            list(range(e - n, e))
            for n, e in zip(sizes.tolist(), np.cumsum(sizes).tolist(), strict=True)
        ],
        holder=[-1] * len(block_of),
        block_of=block_of.tolist(),
        free=quota.tolist(),
        spare=limit.tolist(),
        clients=clients,
    )
    for waiting in filling.waiting:
        waiting.reverse()
    for _ in range(len(block_of)):
        if not filling.shortest():
            filling.detour()
    holder = np.array(filling.holder, dtype=np.int64)
    np.add.at(shares.held, (block_of, holder), 1)
    return holder, shares


@dataclass(slots=True, kw_only=True)
class _Filling:
    """A placement that is filled task by task.

    Attributes:
        waiting: for each subtopology, its tasks without a client, last first.
        holder: the client of each task, or -1.
        block_of: the subtopology of each task.
        free: tasks that each client may still take.
        spare: for each subtopology, its tasks that each client may still take.
        clients: number of clients.
    """

    waiting: list[list[int]]
    holder: list[int]
    block_of: list[int]
    free: list[int]
    spare: list[list[int]]
    clients: int

    def shortest(self) -> bool:
        """Place a waiting task directly, as breadth-first search would; whether one was placed."""
        for spare, waiting in zip(self.spare, self.waiting, strict=True):
            if not waiting:
                continue
            for client in range(self.clients):
                if spare[client] > 0 and self.free[client] > 0:
                    self.holder[waiting.pop()] = client
                    spare[client] -= 1
                    self.free[client] -= 1
                    return True
        return False

    def detour(self) -> None:
        """Place a waiting task by the shortest path that moves other tasks.

        Raises:
            RuntimeError: there is no such path.
        """
        parents: dict[Node, Node | None] = {}
        queue: deque[Node] = deque()
        for task in sorted(own[-1 - k] for own in self.waiting for k in range(len(own))):
            parents[_TASK, task] = None
            queue.append((_TASK, task))
        while queue:
            node = queue.popleft()
            for following in self._edges(node):
                if following in parents:
                    continue
                parents[following] = node
                queue.append(following)
            if node[0] == _TOTAL and self.free[node[1]] > 0:
                self._push(node, parents)
                return
        raise RuntimeError("shares of subtopologies leave a task without a client")

    def _edges(self, node: Node) -> Iterator[Node]:
        """The ends of the node's residual edges, by number."""
        kind, number = node
        if kind == _TASK:
            base = self.block_of[number] * self.clients
            yield from (
                (_CLIENT, base + c) for c in range(self.clients) if c != self.holder[number]
            )
        elif kind == _CLIENT:
            block, client = divmod(number, self.clients)
            for task, holder in enumerate(self.holder):
                if holder == client and self.block_of[task] == block:
                    yield (_TASK, task)
            if self.spare[block][client] > 0:
                yield (_TOTAL, client)
        else:
            for block in range(len(self.spare)):
                if self._holds(block, number):
                    yield (_CLIENT, block * self.clients + number)

    def _holds(self, block: int, client: int) -> bool:
        return any(
            holder == client and self.block_of[task] == block
            for task, holder in enumerate(self.holder)
        )

    def _push(self, end: Node, parents: dict[Node, Node | None]) -> None:
        path = [end]
        while (parent := parents[path[-1]]) is not None:
            path.append(parent)
        path.reverse()
        self.waiting[self.block_of[path[0][1]]].remove(path[0][1])
        for start, following in pairwise(path):
            if start[0] == _TASK:
                self.holder[start[1]] = following[1] % self.clients
            elif (start[0], following[0]) == (_CLIENT, _TOTAL):
                block, client = divmod(start[1], self.clients)
                self.spare[block][client] -= 1
            elif (start[0], following[0]) == (_TOTAL, _CLIENT):
                block, client = divmod(following[1], self.clients)
                self.spare[block][client] += 1
        self.free[end[1]] -= 1
