"""Simulated clusters at rest, in which an operator starts."""

from system_tests.cluster.nodes.build import build_cluster
from system_tests.cluster.nodes.clients import ClientGroup, client_world
from system_tests.cluster.nodes.programs import Start, kafka_realm
from system_tests.cluster.operate import Operator


def start_cluster(*, controllers=3, brokers=1, members=0, series="3.9", formatted=20, seed=1):
    world = client_world(seed, members=members)
    cluster = build_cluster(world, kafka_realm(formatted), controllers=controllers, brokers=brokers)
    operator = Operator(cluster=cluster, group=ClientGroup(world, cluster), faults=frozenset())
    for node in list(cluster.nodes):
        cluster.start(node, Start(program=series))
    operator.settle()
    return operator
