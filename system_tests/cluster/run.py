"""One experiment with a cluster: plan, run, check."""

from dataclasses import dataclass

from system_tests.cluster.nodes.build import build_cluster
from system_tests.cluster.nodes.clients import ClientGroup, client_world
from system_tests.cluster.nodes.programs import PROTOCOL_REALM, kafka_realm
from system_tests.cluster.operate import Operator
from system_tests.cluster.plan import KraftOptions, KraftPlan, check_options, draw_plan
from system_tests.cluster.rules.checkers import check_kraft
from system_tests.cluster.scenarios import run_scenario
from system_tests.engine import Outcome, Scheduler
from system_tests.sim import check_trace

_MEMBERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftOutcome(Outcome):
    """The outcome of an experiment; `plan`: made from the options and the seed."""

    plan: KraftPlan


def run_kraft(options: KraftOptions) -> KraftOutcome:
    """Run one experiment to its end.

    Raises:
        OptionError, FeatureError: the options are invalid.
    """
    check_options(options)
    plan = draw_plan(options, Scheduler(options.seed))
    is_double = plan.scenario == "double-roll"
    realm = PROTOCOL_REALM if is_double else kafka_realm(plan.formatted)
    world = client_world(options.seed, members=0 if is_double else _MEMBERS)
    cluster = build_cluster(world, realm, controllers=plan.controllers, brokers=plan.brokers)
    group = ClientGroup(world, cluster)
    operator = Operator(cluster=cluster, group=group, faults=plan.faults)
    run_scenario(operator, plan)
    trace = tuple(world.trace)
    return KraftOutcome(
        asked=options,
        plan=plan,
        old=plan.old,
        new=plan.new,
        lanes=(*(node.name for node in cluster.nodes), *(t.name for t in world.threads)),
        trace=trace,
        broken=(*check_kraft(trace, realm), *check_trace(trace, world.task_of)),
    )
