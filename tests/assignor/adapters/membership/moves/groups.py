"""A group in memory: members with listeners of applications, and how many running tasks move."""

from types import SimpleNamespace
from uuid import UUID

from assignor import GroupMember
from assignor.adapters.membership import member_options, new_driver
from encoding import TaskId, TopicPartition, decode_subscription
from tests.assignor.adapters.membership.clients import FakeClient
from tests.assignor.rebalance.groups import TOPOLOGY

_ROUNDS = 20


class Group:
    """Members by name; the first one leads.

    Args:
        tasks: number of tasks.
        end: records in the changelog of each task; None: not known to the leader.
        options: of every member.
    """

    def __init__(self, *, tasks=12, end=0, **options):
        self.tasks = [TaskId(0, number) for number in range(tasks)]
        self.end, self.options = end, options
        self.members, self.wrote = {}, {}
        self.generation = self.now_ms = 0

    def join(self, name, listener=None, **options):
        """Add a member, and rebalance until nobody asks for it; return the moved tasks."""
        # A process id that does not sort as the names do.
        number = UUID(int=int.from_bytes(name.encode(), "little") * 2654435761 % 2**128)
        keywords = {"process_id": number, "listener": listener} | self.options | options
        membership = new_driver(member_options(TOPOLOGY, "app", keywords))
        membership.connect(FakeClient())
        cluster = membership.cluster
        counts_of = cluster.knowledge
        cluster.knowledge = lambda counts: SimpleNamespace(
            partition_counts=counts_of(counts).partition_counts, waits={}, end_offset_sums=self.ends
        )
        self.members[name] = membership
        return self.settle()

    def leave(self, name):
        """Remove a member, and rebalance as `join`."""
        self.members.pop(name).close()
        return self.settle()

    @property
    def ends(self):
        return None if self.end is None else dict.fromkeys(self.tasks, self.end)

    def owners(self):
        """Task -> member that runs it."""
        held = {name: each.member.held.active for name, each in self.members.items()}
        return {task: name for name, tasks in held.items() for task in tasks}

    def loads(self):
        return sorted(len(each.member.held.active) for each in self.members.values())

    def settle(self):
        """Rebalance until nobody asks for it; return the tasks that left a member that stays."""
        before = self.owners()
        for _ in range(_ROUNDS):
            self.rebalance()
            clients = [each.port for each in self.members.values()]
            asked = sum(client.rejoins for client in clients)
            for client in clients:
                client.rejoins = 0
            if not asked:
                break
        else:
            raise AssertionError(f"not settled after {_ROUNDS} rebalances")
        after = self.owners()
        return {task for task, name in before.items() if after[task] != name}

    def rebalance(self):
        """Run one generation, led by the first member; keep what each has written."""
        self.generation += 1
        wires = {name: each.join() for name, each in self.members.items()}
        self.wrote = {
            name: dict(decode_subscription(wire).task_offset_sums) for name, wire in wires.items()
        }
        group = [GroupMember(member_id=name, user_data=wire) for name, wire in wires.items()]
        lines = SimpleNamespace(partitions_for_topic=lambda _: set(range(len(self.tasks))))
        leader = next(iter(self.members.values()))
        answers = leader.decide(lines, group)
        for name, each in self.members.items():
            answer = answers[name]
            each.take([tuple(p) for p in answer.partitions], answer.user_data, self.generation)
            each.port.owned = [TopicPartition(*p) for p in answer.partitions]
            each.port.current_generation = self.generation
