"""What a group restores when the broker places its tasks; before 4.4 without knowing its state."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np

from assignor import GroupState, named_strategy, run_strategy
from assignor.errors import TaskAssignmentError
from assignor.placement import LAG_UNKNOWN, NOBODY
from assignor.placement.streams_groups import MemberSpec, assign_members, member_specs
from assignor.problems import ProblemError
from encoding import TaskId
from system_tests.plan.cost import FEWEST_FOR_PERCENTILES
from system_tests.plan.figures import restore_text, rounded

SEEDS: Final = 200
_RETURNS: Final = 10  # draws for which the way back is computed
_PERCENTILES: Final = (5, 50, 95)
_WORK: Final = 300_000  # tasks and members that are dealt in all draws: seconds
_MEMBER_WORK: Final = 4  # a member takes as long as so many tasks
_ID_BITS: Final = 128
_CONDITIONS: Final = (
    (
        "that holds if each member comes back on its host with its state directory, which has its"
        " process id and its state, and joins before the first assignment"
        " (group.initial.rebalance.delay.ms of the brokers): a task goes to a caught-up member"
    ),
    (
        "every member counts as caught up with a changelog of up to acceptable.recovery.lag ="
        " 10,000 records, so such a task may restore all of it"
    ),
    "further copies warm up beside the tasks, max.warmup.replicas at a time",
)
"""When members of the classic protocol restore that little after they were streams members."""
NO_LARGE: Final = "no large changelog before their tasks run"
"""What they restore then, if no figures are known; the same whenever all members come back."""
LOST: Final = "if state directories are lost or stores are in memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Changelog records that members read until every active task has its state.

    Attributes:
        tasks: stateful tasks; unknown: those of them whose changelog has an unknown size.
        low, median, high: percentiles 5, 50 and 95 of records over the draws.
        everything: records if no member has any state, as with stores in memory.
        seeds: draws of member ids, and of process ids that the file does not have; they decide
            among equal loads.
        largest: most records of one changelog that a member reads, in the median draw.
        largest_of_all: the same if no member has any state.
        returned: percentiles 5, 50 and 95 of what members read that return to the classic protocol
            with what they have on their disks then, over `return_seeds` of the draws.
    """

    tasks: int
    unknown: int
    low: int
    median: int
    high: int
    everything: int
    seeds: int
    largest: int = 0
    largest_of_all: int = 0
    returned: tuple[int, int, int] = (0, 0, 0)
    return_seeds: int = 0

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of the size of the state."""
        return bool(self.unknown) and self.unknown == self.tasks

    def restore_ms(self, rate: int) -> tuple[int, int]:
        """Return how long the largest changelog is read, and how long if all state is lost."""
        kept, lost = (most * 1000 // rate for most in (self.largest, self.largest_of_all))
        return kept, lost

    def seconds(self, rate: int) -> str:
        """Return how long the largest changelog is read at so many records a second."""
        kept, lost = (restore_text(most, rate) for most in (self.largest, self.largest_of_all))
        if kept == lost:
            return f"{kept} for the largest changelog (--restore-rate)"
        return f"{kept} for the largest changelog (--restore-rate), {lost} if all state is lost"

    @property
    def sentence(self) -> str:
        """The figures as a clause."""
        if self.is_unknown:
            return (
                f"{self.tasks} stateful tasks restore an unknown number of records: the file has no"
                " end_offset_sums of their changelogs; save the group as a user who may describe"
                " these topics"
            )
        left_out = f" ({self.unknown} tasks of unknown size are left out)" if self.unknown else ""
        low, median, high = map(rounded, (self.low, self.median, self.high))
        spread = "" if low == high else f"{low:,} to {high:,} "
        part = "5 to 95 % of " if self.seeds >= FEWEST_FOR_PERCENTILES else ""
        return (
            f"{self.tasks} stateful tasks restore {median:,} records"
            f" ({spread}in {part}{self.seeds} draws of member ids) if each member comes back on its"
            f" host with its state directory, and {rounded(self.everything):,} if state directories"
            f" are lost or stores are in memory{left_out}"
        )

    @property
    def way_back(self) -> tuple[str, ...]:
        """What classic members restore after the move, as sentences."""
        if self.is_unknown:
            return returns_of(NO_LARGE, "an unknown number of")
        low, median, high = map(rounded, self.returned)
        spread = "" if low == high else f" ({low:,} to {high:,} in {self.return_seeds} draws)"
        records = f"{median:,} records{spread} before their tasks run"
        return returns_of(records, f"{rounded(self.everything):,}")


def returns_of(records: str, everything: str) -> tuple[str, ...]:
    """Return what classic members restore, with its conditions, and what if state is lost."""
    return (
        f"members that return to group.protocol=classic restore {records}",
        *_CONDITIONS,
        f"they restore {everything} records {LOST}",
    )


def restored_by_broker(
    state: GroupState, *, seeds: int = SEEDS, reports_offsets: bool = False
) -> Restored:
    """Return what is restored when the broker assigns all tasks to members with new ids.

    Its assignor does not know which member had a task before, and before 4.4 not where state is
    either. A member that
    comes back with its state directory has its process id and its state. Each member, which
    is a stream thread, gets its share of all tasks. A client that gets a task of which it has a
    copy reads what the copy lags behind; another client reads the whole changelog.

    Args:
        state: the group before the move.
        seeds: most draws of ids; fewer for a large group.
        reports_offsets: members and brokers run 4.4 or later: each thread reports the offsets of
            all state on its process's disk, and the assignor uses them.

    Raises:
        ProblemError: the group has no threads, or too many.
    """
    try:
        specs = member_specs(state)
        draws = max(1, min(seeds, _WORK // (len(state.tasks) + _MEMBER_WORK * len(specs) + 1)))
        costs = _Costs(state)
        drawn = list(_owners(state, specs, draws, reports_offsets=reports_offsets))
        totals = [costs.total(owners) for owners in drawn]
        largest = sorted(costs.largest(owners) for owners in drawn)
        returned = [costs.total_back(state, owners) for owners in drawn[:_RETURNS]]
    except TaskAssignmentError as error:
        raise ProblemError(f"the restored records cannot be computed: {error}") from None
    low, median, high = _percentiles(totals)
    return Restored(
        tasks=int(np.count_nonzero(state.stateful)),
        unknown=costs.unknown,
        low=low,
        median=median,
        high=high,
        everything=sum(costs.sizes.values()),
        seeds=draws,
        largest=largest[len(largest) // 2],
        largest_of_all=max(costs.sizes.values(), default=0),
        returned=_percentiles(returned),
        return_seeds=len(returned),
    )


def _percentiles(totals: Sequence[int]) -> tuple[int, int, int]:
    low, median, high = (int(value) for value in np.percentile(totals, _PERCENTILES))
    return low, median, high


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
        return sum(self._read(owners))

    def total_back(self, state: GroupState, owners: Sequence[int]) -> int:
        """Return what classic clients read that have the state of the tasks of `owners` only."""
        rows = [[task, owners[task], 0, 0] for task in np.flatnonzero(state.stateful).tolist()]
        returned = state.with_copies(
            np.array(rows, dtype=np.int64).reshape(-1, 4),
            owner=np.full(len(state.tasks), NOBODY),
            left_over=(),
        )
        active = run_strategy(returned, named_strategy("kafka_high_availability")).active.tolist()
        return sum(size for task, size in self.sizes.items() if active[task] != owners[task])

    def largest(self, owners: Sequence[int]) -> int:
        """Return the most that a client reads for one task."""
        return max(self._read(owners), default=0)

    def _read(self, owners: Sequence[int]) -> Iterator[int]:
        lags = self._lags
        return (lags.get((task, owners[task]), size) for task, size in self.sizes.items())


def _owners(
    state: GroupState, specs: Sequence[MemberSpec], draws: int, *, reports_offsets: bool
) -> Iterator[list[int]]:
    """Yield the client of each task for each draw of ids."""
    rng = random.Random(0)  # noqa: S311 a simulation
    stateful = [task for task, has in zip(state.tasks, state.stateful, strict=True) if has]
    place = {task: number for number, task in enumerate(state.tasks)}
    client_of = {process_id: number for number, process_id in enumerate(state.clients)}
    offsets = _offsets(state) if reports_offsets else {}
    for _ in range(draws):
        process_ids = {name: _process_id(name, rng) for name in state.clients}
        clients, members = {}, []
        for spec in specs:
            member_id = _drawn_id(rng)
            client = clients[member_id] = client_of[spec.process_id]
            members.append(
                MemberSpec(
                    member_id=member_id,
                    process_id=process_ids[spec.process_id],
                    offsets=offsets.get(client, {}),
                )
            )
        owners = [0] * len(place)
        assigned = assign_members(
            members, stateful=stateful, stateless=state.tasks, since_4_4=reports_offsets
        )
        for member_id, tasks in assigned.items():
            for task in tasks.active:
                owners[place[task]] = clients[member_id]
        yield owners


def _offsets(state: GroupState) -> dict[int, dict[TaskId, int]]:
    """Return what the members of each client report: the offset sums of the state on its disk."""
    ends = np.asarray(state.end_offset_sums).tolist()
    found: dict[int, dict[TaskId, int]] = {}
    for place, task in enumerate(state.tasks):
        if not state.stateful[place]:
            continue
        for client, lag in state.copies(place):
            is_known = ends[place] != LAG_UNKNOWN and lag != LAG_UNKNOWN
            read = ends[place] - max(0, lag) if is_known else 0
            found.setdefault(client, {})[task] = max(0, read)
    return found


def _process_id(name: str, rng: random.Random) -> str:
    """Return the name of a client if it is a process id, which its state directory keeps."""
    try:
        return str(UUID(name))
    except ValueError:
        return _drawn_id(rng)


def _drawn_id(rng: random.Random) -> str:
    return str(UUID(int=rng.getrandbits(_ID_BITS)))
