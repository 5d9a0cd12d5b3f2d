"""The parts of a leader that can be absent, each behind one name, and what holds without them.

The leader calls each part once and knows none of their types: how a group changes its topology
(`rolling_topologies`), which feature levels are finalized (`finalized_levels`), and the routing
view (`routing_views`). A leader of a Kafka release has none of them. `whole` builds both leaders.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from assignor.rebalance.leader.knowledge import LeaderInputs, LeaderMemory
from assignor.rebalance.leader.members import ReadMember
from assignor.rebalance.leader.placements import Placement
from assignor.topology import Subtopology, TaskPlan, plan_tasks
from encoding import Subscription, TaskId


class OneTopology:
    """The topology of a group whose members all run the leader's; the base of a part that differs.

    Attributes:
        subtopologies: of the leader.
        excluded: member id -> why it gets no tasks.
        waiting, waiting_tasks: see `Replies`.
        memory: the next `LeaderMemory.topologies`.
    """

    excluded: Mapping[str, str] = MappingProxyType({})
    waiting: tuple[str, ...] = ()
    waiting_tasks: int = 0
    memory: object = None

    def __init__(self, subtopologies: tuple[Subtopology, ...]) -> None:
        self.subtopologies = subtopologies

    def plan(self, partition_counts: Mapping[str, int]) -> tuple[TaskPlan, tuple[str, ...]]:
        """Return the tasks of all subtopologies, and warnings about those left out.

        Raises:
            TaskAssignmentError: the leader's topology does not fit the partition counts.
        """
        return plan_tasks(self.subtopologies, partition_counts), ()

    def usable(
        self, memory: LeaderMemory, inputs: LeaderInputs
    ) -> tuple[LeaderMemory, LeaderInputs]:
        """Return what of them is about tasks by the numbers of this rebalance."""
        return memory, inputs

    def numbered(self, member_id: str, value: Subscription) -> Subscription:
        """Return a member's subscription with the group's task numbers."""
        return value

    def select(
        self,
        plan: TaskPlan,
        members: Sequence[ReadMember],
        running: Callable[[], Mapping[str, AbstractSet[TaskId]]],
        level: int | None,
    ) -> tuple["OneTopology", TaskPlan]:
        """Return this part with its decision which tasks run, and the plan of these tasks.

        Args:
            plan: the tasks of all subtopologies whose topics exist.
            members: those that can have tasks.
            running: returns member id -> tasks that it ran, as far as it is believed.
            level: the finalized level of `topology.version`.
        """
        return self, plan

    def place(
        self,
        place: Callable[[TaskPlan, tuple[ReadMember, ...]], Placement],
        plan: TaskPlan,
        members: tuple[ReadMember, ...],
        able: Sequence[ReadMember],
        standbys: int,
    ) -> Placement:
        """Return the placement of the group; `place` is called once for each set of members.

        Args:
            place: places the tasks of a plan on those of the members that can run them.
            plan: the tasks that run.
            members: all members.
            able: members that can be given tasks.
            standbys: standby copies of a task.
        """
        return place(plan, members)

    def answer_fields(self, plan: TaskPlan) -> Mapping[str, Any]:
        """Return fields of native answers; `plan` has the tasks of all subtopologies."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLevels:
    """What finalized levels mean in a rebalance; by default they limit nothing.

    Attributes:
        protocol: level of the assignment protocol, a version; None: not finalized.
        topology: level of `topology.version`; None: not finalized.
        lacking: member id -> why it does not support the levels: it gets no tasks.
        warnings: members whose reports are not believed.
        answer_fields: fields of native answers.
    """

    protocol: int | None = None
    topology: int | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    answer_fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderParts:
    """What differs between leaders; by default a leader without the parts that can be absent.

    Attributes:
        topologies: (subscription by member id, partition counts) -> the group's topologies; None:
            every member runs the leader's topology.
        levels: all members -> the levels of the group.
        views: (native members by id, versions of their native bodies, placement, tasks of each
            subtopology) -> member id -> the field of its answer that has the routing view.
        withholds: whether a partition waits until its owner has revoked it (KIP-429).
    """

    topologies: Callable[[Mapping[str, Subscription], Mapping[str, int]], OneTopology] | None = None
    levels: Callable[[Sequence[ReadMember]], GroupLevels] = lambda _: GroupLevels()
    views: Callable[
        [Mapping[str, ReadMember], Mapping[str, int], Placement, tuple[int, ...]],
        Mapping[str, Mapping[str, bytes]],
    ] = lambda *_: {}
    withholds: bool = True
