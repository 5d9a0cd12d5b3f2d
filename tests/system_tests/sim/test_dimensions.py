"""Dimensions of `--draw all`: drawn separately, with their own checkers."""

import pytest

from encoding import HostInfo, TaskId, TopicPartition
from system_tests.explore import Bounds, explore
from system_tests.sim import (
    FAULTS,
    BounceOptions,
    Dimensions,
    check_dimensions,
    outcome_document,
    outcome_lines,
    plan_bounce,
    run_bounce,
)
from system_tests.sim.events import AtRest, Decided, Drained, Followed, Rested, Settled
from system_tests.sim.world.dimensions import NO_DIMENSIONS, draw_dimensions

P = [TopicPartition("lines", number) for number in range(2)]
T = [TaskId(0, number) for number in range(2)]
HOSTS = [HostInfo("a", 1), HostInfo("b", 2)]
ROUTES = ((HOSTS[0], (P[0],)), (HOSTS[1], (P[1],)))
COPIES = ((HOSTS[0], (P[1],)), (HOSTS[1], (P[0],)))


def at_rest(number, **changes):
    other = 1 - number
    return AtRest(
        thread="ab"[number],
        hears_of_warmups=True,
        process=number,
        endpoint=HOSTS[number],
        answered=101,
        partitions=(P[number],),
        active_tasks=(T[number],),
        standby_tasks=(T[other],),
        warmup_tasks=(),
        active=ROUTES,
        standby=COPIES,
    )._replace(**changes)


def rested(*members, **changes):
    rest = Rested(0, members or (at_rest(0), at_rest(1)), 1, 2, has_room=True, is_quiet=True)
    return rest._replace(**changes)


def rules(happening):
    return [violation.rule for violation in check_dimensions(happening)]


def test_without_draws_nothing_of_it_is_there_and_the_trace_has_no_word_of_it():
    outcome = run_bounce(BounceOptions(seed=7, old="3.1", new="native"))
    assert outcome.options.dimensions == NO_DIMENSIONS
    assert not [event for event in outcome.trace if isinstance(event, Decided | Followed | Rested)]
    assert "--draw" not in outcome.replay
    assert "drawn" not in outcome_document(outcome)


def test_each_dimension_is_on_in_about_half_of_the_seeds():
    drawn = [draw_dimensions(seed, 3) for seed in range(200)]
    shares = {
        "cooperative": sum(dimensions.cooperative for dimensions, _ in drawn),
        "endpoints": sum(dimensions.routes for dimensions, _ in drawn),
        "standbys": sum(dimensions.standbys for dimensions, _ in drawn),
        "slow": sum(dimensions.restore is not None for dimensions, _ in drawn),
        "static": sum(static for _, static in drawn),
    }
    assert all(70 <= share <= 130 for share in shares.values()), shares
    assert {dimensions.views for dimensions, _ in drawn if dimensions.routes} == {True, False}
    assert not any(dimensions.views for dimensions, _ in drawn if not dimensions.routes)


def test_one_seed_draws_the_same_again_and_has_a_replay_command():
    options = BounceOptions(seed=6, draw_all=True)
    outcome = run_bounce(options)
    assert outcome.trace == run_bounce(options).trace
    assert outcome.replay.endswith("--draw all")
    assert any(line.startswith("drawn: native members ") for line in outcome_lines(outcome))
    assert outcome_document(outcome)["drawn"]["standbys"] == outcome.options.dimensions.standbys


@pytest.mark.parametrize("new", [None, "native"])
@pytest.mark.parametrize("faults", [frozenset(), frozenset(FAULTS)], ids=["calm", "faults"])
def test_drawn_groups_break_no_rule(new, faults):
    for seed in range(15):
        outcome = run_bounce(BounceOptions(seed=seed, new=new, faults=faults, draw_all=True))
        assert outcome.broken == (), outcome.replay
        assert [event for event in outcome.trace if isinstance(event, Settled)]


@pytest.mark.parametrize(
    ("members", "partitions", "seed"), [(5, 30, 14), (5, 30, 122), (4, 12, 35), (4, 12, 208)]
)
def test_who_took_no_answer_is_waited_for(members, partitions, seed):
    """Three rebalances in a row ended before their answers arrived: no member gave a task up."""
    outcome = run_bounce(
        BounceOptions(
            seed=seed,
            old="native",
            new="native",
            members=members,
            partitions=partitions,
            faults=frozenset(FAULTS),
            draw_all=True,
        )
    )
    assert outcome.broken == (), outcome.replay


