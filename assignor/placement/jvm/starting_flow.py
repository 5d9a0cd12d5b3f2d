"""Kafka's starting flow for `balance_subtopology`: shortest augmenting paths, breadth first.

Every subtopology may fill at most its share of a client, so the placement that comes in may not be
a legal start; Kafka throws it away and begins with nothing.
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
    """A feasible placement, the one that Kafka begins with.

    Args:
        block_of: int [M], subtopology of each task as 0, 1, ...; ascending.
        quota: int [C], tasks of each client; sum M.

    Returns:
        int [M], the client of each task, and the bounds with what is held.
    """
    blocks, clients = int(block_of[-1]) + 1, len(quota)
    sizes = np.bincount(block_of, minlength=blocks)
    # In floating point and in this order, as Java computes it: the ceiling may differ otherwise.
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
        room=quota.tolist(),
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
    """Tasks that wait (last first, by block), who holds the others, and the room that is left."""

    waiting: list[list[int]]
    holder: list[int]
    block_of: list[int]
    room: list[int]
    spare: list[list[int]]
    clients: int

    def shortest(self) -> bool:
        """Place a waiting task directly, where breadth-first search would; False if it cannot."""
        for spare, waiting in zip(self.spare, self.waiting, strict=True):
            if not waiting:
                continue
            for client in range(self.clients):
                if spare[client] > 0 and self.room[client] > 0:
                    self.holder[waiting.pop()] = client
                    spare[client] -= 1
                    self.room[client] -= 1
                    return True
        return False

    def detour(self) -> None:
        """Place a waiting task by moving others: the shortest path in full."""
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
            if node[0] == _TOTAL and self.room[node[1]] > 0:
                self._push(node, parents)
                return
        raise RuntimeError("shares of subtopologies leave a task without a client")

    def _edges(self, node: Node) -> Iterator[Node]:
        """Residual edges, by number of their end."""
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
        self.room[end[1]] -= 1
