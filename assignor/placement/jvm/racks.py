"""Kafka's rack-aware step (KIP-925): when it runs, its costs, and the order of its exchanges."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from assignor.placement.jvm.flow import Flow
from assignor.placement.jvm.group import KafkaGroup
from assignor.placement.jvm.starting_flow import first_flow
from assignor.placement.racks.traffic import traffic_of
from assignor.placement.state import GroupState, IntArray, RacksByTask

_TRAFFIC, _NON_OVERLAP = 10, 1
_STATELESS_TRAFFIC, _STATELESS_NON_OVERLAP = 1, 0
_ROUNDS = 4
CanMove = Callable[[int, int, int], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRacks:
    """The rack-aware step of one group.

    Attributes:
        state: the group.
        is_on: whether Kafka would run the step.
        warnings: the reason why not, if a strategy is configured.
        traffic_cost, non_overlap_cost: costs of stateful tasks.
    """

    state: GroupState
    is_on: bool
    warnings: tuple[str, ...]
    traffic_cost: int
    non_overlap_cost: int

    @classmethod
    def of(cls, state: GroupState, group: KafkaGroup) -> "KafkaRacks":
        """The step, on only if all racks are known, as in Kafka."""
        config = state.config
        traffic = config.rack_aware_assignment_traffic_cost
        overlap = config.rack_aware_assignment_non_overlap_cost
        reason = ""
        if config.rack_aware_assignment_strategy != "none":
            reason = _off(state, group)
        warnings = (f"no rack-aware step, as in Kafka: {reason}",) if reason else ()
        return cls(
            state=state,
            is_on=config.rack_aware_assignment_strategy != "none" and not reason,
            warnings=warnings,
            traffic_cost=_TRAFFIC if traffic is None else traffic,
            non_overlap_cost=_NON_OVERLAP if overlap is None else overlap,
        )

    def _traffic(
        self, group: KafkaGroup, racks: RacksByTask | None, tasks: Sequence[int]
    ) -> IntArray:
        """Int [M, C]: cross-rack partitions of each task on each rank."""
        traffic = traffic_of(self.state, racks, tasks)
        columns = traffic.weight[:, traffic.rack_of[group.clients]]
        rows: IntArray = columns[traffic.class_of]
        return rows

    def optimize_active(
        self, group: KafkaGroup, tasks: Sequence[int], *, is_stateful: bool
    ) -> None:
        """Exchange actives so that they cost least; every client keeps its count of them.

        Args:
            group: the clients.
            tasks: the stateful or the stateless tasks, ascending.
            is_stateful: which; for stateless tasks a move costs nothing.
        """
        if not self.is_on or not len(tasks):
            return
        traffic, overlap = self.traffic_cost, self.non_overlap_cost
        if not is_stateful:
            traffic, overlap = _STATELESS_TRAFFIC, _STATELESS_NON_OVERLAP
        wanted = set(tasks)
        place = {task: row for row, task in enumerate(tasks)}
        holder = np.zeros(len(tasks), dtype=np.int64)
        for rank, held in enumerate(group.active):
            for task in held & wanted:
                holder[place[task]] = rank
        cost = traffic * self._traffic(group, self.state.partition_racks, tasks) + overlap
        cost[np.arange(len(tasks)), holder] -= overlap
        flow = Flow(cost=cost, holder=holder.copy())
        if self.state.config.rack_aware_assignment_strategy == "balance_subtopology":
            _, block_of = np.unique(self.state.subtopology[list(tasks)], return_inverse=True)
            quota = np.bincount(holder, minlength=len(group.clients)).astype(np.int64)
            flow.holder, flow.shares = first_flow(block_of.astype(np.int64), quota)
        flow.solve()
        for task, before, after in zip(tasks, holder.tolist(), flow.holder.tolist(), strict=True):
            group.active[before].remove(task)
            group.active[after].add(task)

    def optimize_standbys(self, group: KafkaGroup, can_move: CanMove) -> None:
        """Exchange standbys, between two clients of different racks at a time, in up to 4 rounds.

        Args:
            group: the clients.
            can_move: (source, destination, task) -> whether tags allow the move.
        """
        if not self.is_on:
            return
        tasks = np.flatnonzero(self.state.stateful).tolist()
        cost = self.traffic_cost * self._traffic(group, self.state.changelog_racks, tasks)
        row = {task: place for place, task in enumerate(tasks)}
        racks = [self.state.racks[client] for client in group.clients]
        pairs = [
            (rank, other)
            for rank in range(len(racks))
            for other in range(rank + 1, len(racks))
            if racks[rank] != racks[other]
        ]
        for _ in range(_ROUNDS):
            moved = False
            for rank, other in pairs:
                moved |= self._exchange(group, cost, row, (rank, other), can_move)
            if not moved:
                return

    def _exchange(
        self,
        group: KafkaGroup,
        cost: IntArray,
        row: dict[int, int],
        pair: tuple[int, int],
        can_move: CanMove,
    ) -> bool:
        rank, other = pair
        own_tasks = _movable(group, rank, other, can_move)
        other_tasks = _movable(group, other, rank, can_move)
        if not own_tasks or not other_tasks:
            return False
        tasks = sorted([*own_tasks, *other_tasks])
        own = set(own_tasks)
        holder = np.array([task not in own for task in tasks], dtype=np.int64)
        table = cost[[row[task] for task in tasks]][:, list(pair)] + self.non_overlap_cost
        table[np.arange(len(tasks)), holder] -= self.non_overlap_cost
        step = np.where(holder == 0, table[:, 1] - table[:, 0], table[:, 0] - table[:, 1])
        if step[holder == 0].min() + step[holder == 1].min() >= 0:
            return False
        flow = Flow(cost=table, holder=holder.copy())
        flow.solve()
        for task, before, after in zip(tasks, holder.tolist(), flow.holder.tolist(), strict=True):
            group.standby[pair[before]].remove(task)
            group.standby[pair[after]].add(task)
        return True


def _movable(group: KafkaGroup, source: int, destination: int, can_move: CanMove) -> list[int]:
    return sorted(
        task
        for task in group.standby[source]
        if not group.has(destination, task) and can_move(source, destination, task)
    )


def _off(state: GroupState, group: KafkaGroup) -> str:
    """The reason why Kafka would skip the step; empty if it would not."""
    lacking = [state.clients[client] for client in group.clients if state.racks[client] is None]
    if lacking:
        return f"client {lacking[0]} has no rack (client.rack); {len(lacking)} have none"
    if not _is_known(state.partition_racks):
        return "the replica racks of some source partitions are not known"
    if state.config.num_standby_replicas and not _is_known(state.changelog_racks):
        return "the replica racks of some changelog partitions are not known"
    return ""


def _is_known(racks: RacksByTask | None) -> bool:
    return racks is not None and all(all(partition for partition in task) for task in racks)
