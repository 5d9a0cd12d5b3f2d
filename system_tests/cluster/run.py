"""One experiment with a cluster: draw, run, judge."""

from dataclasses import dataclass

from system_tests.cluster.events import Happening
from system_tests.cluster.nodes.build import build_world
from system_tests.cluster.nodes.clients import Crew
from system_tests.cluster.nodes.programs import PROTOCOL_REALM, kafka_realm
from system_tests.cluster.operate import Operator
from system_tests.cluster.plan import KraftOptions, KraftPlan, check_options, draw_plan
from system_tests.cluster.rules.checkers import check_kraft
from system_tests.cluster.scenarios import run_scenario
from system_tests.sim import Broken, Scheduler

_MEMBERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KraftOutcome:
    """What came of it.

    Attributes:
        asked: the options as they were given; plan: with everything drawn.
        lanes, trace: who, and what happened.
        broken: every rule that was broken.
    """

    asked: KraftOptions
    plan: KraftPlan
    lanes: tuple[str, ...]
    trace: tuple[Happening, ...]
    broken: tuple[Broken, ...]

    @property
    def ok(self) -> bool:
        """Tell whether no rule was broken."""
        return not self.broken


def run_kraft(options: KraftOptions) -> KraftOutcome:
    """Run one experiment to its end.

    Raises:
        OptionError, FeatureError: the options name something that does not exist or fit.
    """
    check_options(options)
    plan = draw_plan(options, Scheduler(options.seed))
    is_double = plan.scenario == "double-roll"
    realm = PROTOCOL_REALM if is_double else kafka_realm(plan.formatted)
    world = build_world(options.seed, realm, controllers=plan.controllers, brokers=plan.brokers)
    crew = Crew(world, 0 if is_double else _MEMBERS)
    operator = Operator(world=world, crew=crew, faults=plan.faults)
    run_scenario(operator, plan)
    trace = tuple(world.trace)
    return KraftOutcome(
        asked=options,
        plan=plan,
        lanes=tuple(node.name for node in world.nodes),
        trace=trace,
        broken=tuple(check_kraft(trace, realm)),
    )
