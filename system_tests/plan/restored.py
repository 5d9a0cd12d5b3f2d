"""What a group restores when tasks are placed without knowing where their state is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from assignor import GroupState
from assignor.placement import LAG_UNKNOWN
from system_tests.plan.saved import read_problem_file

SEEDS: Final = 200
_PERCENTILES: Final = (5, 50, 95)
_MOST_DRAWS: Final = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Changelog records that members read until every active task has its state.

    Attributes:
        tasks: stateful tasks; unknown: those of them whose changelog has an unknown size.
        low, median, high: percentiles 5, 50 and 95 of records over random even placements.
        everything: records if no member has any state, as with stores in memory.
        seeds: number of placements.
    """

    tasks: int
    unknown: int
    low: int
    median: int
    high: int
    everything: int
    seeds: int

    @property
    def sentence(self) -> str:
        """The figures as a clause."""
        if self.unknown and self.unknown == self.tasks:
            return (
                f"{self.tasks} stateful tasks restore an unknown number of records: the file has no"
                " end_offset_sums of their changelogs; save the group as a user who may describe"
                " these topics"
            )
        left_out = f" ({self.unknown} tasks of unknown size are left out)" if self.unknown else ""
        return (
            f"{self.tasks} stateful tasks restore {self.median:,} records"
            f" ({self.low:,} to {self.high:,} in 5 to 95 % of {self.seeds} random placements),"
            f" and {self.everything:,} if stores are in memory{left_out}"
        )


def restored_of_saved(path: Path) -> Restored:
    """Return the figures of a saved group.

    Raises:
        ProblemError: the file cannot be read, or is not a problem file.
    """
    return restored_by_chance(read_problem_file(path).state)


def restored_by_chance(state: GroupState, *, seeds: int = SEEDS) -> Restored:
    """Return what is restored when active tasks are dealt evenly, in a random order.

    The broker's assignor knows neither where state is nor which member had a task before: member
    ids are new. A member that gets a task of which it has a copy reads what the copy lags behind;
    another member reads the whole changelog.

    Args:
        state: the group before the move.
        seeds: number of placements.
    """
    stateful = np.flatnonzero(state.stateful)
    sizes = np.asarray(state.end_offset_sums)[stateful]
    known = sizes != LAG_UNKNOWN
    tasks, sizes = stateful[known], sizes[known]
    clients = max(1, len(state.clients))
    costs = np.repeat(sizes[:, None], clients, axis=1)
    for row, task in enumerate(tasks):
        for client, lag in state.copies(int(task)):
            costs[row, client] = min(max(0, lag), costs[row, client])
    draws = max(1, min(seeds, _MOST_DRAWS // max(1, len(tasks))))
    random = np.random.default_rng(0)
    owners = np.arange(len(tasks)) % clients
    totals = [
        int(costs[random.permutation(len(tasks)), owners].sum()) if len(tasks) else 0
        for _ in range(draws)
    ]
    low, median, high = (int(value) for value in np.percentile(totals, _PERCENTILES))
    return Restored(
        tasks=len(stateful),
        unknown=int((~known).sum()),
        low=low,
        median=median,
        high=high,
        everything=int(sizes.sum()),
        seeds=draws,
    )
