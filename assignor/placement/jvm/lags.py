"""The lag of each client, in Kafka's numbers and order.

Running is -2 and unknown is -3, compared as plain numbers: a client with an unknown lag counts as
*nearest*, but never as caught up. This is Kafka's behaviour, kept on purpose.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.state import LAG_RUNNING, LAG_UNKNOWN, GroupState

_RUNNING, _UNKNOWN = -2, -3
_UNBOUNDED = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaLags:
    """Lags of all clients, stored only for reported copies.

    Attributes:
        by_task: task -> rank -> lag of a reported copy.
        ends: for each task, the lag of a client without a copy.
        acceptable: acceptable.recovery.lag.
        count: number of clients.
    """

    by_task: dict[int, dict[int, int]]
    ends: list[int]
    acceptable: int
    count: int

    @classmethod
    def of(cls, state: GroupState, group: KafkaGroup) -> "KafkaLags":
        """The lags of the reported copies of the clients in `group`."""
        rank_by_client = {client: rank for rank, client in enumerate(group.clients)}
        words = {LAG_RUNNING: _RUNNING, LAG_UNKNOWN: _UNKNOWN}
        by_task: dict[int, dict[int, int]] = {}
        rows = zip(
            state.copy_task().tolist(),
            state.copy_client.tolist(),
            state.copy_lag.tolist(),
            strict=True,
        )
        for task, client, lag in rows:
            if client in rank_by_client:
                by_task.setdefault(task, {})[rank_by_client[client]] = words.get(lag, lag)
        return cls(
            by_task=by_task,
            ends=state.end_offset_sums.tolist(),
            acceptable=state.config.acceptable_recovery_lag,
            count=len(group.clients),
        )

    def of_client(self, task: int, rank: int) -> int:
        """The client's lag of the task in records; -2 running, -3 unknown."""
        return self.by_task.get(task, {}).get(rank, self.ends[task])

    def _is_near(self, lag: int) -> bool:
        return lag == _RUNNING or self.acceptable == _UNBOUNDED or 0 <= lag <= self.acceptable

    def caught_up(self, task: int) -> list[int]:
        """Ranks of the clients that are caught up on the task, ascending."""
        copies = self.by_task.get(task, {})
        if self._is_near(self.ends[task]):
            return [r for r in range(self.count) if self._is_near(self.of_client(task, r))]
        return sorted(rank for rank, lag in copies.items() if self._is_near(lag))

    def is_outdone(self, task: int, rank: int) -> bool:
        """Whether the client is not caught up and another one has a smaller lag."""
        lag = self.of_client(task, rank)
        if self._is_near(lag):
            return False
        copies = self.by_task.get(task, {})
        lowest = min(copies.values(), default=self.ends[task])
        if len(copies) < self.count:
            lowest = min(lowest, self.ends[task])
        return lowest < lag

    def nearer(self, task: int, destination: int, is_fit: Callable[[int], bool]) -> int | None:
        """The first fit client by lag, then rank; None if the destination comes before it."""
        for rank in self._by_lag(task):
            if rank == destination:
                return None
            if is_fit(rank):
                return rank
        return None

    def _by_lag(self, task: int) -> Iterator[int]:
        """All ranks by (lag, rank); only clients with a copy are sorted."""
        copies, end = self.by_task.get(task, {}), self.ends[task]
        ordered = sorted((lag, rank) for rank, lag in copies.items() if lag != end)
        for lag, rank in ordered:
            if lag < end:
                yield rank
        for rank in range(self.count):
            if copies.get(rank, end) == end:
                yield rank
        for lag, rank in ordered:
            if lag > end:
                yield rank
