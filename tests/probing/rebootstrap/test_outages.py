"""Rebootstraps in the simulator: every row, several seeds; each checker finds its fault."""

import pytest

from probing.rebootstrap import RebootstrapConfig, RecoveryStrategy
from system_tests.engine import Scheduler, Simulation
from tests.probing.rebootstrap.client import RebootstrapClient, Seen
from tests.probing.rebootstrap.outages import AT_MS, FIRST, OLD, SCENARIOS
from tests.probing.rebootstrap.promises import problems, recovered_ms

UNTIL_MS = 50_000
NAMES = {scenario.name: scenario for scenario in SCENARIOS}
every_row = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)


def played(scenario, seed=None, **settings):
    config = RebootstrapConfig(trigger_ms=settings.pop("trigger_ms", 5_000), **settings)
    simulation = Simulation(Scheduler(seed))
    RebootstrapClient(simulation, FIRST, scenario.changes, config)
    simulation.run_for(UNTIL_MS)
    return simulation.trace, config


def problems_of(scenario, seed=None, **settings):
    seen, config = played(scenario, seed, **settings)
    return problems(seen, config, usable_ms=scenario.usable_ms, extra_ms=scenario.extra_ms)


def kinds(seen, what):
    return [event for event in seen if event.what == what]


@every_row
@pytest.mark.parametrize("trigger_ms", [500, 5_000])
def test_every_row_keeps_every_rule_whatever_the_seed(scenario, trigger_ms):
    for seed in (None, *range(4)):
        assert problems_of(scenario, seed, trigger_ms=trigger_ms) == [], f"seed {seed}"


@every_row
def test_with_none_it_never_begins_again_and_is_stuck_where_it_would_have_to(scenario):
    for seed in range(4):
        settings = {"strategy": RecoveryStrategy.NONE}
        assert problems_of(scenario, seed, **settings) == []
        seen, _ = played(scenario, seed, **settings)
        assert kinds(seen, "rebootstrap") == []
        if scenario.needs and scenario.usable_ms is not None:
            assert recovered_ms(seen, scenario.usable_ms) is None


@every_row
def test_it_begins_again_where_it_has_to_and_only_there(scenario):
    seen, _ = played(scenario, 1)
    assert bool(kinds(seen, "rebootstrap")) == scenario.needs


def test_refused_connections_need_no_trigger():
    seen, _ = played(NAMES["all brokers replaced"], 3, trigger_ms=300_000)
    assert {event.rule for event in kinds(seen, "rebootstrap")} == {"no node is available"}
    assert recovered_ms(seen, AT_MS) - AT_MS < 2_000


def test_stuck_connections_need_it():
    """Before KIP-1102, such a client never recovered: no node stays in back-off."""
    seen, _ = played(NAMES["connections are stuck"], 3, trigger_ms=5_000)
    assert kinds(seen, "rebootstrap")[0].rule == "metadata is overdue"
    seen, _ = played(NAMES["connections are stuck"], 3, trigger_ms=10**9)
    assert kinds(seen, "rebootstrap") == []
    assert recovered_ms(seen, AT_MS) is None


def test_while_all_nodes_are_gone_attempts_follow_the_back_off():
    seen, config = played(NAMES["all gone for half a minute"], 5)
    while_gone = [event for event in kinds(seen, "attempt") if 10_000 <= event.at_ms < 35_000]
    least_ms = config.reconnect_backoff_max_ms * 0.8
    assert 0 < len(while_gone) <= 25_000 / least_ms + 1


def test_an_endless_demand_is_followed_once_a_second_at_most():
    seen, _ = played(NAMES["a proxy demands it for ever"], 5)
    late = [event for event in kinds(seen, "rebootstrap") if event.at_ms >= 10_000]
    assert 0 < len(late) <= 51


def test_two_runs_of_one_seed_are_the_same():
    scenario = NAMES["flapping"]
    assert played(scenario, 11)[0] == played(scenario, 11)[0]
    assert played(scenario, 11)[0] != played(scenario, 12)[0]


CONFIG = RebootstrapConfig(trigger_ms=1_000)
NONE = RebootstrapConfig(strategy=RecoveryStrategy.NONE)


def seen_at(at_ms, what, *nodes, rule=""):
    return Seen(at_ms=at_ms, what=what, nodes=nodes, rule=rule)


@pytest.mark.parametrize(
    ("seen", "config", "sentence"),
    [
        ([seen_at(5_000, "answer", *OLD)], CONFIG, "metadata came after 4000 ms; 3000 ms"),
        ([], CONFIG, "metadata came never"),
        ([seen_at(1, "rebootstrap", rule="no node is available")], NONE, "the strategy is none"),
        (
            [seen_at(0, "wanted"), seen_at(900, "rebootstrap", rule="metadata is overdue")],
            CONFIG,
            "900 ms: rebootstrap (metadata is overdue) without that reason",
        ),
        (
            [
                seen_at(0, "answer", "a:1", "b:2"),
                seen_at(1, "lost", "a:1"),
                seen_at(2, "rebootstrap", rule="no node is available"),
            ],
            CONFIG,
            "2 ms: rebootstrap (no node is available) without that reason",
        ),
        (
            [seen_at(2, "rebootstrap", rule="demanded by the server")],
            CONFIG,
            "2 ms: rebootstrap (demanded by the server) without that reason",
        ),
        ([seen_at(2, "demand", "a:1"), seen_at(9_000, "lost", "a:1")], CONFIG, "was not followed"),
        ([seen_at(2, "demand", "a:1"), seen_at(9_000, "lost", "a:1")], NONE, "was not followed"),
        (
            [seen_at(0, "lost", "a:1"), seen_at(30, "attempt", "a:1")],
            CONFIG,
            "a:1 is tried 30 ms after a failure",
        ),
        (
            [
                seen_at(0, "demand", "a:1"),
                seen_at(0, "rebootstrap", rule="demanded by the server"),
                seen_at(9, "demand", "a:1"),
                seen_at(10, "rebootstrap", rule="demanded by the server"),
            ],
            CONFIG,
            "rebootstrap 10 ms after the last",
        ),
    ],
)
def test_each_checker_notices_what_it_is_for(seen, config, sentence):
    assert any(sentence in problem for problem in problems(seen, config, usable_ms=1_000))
