"""Simulated clusters at rest, in which an operator starts."""

from system_tests.cluster.nodes.build import build_cluster
from system_tests.cluster.nodes.clients import ClientGroup
from system_tests.cluster.nodes.programs import Start, kafka_realm
from system_tests.cluster.operate import Operator
from system_tests.engine import Scheduler, Simulation


def start_cluster(*, controllers=3, brokers=1, members=0, series="3.9", formatted=20, seed=1):
    simulation = Simulation(Scheduler(seed))
    cluster = build_cluster(
        simulation, kafka_realm(formatted), controllers=controllers, brokers=brokers
    )
    operator = Operator(cluster=cluster, group=ClientGroup(cluster, members), faults=frozenset())
    for node in list(cluster.nodes):
        cluster.start(node, Start(program=series))
    operator.settle()
    return operator