def test_a_static_group_is_not_drawn_dynamic_and_its_coordinator_does_not_move():
    outcome = run_bounce(
        BounceOptions(seed=1, static=True, draw_all=True, faults=frozenset({"coordinator"}))
    )
    assert outcome.options.static
    assert outcome.options.faults == frozenset()
    assert not outcome.options.dimensions.moves


@pytest.mark.parametrize(
    ("old", "new", "pins"),
    [
        ("2.3.1", "native", ["2.3", None]),
        ("1.1.1", "native", ["1.1", None]),
        ("2.4.1", "native", [None]),
        ("native", "2.3.1", ["2.3", None]),
        ("native", "native", [None]),
    ],
)
def test_cooperative_native_members_are_eager_beside_leaders_up_to_2_3(old, new, pins):
    plan = plan_bounce(
        BounceOptions(old=old, new=new, dimensions=Dimensions(cooperative=True), force=False)
    )
    assert [stage.upgrade_from for stage in plan.stages] == pins


@pytest.mark.parametrize(
    "asked",
    [
        {"cooperative": True},
        {"endpoints": True},
        {"views": True},
        {"standbys": 1},
        {"cooperative": True, "views": True, "standbys": 1},
    ],
    ids="+".join,
)
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_every_order_of_a_small_native_group_breaks_no_rule(asked, static):
    none = {"cooperative": False, "endpoints": False, "views": False, "standbys": 0}
    dimensions = Dimensions.of(2, **(none | asked))
    plan = plan_bounce(
        BounceOptions(old="native", new="native", static=static, dimensions=dimensions)
    )
    bounds = Bounds(
        members=2, partitions=4, static=static, crashes=0, max_states=3_000, dimensions=dimensions
    )
    found = explore(plan, bounds)
    assert found.complete
    assert found.found == ()


def test_a_group_that_rests_as_it_should_breaks_no_rule():
    assert rules(rested()) == []


@pytest.mark.parametrize(
    ("rest", "broken"),
    [
        (rested(at_rest(0, active=ROUTES[:1]), at_rest(1)), {"endpoints", "owners"}),
        (rested(at_rest(0, active=()), at_rest(1)), {"endpoints", "owners"}),
        (rested(at_rest(0, active=()), at_rest(1), has_room=False), set()),
        (rested(at_rest(0, active=COPIES), at_rest(1)), {"owners"}),
        (rested(at_rest(0, standby=ROUTES), at_rest(1)), {"owners"}),
        (rested(at_rest(0, answered=5, standby=()), at_rest(1)), set()),
    ],
)
def test_routing_at_rest(rest, broken):
    assert {name.removesuffix(" at rest") for name in rules(rest)} == broken


@pytest.mark.parametrize(
    ("rest", "broken"),
    [
        (rested(at_rest(0, standby_tasks=()), at_rest(1), standbys=1), "standbys as asked"),
        (rested(at_rest(0), at_rest(1), standbys=0), "standbys as asked"),
        (rested(at_rest(0, warmup_tasks=(T[1],)), at_rest(1)), "warm-ups as marked"),
        (rested(at_rest(0, warmup_tasks=(T[0],)), at_rest(1)), "warm-ups as marked"),
        (rested(standbys=0, is_quiet=False), "warm-ups as marked"),
        (rested(at_rest(0, hears_of_warmups=False), at_rest(1), standbys=0, is_quiet=False), None),
        (rested(at_rest(0), at_rest(1), standbys=None), None),
        (rested(at_rest(0), at_rest(1), standbys=5), None),
        (rested(at_rest(0, standby_tasks=(T[0],)), at_rest(1)), "standby elsewhere"),
    ],
)
def test_copies_at_rest(rest, broken):
    found = [name for name in rules(rest) if name.startswith(("standby", "warm"))]
    assert (broken in found) if broken else found == []


def test_follow_ups_are_counted():
    assert rules(Drained(0, 3, 3)) == []
    assert rules(Drained(0, 4, 3)) == ["warm-ups end"]


def test_as_many_follow_ups_are_promised_as_copies_take_to_warm_up():
    # 6 tasks, 2 at a time, each restored in 52 s and so within one interval of 60 s.
    assert Dimensions(restore=2_000).followups_most(6, hops=False) == 3 * 2 + 1
    assert Dimensions(restore=400).followups_most(6, hops=False) == 3 * 7 + 1
    assert Dimensions(restore=400, standbys=1).followups_most(6, hops=True) == 2 * (6 * 7 + 1)
