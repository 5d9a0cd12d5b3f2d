"""One experiment with a cluster: plan, run, check."""

from dataclasses import dataclass

from system_tests.cluster.events import Event
from system_tests.cluster.nodes.build import build_world
from system_tests.cluster.nodes.clients import ClientGroup
from system_tests.cluster.nodes.programs import PROTOCOL_REALM, kafka_realm
from system_tests.cluster.operate import Operator
from system_tests.cluster.plan import KraftOptions, KraftPlan, check_options, draw_plan
from system_tests.cluster.rules.checkers import check_kraft
from system_tests.cluster.scenarios import run_scenario
from system_tests.sim import Broken, Scheduler

_MEMBERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftOutcome:
    """The outcome of an experiment.

    Attributes:
        asked: the given options.
        plan: the plan made from the options and the seed.
        lanes: names of the nodes.
        trace: events, in order.
        broken: rules that were broken.
    """

    asked: KraftOptions
    plan: KraftPlan
    lanes: tuple[str, ...]
    trace: tuple[Event, ...]
    broken: tuple[Broken, ...]

    @property
    def ok(self) -> bool:
        """Whether no rule was broken."""
        return not self.broken


def run_kraft(options: KraftOptions) -> KraftOutcome:
    """Run one experiment to its end.

    Raises:
        OptionError, FeatureError: the options are invalid.
    """
    check_options(options)
    plan = draw_plan(options, Scheduler(options.seed))
    is_double = plan.scenario == "double-roll"
    realm = PROTOCOL_REALM if is_double else kafka_realm(plan.formatted)
    world = build_world(options.seed, realm, controllers=plan.controllers, brokers=plan.brokers)
    group = ClientGroup(world, 0 if is_double else _MEMBERS)
    operator = Operator(world=world, group=group, faults=plan.faults)
    run_scenario(operator, plan)
    trace = tuple(world.trace)
    return KraftOutcome(
        asked=options,
        plan=plan,
        lanes=tuple(node.name for node in world.nodes),
        trace=trace,
        broken=tuple(check_kraft(trace, realm)),
    )
