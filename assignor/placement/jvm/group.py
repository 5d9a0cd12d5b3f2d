"""The tasks assigned to each client so far, with clients in Java's order.

Java compares UUIDs as two *signed* 64-bit halves, so 8000... comes before 0000...; every loop and
every tie in Kafka's assignor follows that order. A client's index in it is its *rank*.
"""

from dataclasses import dataclass
from uuid import UUID

from assignor.placement.state import GroupState

_SIGN = 1 << 63


def java_order(process_id: str) -> tuple[int, int, int, str]:
    """Sort key of a process id: Java's order of UUIDs; other ids come last, sorted as text.

    >>> ids = ["00000000-0000-0000-0000-000000000000", "80000000-0000-0000-0000-000000000000"]
    >>> sorted(ids, key=java_order)[0][0]
    '8'
    """
    try:
        number = UUID(process_id).int
    except ValueError:
        return (1, 0, 0, process_id)
    high, low = number >> 64, number & (2 * _SIGN - 1)
    return (0, high ^ _SIGN, low ^ _SIGN, "")


@dataclass(slots=True, kw_only=True)
class KafkaGroup:
    """The tasks of the clients; all lists are indexed by rank.

    Attributes:
        clients: index of each client in the group state.
        threads: threads of each client, above 0.
        tags: all tags of each client (KIP-708).
        active, standby: tasks assigned so far, as indices in the group state.
    """

    clients: list[int]
    threads: list[int]
    tags: list[dict[str, str]]
    active: list[set[int]]
    standby: list[set[int]]

    @classmethod
    def of(cls, state: GroupState) -> "KafkaGroup":
        """The clients with threads, without tasks."""
        capacity = state.capacity().tolist()
        able = [client for client, threads in enumerate(capacity) if threads > 0]
        clients = sorted(able, key=lambda client: java_order(state.clients[client]))
        return cls(
            clients=clients,
            threads=[capacity[client] for client in clients],
            tags=[dict(state.tags[client]) for client in clients],
            active=[set() for _ in clients],
            standby=[set() for _ in clients],
        )

    def count(self, rank: int) -> int:
        """Number of tasks assigned to the client, active and standby."""
        return len(self.active[rank]) + len(self.standby[rank])

    def load(self, rank: int) -> float:
        """Number of tasks assigned to the client per thread."""
        return self.count(rank) / self.threads[rank]

    def has(self, rank: int, task: int) -> bool:
        """Whether the task is assigned to the client, as active or standby."""
        return task in self.active[rank] or task in self.standby[rank]

    def swap(self, task: int, *, standby: int, active: int) -> None:
        """Exchange active and standby of a task between its clients.

        Args:
            task: the task.
            standby: rank of the client with the standby; it becomes active.
            active: rank of the client with the active task; it becomes standby.
        """
        self.standby[standby].remove(task)
        self.active[standby].add(task)
        self.active[active].remove(task)
        self.standby[active].add(task)
