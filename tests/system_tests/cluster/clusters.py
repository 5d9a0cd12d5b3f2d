"""Simulated clusters at rest, in which an operator starts."""

from system_tests.cluster.nodes.build import build_world
from system_tests.cluster.nodes.clients import ClientGroup
from system_tests.cluster.nodes.programs import Start, kafka_realm
from system_tests.cluster.operate import Operator


def cluster(*, controllers=3, brokers=1, members=0, series="3.9", formatted=20, seed=1):
    world = build_world(seed, kafka_realm(formatted), controllers=controllers, brokers=brokers)
    operator = Operator(world=world, group=ClientGroup(world, members), faults=frozenset())
    for node in list(world.nodes):
        world.start(node, Start(program=series))
    operator.settle()
    return operator
