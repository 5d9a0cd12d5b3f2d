"""Settings of a simulated group: sizes, speeds, the application; frozen values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final, NamedTuple
from uuid import UUID

from assignor import AssignmentConfig, MemberIdentity, StreamsMember, Topology
from assignor.rebalance import GROUP_RECORD_LIMIT
from assignor.topology import CarriedTopologies, Subtopology, content_fingerprint, plan_tasks
from encoding import TaskId, TopicPartition
from probing.features import FinalizedLevels
from system_tests.coordinator import CoordinatorConfig
from system_tests.engine import Scheduler
from system_tests.sim.world.behaviour import behaviour_of
from system_tests.sim.world.dimensions import NO_DIMENSIONS, Dimensions
from system_tests.sim.world.disk import StateRates
from system_tests.sim.world.thread import StreamThread
from system_tests.topology_changes import EXTRA, WORDS, Form, TopologyChange, forms_of
from system_tests.trace import lane_name

TOPIC = "lines"
GROUP = "g"
INSTANCE = "-instance"
LOOK_MS: Final = (2_000, 3_500)
"""How often a member looks for finalized levels; members of applications do once a minute."""
_APP = "app"


class Restarts(NamedTuple):
    """How long a bounced member is down: ranges in ms, and the share of slow restarts."""

    usual_ms: tuple[int, int]
    slow_ms: tuple[int, int]
    slow_share: float

    def drawn_ms(self, scheduler: Scheduler, given_ms: int | None) -> int:
        """Draw how long a process is down; `given_ms` is used instead if it is not None."""
        is_slow = scheduler.happens(self.slow_share)
        drawn_ms = scheduler.delay(*(self.slow_ms if is_slow else self.usual_ms))
        return drawn_ms if given_ms is None else given_ms


RESTARTS: Final = Restarts((200, 8_000), (15_000, 60_000), 0.25)
"""The ranges from which restarts are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Delays and faults of messages; times in ms.

    Attributes:
        shortest_ms, longest_ms: on the way, one direction.
        poll_ms: longest time between two polls of a thread.
        drop, duplicate, late: probabilities of a request or answer to be lost with its connection,
            to be sent twice, to take `late_ms` longer.
        late_ms: longest extra delay.
        reconnect_ms: until a thread notices a lost connection, at most.
    """

    shortest_ms: int = 1
    longest_ms: int = 20
    poll_ms: int = 100
    drop: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    late_ms: int = 3_000
    reconnect_ms: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSetup:
    """Settings of a simulated group.

    Attributes:
        seed: of the random generator; None: nothing is random, and the caller takes `choices`.
        processes, threads: how many, and threads in each.
        static: members carry a group.instance.id.
        session_timeout_ms: of all members; None: the default of their release.
        partitions: of the source topic.
        config: of the assignor; rates: of the state.
        broker: settings of the coordinator.
        network: its speed without faults.
        dimensions: what else the group has; `config` and `rates` are separate.
        change: of the topology, from the first program to the second; None: there is one program.
        levels: finalized levels that members are configured with; None: they look for none.
    """

    seed: int | None = 0
    processes: int = 3
    threads: int = 1
    static: bool = False
    session_timeout_ms: int | None = None
    partitions: int = 6
    config: AssignmentConfig = field(default_factory=AssignmentConfig)
    rates: StateRates = field(default_factory=StateRates)
    broker: CoordinatorConfig = field(default_factory=CoordinatorConfig)
    network: Network = field(default_factory=Network)
    dimensions: Dimensions = NO_DIMENSIONS
    change: TopologyChange | None = None
    levels: FinalizedLevels | None = None

    @property
    def is_observed(self) -> bool:
        """Whether what leaders decide is recorded for the checkers of dimensions."""
        return self.change is None and not self.dimensions.is_default


@dataclass(frozen=True, kw_only=True)
class Application:
    """What a program of the group processes; all members run the same one, unless it is changed.

    State and tasks of a change are recorded by the numbers of `forms_of`, since programs number
    their subtopologies differently.

    Attributes:
        subtopologies: of the topology.
        partition_counts: source topic -> partitions.
        task_of: partition -> the task that reads it.
        config: settings of the assignor.
        record_limit: bytes of the group's record.
        topics: that its members subscribe to.
        carried: subtopologies and versions of the topology; None: one topology without versions.
        forms: of the change; empty: there is no change.
        numbers: number in the change of each of its own subtopologies.
        follows_lags: leaders from KIP-441 on place by lags; False where the clock stands still:
            no copy catches up there, and all leaders are sticky.
    """

    subtopologies: tuple[Subtopology, ...]
    partition_counts: Mapping[str, int]
    task_of: Mapping[TopicPartition, TaskId]
    config: AssignmentConfig
    follows_lags: bool = True
    record_limit: int = GROUP_RECORD_LIMIT
    topics: tuple[str, ...] = (TOPIC,)
    carried: CarriedTopologies | None = None
    forms: tuple[Form, ...] = ()
    numbers: tuple[int, ...] = ()

    @cached_property
    def tasks(self) -> tuple[TaskId, ...]:
        """All tasks; of a change: by any number that a leader may give their subtopologies."""
        if not self.numbers:
            return tuple(self.task_of.values())
        most = max(self.partition_counts.values())
        return tuple(TaskId(n, p) for n in range(2 * len(self.forms)) for p in range(most))

    def recorded(self, task: TaskId) -> TaskId:
        """Return a task of the program by the numbers of the change."""
        return TaskId(self.numbers[task.subtopology], task.partition) if self.numbers else task

    def all_recorded(self, tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
        """Return tasks of the program by the numbers of the change."""
        return tuple(map(self.recorded, tasks))

    def own(self, sums: Mapping[TaskId, int]) -> dict[TaskId, int]:
        """Return offset sums by the program's numbers, without tasks that it has not."""
        if not self.numbers:
            return dict(sums)
        return {
            TaskId(self.numbers.index(task.subtopology), task.partition): offset_sum
            for task, offset_sum in sums.items()
            if task.subtopology in self.numbers
        }

    @cached_property
    def inputs(self) -> dict[TaskId, tuple[TopicPartition, ...]]:
        """Task -> partitions that it reads."""
        found: dict[TaskId, tuple[TopicPartition, ...]] = {}
        for partition, task in sorted(self.task_of.items()):
            found[task] = (*found.get(task, ()), partition)
        return found

    def __hash__(self) -> int:
        return id(self)  # one object a world; only settings are looked up by it


