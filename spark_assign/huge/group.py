"""A huge group without its tasks: clients, settings, classes of racks; shared with all workers.

Nothing here grows with the number of tasks. Clients are numbered in the order of their ids. A
*class* stands for lists of replica racks with equal costs. Tasks of a *pool* may be exchanged for
each other: they have the same subtopology, the same class, or both.
"""

from dataclasses import dataclass

import numpy as np

from assignor import AssignmentConfig, ClientInput, GroupState, group_state
from assignor.placement import NOBODY
from assignor.placement.standbys import Spread
from encoding import TaskId
from spark_assign.huge.worker.rows import Bools, Ints, Names, Rows

STRATEGIES = ("high_availability", "sticky")
# Kafka's defaults, by strategy: traffic cost, non-overlap cost.
RACK_COSTS = {"high_availability": (10, 1), "sticky": (1, 10)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes:
    """Classes of rack lists; lists of one class cost the same in every rack.

    Attributes:
        names: finds the number of a list by its hash.
        class_of: int [lists], the class of each list.
        weight: int [K, R], partitions of a task of the class without a replica in the rack.
    """

    names: Names
    class_of: Ints
    weight: Ints

    def find(self, hashes: Ints) -> Ints:
        """Int [B]: the class of each task; a null list has class 0, which costs 0."""
        found = self.names.find(hashes)
        known: Ints = np.where(found >= 0, self.class_of[found], 0)
        return known


NO_CLASSES = Classes(
    names=Names.of([]), class_of=np.zeros(1, dtype=np.int64), weight=np.zeros((1, 1), np.int64)
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """A group without its tasks.

    Attributes:
        clients: C process ids, sorted.
        names: finds a client's number by the hash of its id.
        capacity: int [C], threads; all ones when no client has any.
        rack_of: int [C], the rack of each client; zeros without rack costs.
        lacks_rack: bool [racks], True for the rack of clients that name none.
        config: the settings, rack costs filled in.
        strategy: sticky or high_availability.
        spread: rules that keep the copies of a task apart.
        cells: int [C], the cell of each client in `spread`.
        buckets: subtopologies with equal number modulo `buckets` are balanced together.
        sources, changelogs: classes of the lists of racks.
    """

    clients: tuple[str, ...]
    names: Names
    capacity: Ints
    rack_of: Ints
    lacks_rack: Bools
    config: AssignmentConfig
    strategy: str
    spread: Spread
    cells: Ints
    buckets: int
    sources: Classes = NO_CLASSES
    changelogs: Classes = NO_CLASSES

    @property
    def has_rack_costs(self) -> bool:
        """Whether reading from another rack has a cost."""
        return len(self.lacks_rack) > 1

    @property
    def is_balanced(self) -> bool:
        """Whether each subtopology is to stay balanced under rack costs."""
        return self.config.rack_aware_assignment_strategy == "balance_subtopology"

    @property
    def standbys(self) -> int:
        """Standbys of a task: as configured, or as many as there are other clients."""
        usable = int((self.capacity > 0).sum())
        return max(0, min(self.config.num_standby_replicas, usable - 1))

    @property
    def blocks(self) -> int:
        """Number of sets of pools with own quotas: one, or one per balanced subtopology."""
        return self.buckets if self.has_rack_costs and self.is_balanced else 1

    @property
    def pools(self) -> int:
        """Number of pools of stateful tasks; as many pools of stateless tasks follow them."""
        if not self.has_rack_costs:
            return self.buckets
        return self.blocks * len(self.sources.weight)

    def pool_of(self, rows: Rows) -> Ints:
        """Int [B]: the pool of each task."""
        number = rows.subtopology % self.buckets
        if self.has_rack_costs:
            block = number if self.is_balanced else np.zeros_like(number)
            number = block * len(self.sources.weight) + rows.source_class
        return np.where(rows.stateful, number, number + self.pools)

    def state_of(self, rows: Rows) -> GroupState:
        """Tasks and their copies as functions of the core take them; without racks and tags."""
        size, clients = len(rows.owner), len(self.clients)
        held = rows.copy_client != NOBODY
        row, column = np.nonzero(held)
        order = np.lexsort((rows.copy_client[row, column], row))
        row, column = row[order], column[order]
        start = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(held.sum(axis=1), out=start[1:])
        return GroupState(
            tasks=tuple(map(TaskId, rows.subtopology.tolist(), rows.partition.tolist())),
            stateful=rows.stateful,
            subtopology=rows.subtopology,
            clients=self.clients,
            threads=self.capacity,
            owner=rows.owner,
            copy_start=start,
            copy_client=rows.copy_client[row, column],
            copy_lag=rows.copy_lag[row, column],
            copy_stalled=rows.copy_stalled[row, column],
            end_offset_sums=rows.ends,
            racks=(None,) * clients,
            tags=((),) * clients,
            config=self.config,
        )

    def is_caught_up(self, rows: Rows) -> Bools:
        """Bool [B, W]: copies within the acceptable recovery lag."""
        hot: Bools = rows.copy_lag <= self.config.acceptable_recovery_lag
        return hot & (rows.copy_client >= 0)

    def starts_anywhere(self, rows: Rows) -> Bools:
        """Bool [B]: tasks with so little state that a client without any counts as caught up."""
        small: Bools = rows.ends <= self.config.acceptable_recovery_lag
        return small


def spread_of(
    clients: list[ClientInput], config: AssignmentConfig, *, has_changelog_racks: bool
) -> Spread:
    """The rules that keep copies apart in a group of these clients."""
    known: dict[TaskId, tuple[frozenset[str], ...]] | None = {} if has_changelog_racks else None
    return Spread.of(
        group_state(
            tasks=(), stateful_tasks=(), clients=clients, config=config, changelog_racks=known
        )
    )
