"""The state of a simulated group: all data of it, in one place; `WorldState` is copied as a whole.

Steps (`transport`, `consumer`, `assignment`) are functions on this state, and `simulation` takes
them. Nothing here calls a step, and nothing that the state holds points back to it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Self

from assignor.rebalance import (
    NO_TOPOLOGIES,
    NONE_STALLED,
    ClaimMemory,
    StalledCopies,
    TopologyMemory,
)
from encoding import TaskId, TopicPartition, View
from probing.features import FinalizedLevels, NodeSupport
from system_tests.coordinator import Coordinator, JoinedMember
from system_tests.engine import Scheduler, Simulation
from system_tests.sim.events import Answered, Decided, Ended
from system_tests.sim.world.behaviour import Behaviour
from system_tests.sim.world.disk import Disk
from system_tests.sim.world.setup import (
    INSTANCE,
    Application,
    WorldSetup,
    make_applications,
    make_thread,
)
from system_tests.sim.world.thread import Phase, StreamThread


class Led(NamedTuple):
    """What a leader sends, what it remembers, and what the trace says of it."""

    assignments: dict[str, bytes]
    lowest_supported: int
    lags: Mapping[str, Mapping[TaskId, int]]
    claims: ClaimMemory
    happening: Answered
    stalled: StalledCopies = NONE_STALLED
    decided: Decided | None = None
    topologies: TopologyMemory = NO_TOPOLOGIES
    support: tuple[NodeSupport, ...] = ()


class LeaderPlace(NamedTuple):
    """Where and when a leader leads, and what it knows besides the subscriptions.

    Attributes:
        thread, member_id: the leader.
        generation: that is being answered.
        now_ms: the simulated time.
        end_offset_sums: of each task, as the leader's admin client reads them.
        lags_before: process id -> lags, as this leader saw them the last time.
        claims: what the leader remembers of its answer before.
        names: member id -> thread, for the trace.
        stalled: what the leader remembers of copies that made no progress.
        held_view: the routing view that it got as a member, None where leaders go without.
        observed: threads, where what is decided is put down for the checkers; empty: it is not.
        topologies: what the leader remembers of its members' topologies.
        levels: the newest finalized levels that it knows; None: members look for none.
    """

    thread: str
    member_id: str
    generation: int
    now_ms: int
    end_offset_sums: Mapping[TaskId, int]
    lags_before: Mapping[str, Mapping[TaskId, int]]
    claims: ClaimMemory
    names: Mapping[str, str]
    stalled: StalledCopies = NONE_STALLED
    held_view: View | None = None
    observed: Sequence[StreamThread] = ()
    topologies: TopologyMemory = NO_TOPOLOGIES
    levels: FinalizedLevels | None = None


Lead = Callable[[Behaviour, Application, Sequence[JoinedMember], LeaderPlace], Led]
"""Answers a group as a leader of a release does; `leading.lead`, or that from memory."""


class MemberIds:
    """What a coordinator asks for: new member ids, and the next leader.

    Attributes:
        scheduler: draws the leader.
        names: member id -> thread, for the trace.
        next_leaders: threads that a coordinator in need of a leader takes, the first that is a
            member; where none of them is, the leader is drawn.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        """Begin without members."""
        self.scheduler = scheduler
        self.names: dict[str, str] = {}
        self.next_leaders: tuple[str, ...] = ()
        self.count = 0

    def copy(self, scheduler: Scheduler) -> Self:
        """Return independent member ids in the same state, which draw from another scheduler."""
        other = type(self)(scheduler)
        other.names = self.names.copy()
        other.next_leaders = self.next_leaders
        other.count = self.count
        return other

    def new(self, prefix: str) -> str:
        """Return a new member id; the prefix is a thread's name or its group.instance.id."""
        self.count += 1
        member_id = self.written(prefix, self.count)
        self.names[member_id] = prefix.removesuffix(INSTANCE)
        return member_id

    def written(self, prefix: str, number: int) -> str:
        """Return the member id with this number."""
        return f"{prefix}-{number}"

    def choose_leader(self, member_ids: Sequence[str]) -> str:
        """Return the next leader: as asked for, else drawn among all, as from a hash map."""
        for name in self.next_leaders:
            for member_id in member_ids:
                if self.names.get(member_id) == name:
                    return member_id
        return self.scheduler.choose(member_ids)