def make_thread(setup: WorldSetup, process: int, number: int) -> StreamThread:
    """Return a thread that was never started."""
    lane = lane_name(process)
    name = lane if setup.threads == 1 else f"{lane}{number + 1}"
    behaviour = behaviour_of("native", None)
    identity = MemberIdentity(process_id=UUID(int=process + 1))
    return StreamThread(
        index=process * setup.threads + number,
        name=name,
        process=process,
        behaviour=behaviour,
        streams=StreamsMember(behaviour.release, identity),
        instance_id=f"{name}{INSTANCE}" if setup.static else None,
    )


def make_applications(setup: WorldSetup) -> tuple[Application, ...]:
    """Return the application of each program: one, or the old and the new one of a change."""
    has_state = setup.rates.history > 0 or setup.rates.growth > 0
    if setup.change is not None:
        return tuple(
            _changed(setup, setup.change, number, has_state=has_state) for number in (1, 2)
        )
    limit = setup.dimensions.record_limit
    return (_make_application(setup.partitions, setup.config, limit, has_state=has_state),)


def _changed(
    setup: WorldSetup, change: TopologyChange, program: int, *, has_state: bool
) -> Application:
    carried = change.carried(program, _APP)
    forms = forms_of(change.kind, _APP)
    by_content = {form.content: number for number, form in enumerate(forms)}
    return Application(
        subtopologies=carried.subtopologies,
        partition_counts=dict.fromkeys((EXTRA, WORDS), setup.partitions),
        task_of={},
        config=setup.config,
        follows_lags=has_state,
        topics=tuple(sorted({t for part in carried.subtopologies for t in part.source_topics})),
        carried=carried,
        forms=forms,
        numbers=tuple(by_content[content_fingerprint(part)] for part in carried.subtopologies),
    )


@lru_cache(maxsize=64)
def _make_application(
    partitions: int, config: AssignmentConfig, record_limit: int | None, *, has_state: bool
) -> Application:
    topology = (
        Topology()
        .add_source("read", topics=[TOPIC])
        .add_processor("count", parents=["read"])
        .add_state_store("counts", processors=["count"])
    )
    subtopologies = topology.subtopologies(_APP)
    counts = {TOPIC: partitions}
    plan = plan_tasks(subtopologies, counts)
    return Application(
        subtopologies=subtopologies,
        partition_counts=counts,
        task_of=plan.task_by_partition,
        config=config,
        follows_lags=has_state,
        record_limit=GROUP_RECORD_LIMIT if record_limit is None else record_limit,
    )
