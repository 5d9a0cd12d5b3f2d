"""A group that is rebalanced until it has settled, as in TaskAssignorConvergenceTest.

Between two rebalances every copy catches up. A returning client claims the tasks that it
ran when it left, caught up, although others run them meanwhile.
"""

from dataclasses import dataclass, field

from assignor.placement.state import ClientInput, group_state
from encoding import TaskId
from tests.assignor.placement.kafka_cases.fixtures import config_of, process_id
from tests.assignor.placement.kafka_cases.random_groups import replicas, shuffled_racks
from tests.assignor.placement.kafka_cases.running import outcome_of

END = 150_000


@dataclass(slots=True, kw_only=True)
class Harness:
    """Tasks, clients and their last assignment.

    Attributes:
        settings: the group's settings.
        random: draws racks of clients that join.
        nodes: brokers, one rack each.
        sources, changelogs: task -> racks of its partition.
        held: client number -> (active, standby) of the last rebalance.
        gone: the same for clients that left.
        rack_of: client number -> rack.
        has_racks: whether clients name their racks.
        outcome: the last placement.
    """

    settings: dict
    random: object
    nodes: int
    sources: dict
    changelogs: dict
    held: dict = field(default_factory=dict)
    gone: dict = field(default_factory=dict)
    rack_of: dict = field(default_factory=dict)
    has_racks: bool = True
    outcome: object = None

    @classmethod
    def of(cls, rng, settings, *, stateless, stateful, clients, nodes, partitions, has_racks=True):
        """A fresh group; `partitions` draws the size of a subtopology."""
        racks = shuffled_racks(rng, nodes)
        sources, changelogs, subtopology = {}, {}, 0
        for has_state, count in ((False, stateless), (True, stateful)):
            left = count
            while left:
                size = min(left, partitions())
                for number in range(size):
                    task = TaskId(subtopology, number)
                    sources[task] = (replicas(racks, len(sources), number),)
                    if has_state:
                        changelogs[task] = (replicas(racks, rng.randrange(nodes), number),)
                left, subtopology = left - size, subtopology + 1
        harness = cls(
            settings=settings,
            random=rng,
            nodes=nodes,
            sources=sources,
            changelogs=changelogs,
            has_racks=has_racks,
        )
        for _ in range(clients):
            harness.join()
        return harness

    def join(self):
        """Add a client without state."""
        number = len(self.held) + len(self.gone)
        self.held[number] = (set(), set())
        self.rack_of[number] = f"rack{self.random.randrange(self.nodes)}"

    def leave(self, number=None):
        """Let a client leave, by default the first one."""
        number = min(self.held) if number is None else number
        self.gone[number] = self.held.pop(number)

    def leave_some(self, count):
        """Let this number of random clients leave."""
        for number in self.random.sample(sorted(self.held), min(count, len(self.held))):
            self.leave(number)

    def join_or_return(self, count):
        """Let this number of clients join; some return with the tasks that they had."""
        for _ in range(count):
            if self.random.random() < 1 / 2 or not self.gone:
                self.join()
            else:
                number = self.random.choice(sorted(self.gone))
                self.held[number] = self.gone.pop(number)

    def state(self):
        """The group before the next rebalance."""
        return group_state(
            tasks=self.sources,
            stateful_tasks=self.changelogs,
            clients=[
                ClientInput(
                    process_id=process_id(number),
                    active_tasks=frozenset(active),
                    lags={task: 0 for task in active | standby if task in self.changelogs},
                    rack=self.rack_of[number] if self.has_racks else None,
                )
                for number, (active, standby) in self.held.items()
            ],
            config=config_of(self.settings),
            end_offset_sums=dict.fromkeys(self.changelogs, END),
            partition_racks=self.sources,
            changelog_racks=self.changelogs,
        )

    def rounds(self, strategy, most):
        """Number of rebalances until none is requested; `most` + 1 if that is not reached."""
        for number in range(1, most + 1):
            self.outcome = outcome_of(self.state(), strategy)
            self.held = {
                client: (self.outcome.active[client], self.outcome.standby[client])
                for client in self.held
            }
            if not self.outcome.followup:
                return number
        return most + 1