class WorldState(Simulation):
    """A simulated group: its coordinator, threads, disks, and the messages on their way.

    Attributes:
        setup: sizes, speeds and settings.
        network: delays and losses of messages from now on.
        member_ids: ids and names of members; asked by the coordinator.
        coordinator: of the one group.
        lead: how leaders answer.
        applications: what each program processes; application, task_of: the first one does.
        threads: every thread, process by process.
        disks: one for each process.
        process_ids: number of each process's id; another one after its disk was lost.
        decisions: of the latest leaders, in a group with dimensions.
        support: levels that the members of the last generation support.
        is_stable: the coordinator has the leader's answer, and no rebalance is running.
    """

    def __init__(
        self, setup: WorldSetup, *, scheduler: Scheduler, member_ids: MemberIds, lead: Lead
    ) -> None:
        """Make a group of threads that are not up, with empty disks."""
        super().__init__(scheduler)
        self.setup, self.network = setup, setup.network
        self.member_ids = member_ids
        self.coordinator = Coordinator(
            setup.broker, member_ids.new, choose_leader=member_ids.choose_leader
        )
        self.lead = lead
        self.applications = make_applications(setup)
        self.application = self.applications[0]
        self.task_of = self.application.task_of
        self.threads: list[StreamThread] = [
            make_thread(setup, process, number)
            for process in range(setup.processes)
            for number in range(setup.threads)
        ]
        self.disks = [Disk(rates=setup.rates) for _ in range(setup.processes)]
        self.process_ids = list(range(1, setup.processes + 1))
        self.decisions: tuple[Decided, ...] = ()
        self.support: tuple[NodeSupport, ...] = ()
        self.is_stable = False

    def copy(self) -> Self:
        """Return an independent group in the same state; values that never change are shared."""
        other = object.__new__(type(self))
        other.setup, other.network = self.setup, self.network
        other.scheduler = self.scheduler.copy()
        other.member_ids = self.member_ids.copy(other.scheduler)
        other.coordinator = self.coordinator.copy(
            other.member_ids.new, choose_leader=other.member_ids.choose_leader
        )
        other.lead = self.lead
        other.applications, other.application = self.applications, self.application
        other.task_of = self.task_of
        other.threads = [thread.copy() for thread in self.threads]
        other.disks = [disk.copy() for disk in self.disks]
        other.process_ids = self.process_ids.copy()
        other.trace, other.handlers = self.trace.copy(), self.handlers
        other.decisions, other.support = self.decisions, self.support
        other.is_stable = self.is_stable
        return other

    def next_due_ms(self) -> int | None:
        """Return when the next event happens, one of the coordinator included."""
        due = (self.scheduler.next_due_ms(), self.coordinator.next_deadline_ms())
        return min((each for each in due if each is not None), default=None)

    def application_of(self, thread: StreamThread) -> Application:
        """Return what the program of a thread processes."""
        return self.applications[thread.program]

    def task_at(self, thread: StreamThread, partition: TopicPartition) -> TaskId:
        """Return the task that a thread runs for a partition that it owns."""
        return thread.running[partition] if self.setup.change else self.task_of[partition]

    def is_rebalance_over(self) -> bool:
        """Whether the group is stable and every thread has its answer."""
        return self.is_stable and not any(
            thread.phase in (Phase.JOINING, Phase.SYNCING) for thread in self.threads
        )

    def end_offset_sums(self) -> dict[TaskId, int]:
        """Return the end offset sum of each task, as a leader's admin client reads it now."""
        rates, now_ms = self.setup.rates, self.now_ms
        return {task: rates.end_offset_sum(task, now_ms) for task in self.application.tasks}

    def fail(self, thread: StreamThread, why: str) -> None:
        """End a thread by an error; the other threads of its process go on."""
        disk = self.disks[thread.process]
        for partition in thread.owned:
            disk.close(self.task_at(thread, partition), self.now_ms)
        self.end(thread, why, failed=True)

    def end(self, thread: StreamThread, how: str, *, failed: bool) -> None:
        """End a thread; ``how`` goes into the trace."""
        thread.end()
        self.record(Ended(self.now_ms, thread.name, how, failed))
