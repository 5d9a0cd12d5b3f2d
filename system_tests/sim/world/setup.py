"""Settings of a simulated group: sizes, speeds, the application; frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from uuid import UUID

from assignor import (
    AssignmentConfig,
    MemberIdentity,
    StreamsMember,
    Subtopology,
    Topology,
    plan_tasks,
)
from assignor.rebalance import GROUP_RECORD_LIMIT
from encoding import TaskId, TopicPartition
from system_tests.coordinator import CoordinatorConfig
from system_tests.sim.world.behaviour import behaviour_of
from system_tests.sim.world.dimensions import NO_DIMENSIONS, Dimensions
from system_tests.sim.world.disk import StateRates
from system_tests.sim.world.thread import StreamThread
from system_tests.trace import lane_name

TOPIC = "lines"
INSTANCE = "-instance"


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


@dataclass(frozen=True, kw_only=True)
class Application:
    """What the group processes, the same on every member.

    Attributes:
        subtopologies: of the topology.
        partition_counts: source topic -> partitions.
        task_of: partition -> the task that reads it.
        config: settings of the assignor.
        record_limit: bytes of the group's record.
        follows_lags: leaders from KIP-441 on place by lags; False where the clock stands still:
            no copy catches up there, and all leaders are sticky.
    """

    subtopologies: tuple[Subtopology, ...]
    partition_counts: Mapping[str, int]
    task_of: Mapping[TopicPartition, TaskId]
    config: AssignmentConfig
    follows_lags: bool = True
    record_limit: int = GROUP_RECORD_LIMIT

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


def make_application(
    setup: WorldSetup,
) -> tuple[Application, tuple[str, ...]]:
    """Return the application, and the topics that its members subscribe to."""
    has_state = setup.rates.history > 0 or setup.rates.growth > 0
    limit = setup.dimensions.record_limit
    return _make_application(setup.partitions, setup.config, limit, has_state=has_state), (TOPIC,)


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
    subtopologies = topology.subtopologies("app")
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
