"""Cooperative members on kafka-python's values, without a client."""

from types import SimpleNamespace
from uuid import UUID

from kafka import TopicPartition

from assignor import sticky
from assignor.adapters.kafka_python.assignor import StreamsAssignor
from tests.assignor.adapters.members import Listener, cluster, consumer_with, joined, on_the_wire
from tests.assignor.rebalance.groups import TOPOLOGY

CLUSTER = cluster(lines=4)


class Member:
    """An assignor with a consumer that keeps its partitions, as a cooperative consumer does."""

    def __init__(self, number, **options):
        self.listener = Listener()
        self.assignor = StreamsAssignor(
            TOPOLOGY,
            application_id="app",
            process_id=UUID(int=number + 1),
            listener=self.listener,
            strategy=sticky,  # lags are not read
            **{"rebalance_protocol": "cooperative"} | options,
        )
        self.owned = set()
        self.rejoins = 0
        self.generation = SimpleNamespace(generation_id=1)
        coordinator = SimpleNamespace(
            request_rejoin=self.rejoin,
            rebalance_in_progress=lambda: False,
            group_id="app",
            group_instance_id=None,
            _generation=self.generation,
            _subscription=SimpleNamespace(assign_from_subscribed=lambda _: None),
        )
        self.assignor.attach(consumer_with(coordinator, assignment=lambda: self.owned))

    def rejoin(self):
        self.rejoins += 1

    def joined(self, name):
        return joined(self.assignor, name)

    def take(self, answer, generation=1):
        answer = on_the_wire(answer)
        self.assignor.on_assignment(answer, generation)
        self.owned = {TopicPartition(p.topic, p.partition) for p in answer.partitions()}


def rebalance(leader, members, generation):
    answers = leader.assignor.assign(
        CLUSTER, [member.joined(name) for name, member in members.items()]
    )
    for name, member in members.items():
        member.take(answers[name], generation)
