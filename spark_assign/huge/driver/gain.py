"""What the plan of a huge group gains, from counts; as `measures_of` counts it for other groups."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from assignor.problems import balance_of, misplaced_tasks
from spark_assign.huge.worker.rows import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGain:
    """How even the tasks of a group are.

    Attributes:
        balance_before, balance_settled: as in `Measures`.
        evened: tasks that must move before so that every client has its share, minus those once
            the group has settled.
        threads: of all clients.
    """

    balance_before: float
    balance_settled: float
    evened: int
    threads: int

    @classmethod
    def of(
        cls, capacity: Ints, running: Ints, tasks: int, *, stateful: Ints, stateless: Ints
    ) -> "GroupGain":
        """Compare the tasks that clients run with those that they get.

        Args:
            capacity: int [C], threads of each client.
            running: int [2, C], stateful tasks that each client runs, and all.
            tasks: of the group.
            stateful: int [C], tasks with state of each client once settled.
            stateless: int [C], its tasks without state.
        """
        settled = np.stack([stateful, stateful + stateless])
        totals = (int(stateful.sum()), tasks)
        before, after = (
            misplaced_tasks(capacity, list(zip(totals, counts, strict=True)))
            for counts in (running, settled)
        )
        return cls(
            balance_before=balance_of(capacity, running[1]),
            balance_settled=balance_of(capacity, settled[1]),
            evened=before - after,
            threads=int(capacity.sum()),
        )

    def gained(self, counts: Mapping[str, int]) -> int:
        """Defects of the group now, minus those once it has settled.

        Args:
            counts: the sums of `OF_GAIN`.
        """
        missing = counts["missing_before"] - counts["missing_settled"]
        return counts["unowned"] + missing + self.evened
