"""What a group restores when the broker places its tasks without knowing where their state is."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

import numpy as np

from assignor import GroupState, TaskAssignmentError
from assignor.placement import LAG_UNKNOWN
from assignor.placement.streams_groups import MemberSpec, assign_members, member_specs
from assignor.problems import ProblemError
from system_tests.plan.saved import read_problem_file

SEEDS: Final = 200
_PERCENTILES: Final = (5, 50, 95)
_WORK: Final = 300_000  # tasks and members that are dealt in all draws: seconds
_MEMBER_WORK: Final = 4  # a member takes as long as so many tasks
_ID_BITS: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Changelog records that members read until every active task has its state.

    Attributes:
        tasks: stateful tasks; unknown: those of them whose changelog has an unknown size.
        low, median, high: percentiles 5, 50 and 95 of records over the draws.
        everything: records if no member has any state, as with stores in memory.
        seeds: draws of member ids and process ids, which decide among equal loads.
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
        spread = "" if self.low == self.high else f"{self.low:,} to {self.high:,} "
        return (
            f"{self.tasks} stateful tasks restore {self.median:,} records"
            f" ({spread}in 5 to 95 % of {self.seeds} draws of member ids),"
            f" and {self.everything:,} if stores are in memory{left_out}"
        )


def restored_of_saved(path: Path) -> Restored:
    """Return the figures of a saved group.

    Raises:
        ProblemError: the file cannot be read, or is not a problem file; or as
            `restored_by_broker` does.
    """
    return restored_by_broker(read_problem_file(path).state)


def restored_by_broker(state: GroupState, *, seeds: int = SEEDS) -> Restored:
    """Return what is restored when the broker assigns all tasks to members with new ids.

    Its assignor knows neither where state is nor which member had a task before. Each member, which
    is a stream thread, gets its share of all tasks. A client that gets a task of which it has a
    copy reads what the copy lags behind; another client reads the whole changelog.

    Args:
        state: the group before the move.
        seeds: most draws of ids; fewer for a large group.

    Raises:
        ProblemError: the group has no threads, or too many.
    """
    try:
        specs = member_specs(state)
        draws = max(1, min(seeds, _WORK // (len(state.tasks) + _MEMBER_WORK * len(specs) + 1)))
        costs = _Costs(state)
        totals = [costs.total(owners) for owners in _owners(state, specs, draws)]
    except TaskAssignmentError as error:
        raise ProblemError(f"the restored records cannot be computed: {error}") from None
    low, median, high = (int(value) for value in np.percentile(totals, _PERCENTILES))
    return Restored(
        tasks=int(np.count_nonzero(state.stateful)),
        unknown=costs.unknown,
        low=low,
        median=median,
        high=high,
        everything=sum(costs.sizes.values()),
        seeds=draws,
    )


class _Costs:
    """Records that each client reads if it gets a task.

    Attributes:
        sizes: stateful task by its place -> records of its changelog, if known.
        unknown: stateful tasks of unknown size.
    """

    def __init__(self, state: GroupState) -> None:
        stateful = np.flatnonzero(state.stateful).tolist()
        sums = np.asarray(state.end_offset_sums).tolist()
        self.sizes: dict[int, int] = {t: sums[t] for t in stateful if sums[t] != LAG_UNKNOWN}
        self.unknown = len(stateful) - len(self.sizes)
        self._lags = {
            (task, client): min(max(0, lag), size)
            for task, size in self.sizes.items()
            for client, lag in state.copies(task)
        }

    def total(self, owners: Sequence[int]) -> int:
        """Return what all clients read; `owners` has the client of each task."""
        lags = self._lags
        return sum(lags.get((task, owners[task]), size) for task, size in self.sizes.items())


def _owners(state: GroupState, specs: Sequence[MemberSpec], draws: int) -> Iterator[list[int]]:
    """Yield the client of each task for each draw of ids."""
    rng = random.Random(0)  # noqa: S311 a simulation
    stateful = [task for task, has in zip(state.tasks, state.stateful, strict=True) if has]
    place = {task: number for number, task in enumerate(state.tasks)}
    client_of = {process_id: number for number, process_id in enumerate(state.clients)}
    for _ in range(draws):
        process_ids = {name: _drawn_id(rng) for name in state.clients}
        clients, members = {}, []
        for spec in specs:
            member_id = _drawn_id(rng)
            clients[member_id] = client_of[spec.process_id]
            members.append(MemberSpec(member_id=member_id, process_id=process_ids[spec.process_id]))
        owners = [0] * len(place)
        assigned = assign_members(members, stateful=stateful, stateless=state.tasks)
        for member_id, tasks in assigned.items():
            for task in tasks.active:
                owners[place[task]] = clients[member_id]
        yield owners


def _drawn_id(rng: random.Random) -> str:
    return str(UUID(int=rng.getrandbits(_ID_BITS)))
