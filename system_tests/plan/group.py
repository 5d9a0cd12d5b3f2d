"""The group that the costs of a plan are simulated with: sizes, session timeout, state."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from encoding.primitives import shell_word
from probing import find_release
from probing import upgrades as data
from system_tests.engine import OptionError
from system_tests.sim import BounceOptions
from system_tests.sim.world import RESTARTS, Dimensions, StateRates

MOST_MEMBERS: Final = 24
"""Threads that are simulated by default, at least one for each of as many members.

Of a larger group a part of this size is simulated: the time grows with the square of the threads.
"""
MOST_TASKS: Final = 1000
"""Tasks that are simulated by default."""
FOLLOWUPS: Final = 12
"""Rebalances after the last bounce, to move partitions to caught-up copies, that are simulated.
Their number grows with the tasks; a group of 40 members can have hundreds."""
GROWTH_SHARE: Final = 1000
"""A changelog of known size grows by one part in so many a second, if nothing else is given."""
_MOST_SEEDS, _FEWEST_SEEDS = 40, 4
_WORK: Final = 6000
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedGroup:
    """A group as the simulator knows it.

    Attributes:
        members: processes that are simulated; threads: in each.
        all_members: processes of the group if they are more than `members`, else 0.
        partitions: tasks, one for each partition of one topic.
        session_timeout_ms: of all members; None: the default of their release.
        sizes: records in the changelogs of each task; empty: the simulator's default for all.
        restore: records a second that a process restores of each changelog.
        standbys: num.standby.replicas.
        is_static: all members carry a group.instance.id.
        static_members: how many of the real group's members carry one, as far as a file says so.
        restart_ms: how long a bounced member is down; None: drawn from `RESTARTS`.
        name: group id, or empty.
        notes: what differs from the real group, as sentences.
        begun: which members a bounce that stopped halfway has restarted; empty: there is none.
        is_real: the sizes are those of a saved or live group; False: they are assumed.
        tasks: names of the tasks that a file says; empty: numbers.
        stateful: whether each task has a changelog; empty: all have.
        has_more_state: there are changelogs whose tasks are not known; a note says which.
        input_topics, repartition_topics: as far as a file says them.
        internal_topics: repartition topics and changelogs; empty if some of them are not known.
        subtopologies: of the application; 0: their number is not known.
        longer_groups: ids of other groups that begin with this one and `-`, as far as known.
        growth: records a second written to each changelog; None: assumed, `GROWTH_SHARE` of the
            known size and at most the simulator's default, which it is for unknown sizes.
    """

    members: int = 3
    all_members: int = 0
    threads: int = 1
    partitions: int = 6
    session_timeout_ms: int | None = None
    sizes: tuple[int, ...] = ()
    restore: int = StateRates().restore
    standbys: int = 0
    is_static: bool = False
    static_members: int = 0
    restart_ms: int | None = None
    name: str = ""
    notes: tuple[str, ...] = ()
    begun: str = ""
    is_real: bool = False
    tasks: tuple[str, ...] = ()
    stateful: tuple[bool, ...] = ()
    has_more_state: bool = False
    input_topics: tuple[str, ...] = ()
    repartition_topics: tuple[str, ...] = ()
    internal_topics: tuple[str, ...] = ()
    subtopologies: int = 0
    longer_groups: tuple[str, ...] = ()
    growth: int | None = None

    def __post_init__(self) -> None:
        """Check that state can be restored at all.

        Raises:
            OptionError: changelogs grow as fast as they are read.
        """
        if self.growth is not None and self.growth >= self.restore:
            raise OptionError(
                f"changelogs that grow by {self.growth:,} records a second (--growth) are never"
                f" restored at {self.restore:,} a second; give a higher --restore-rate"
            )

    @property
    def id(self) -> str:
        """The group id as a word of a command."""
        return shell_word(self.name) if self.name else "GROUP"

    @property
    def inputs(self) -> str:
        """The input topics as a word of a command."""
        return ",".join(map(shell_word, self.input_topics)) or "TOPIC,TOPIC"

    @property
    def seeds(self) -> int:
        """How many bounces of each step are simulated by default: fewer for a large group."""
        consumers = self.members * self.threads
        return max(_FEWEST_SEEDS, min(_MOST_SEEDS, _WORK // consumers**2))

    @property
    def size_factor(self) -> float:
        """How many times as many members the group has as are simulated."""
        return max(self.members, self.all_members) / self.members

    @property
    def rates(self) -> StateRates:
        """How state grows and is restored; tasks without changelog have none."""
        usual = StateRates()
        stateful = self.stateful or (True,) * self.partitions
        sizes = self.sizes or tuple(usual.history * has_state for has_state in stateful)
        if self.growth is None and self.sizes:
            growths = tuple(min(usual.growth, size // GROWTH_SHARE) for size in self.sizes)
        else:
            growth = usual.growth if self.growth is None else self.growth
            growths = tuple(growth * has_state for has_state in stateful)
        return StateRates(sizes=sizes, growths=growths, restore=self.restore)

    @property
    def state(self) -> str:
        """How much state there is and how fast it grows, in words."""
        usual = StateRates()
        if not any(self.stateful or (True,)):
            return "state of unknown tasks (see below)" if self.has_more_state else "no state"
        size = f"{sum(self.sizes):,} records of state" if self.sizes else ""
        if self.growth is not None:
            grows = f"{self.growth:,} records a second"
        elif self.sizes:
            share = f"{100 / GROWTH_SHARE:g} % of its size a second"
            grows = f"{share}, at most {usual.growth:,} records (assumed; see --growth)"
        else:
            grows = f"{usual.growth:,} records a second (assumed; see --growth)"
        return f"{size or f'{usual.history:,} records a task'}, each changelog grows by {grows}"

    @property
    def restarts(self) -> str:
        """How long a bounced member is down, in words."""
        if self.restart_ms is not None:
            return f"{self.restart_ms / 1000:g} s"
        usual, slow = (
            f"{low / 1000:g} to {high / 1000:g} s"
            for low, high in (RESTARTS.usual_ms, RESTARTS.slow_ms)
        )
        return f"{usual}, and {slow} in {100 * RESTARTS.slow_share:g} % of restarts"

    @property
    def all_records(self) -> int:
        """Changelog records that members with empty state directories read, standbys included."""
        return sum(self.rates.sizes) * (1 + min(self.standbys, self.members - 1))

    def options(self, *, seed: int, old: str, new: str, offline: bool = False) -> BounceOptions:
        """Return the options of one simulated bounce."""
        return BounceOptions(
            seed=seed,
            old=old,
            new=new,
            members=self.members,
            threads=self.threads,
            partitions=self.partitions,
            static=self.is_static,
            session_timeout_ms=self.session_timeout_ms,
            rates=self.rates,
            offline=offline,
            deletes_state=bool(data.one_way_formats_between(find_release(new), find_release(old))),
            dimensions=Dimensions(standbys=self.standbys),
            followups_most=FOLLOWUPS,
            restart_ms=self.restart_ms,
            waits_for_sessions=True,
            waits_for_restores=True,
        )

    def __str__(self) -> str:
        """Return the group in one line."""
        session = self.session_timeout_ms
        parts = [
            f"{self.members} members with {self.threads} thread{'s' * (self.threads > 1)} each",
            f"{self.partitions} tasks",
            "static members" if self.is_static else "",
            f"{self.standbys} standby replicas" if self.standbys else "",
            f"session timeout {session / 1000:g} s" if session else "session timeout by release",
            self.state,
            f"restored at {self.restore:,} a second from each changelog",
            f"a bounced member starts again after {self.restarts}"
            + (" (assumed; see --restart-ms)" if self.restart_ms is None else ""),
        ]
        return ", ".join(filter(None, parts))


UNNAMED: Final = SimulatedGroup()
"""A group of which nothing is known."""


def scaled(
    group: SimulatedGroup, given: Mapping[str, Any], *, sample: int | None = None
) -> SimulatedGroup:
    """Return a group with the values given instead, small enough to be simulated.

    Args:
        group: members, threads, tasks and sizes of the group.
        given: fields of `SimulatedGroup` -> value, or None for the group's own.
        sample: members that are simulated; None: so many that threads are `MOST_MEMBERS` at most.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    notes = list(group.notes)
    all_members = chosen.get("members", group.members)
    all_threads = chosen.get("threads", group.threads)
    all_tasks = chosen.get("partitions", group.partitions)
    members = min(all_members, sample or MOST_MEMBERS)
    most_tasks = all_tasks if sample else MOST_TASKS
    tasks = max(1, min(all_tasks * members // all_members, most_tasks))
    threads = all_threads
    if sample is None and "threads" not in chosen:
        threads = max(1, min(all_threads, MOST_MEMBERS // members))
    if threads < all_threads:
        notes.append(
            f"simulated with {threads} of {all_threads} threads in each member; --threads"
            f" {all_threads} simulates all of them, and takes longer"
        )
    if members < all_members or tasks < all_tasks:
        notes.append(
            f"simulated with {members} of {all_members} members and {tasks} of"
            f" {all_tasks} tasks: restored records, also those of the way back, and the pauses of"
            " all partitions together are those of this part"
            + (
                "; rebalances for members, the duration of a rolling bounce and restores one after"
                f" the other are multiplied by {all_members / members:.3g} (--sample {all_members}"
                " simulates all members)"
                if members < all_members
                else ""
            )
        )
    known = {
        "members": members,
        "all_members": all_members if members < all_members else 0,
        "threads": threads,
        "partitions": tasks,
        "sizes": _every_nth(group.sizes, tasks),
        "tasks": _every_nth(group.tasks, tasks),
        "stateful": _every_nth(group.stateful, tasks),
    }
    return replace(group, **{**chosen, **known}, notes=tuple(notes))


def simulated_as_dynamic(known: int, members: int) -> str:
    """Return what a group says whose members are static in part only."""
    return (
        f"{known} of {members} members are static (group.instance.id); all are simulated as dynamic"
        " ones, so a static member that is back in time costs less than this; --uses static"
        " simulates all as static"
    )


def as_static(group: SimulatedGroup) -> SimulatedGroup:
    """Return a saved group whose members are all simulated as static, with a note if some are not.

    Args:
        group: with the static members that its file says.
    """
    if group.is_static:
        return group
    known, members = group.static_members, group.members
    note = (
        f"--uses static: all {members} members are simulated as static ones, although the group has"
        f" a group.instance.id of {known} of them only; without it, they cost what dynamic ones do"
    )
    kept = (line for line in group.notes if line != simulated_as_dynamic(known, members))
    return replace(group, is_static=True, notes=(*kept, note))


def _every_nth(values: tuple[_Value, ...], count: int) -> tuple[_Value, ...]:
    """Return as many of the values, so that large and small tasks stay in proportion."""
    return tuple(values[at * len(values) // count] for at in range(count if values else 0))
